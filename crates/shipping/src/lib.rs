//! Ships rows to receivers (`--to`), of a stream or of the rounds of a table: each output gets messages in its own
//! format.
#![forbid(unsafe_code)]

mod check;
mod database;
mod formats;
mod gate;
mod group_report;
mod ipfix;
mod notes;
pub mod packer;
mod pending_batch;
mod reload;
mod repeats;
mod request;
mod rounds;
mod row_writer;
pub mod service;
mod syslog;
mod text_cache;
mod tuning;
mod ulogd;

pub use formats::has_words;
pub use gate::{RateBy, RepeatRequest};
pub use group_report::{group_report, group_status_line};
pub use request::{QUEUE_MAX, ShipRequest, SpoolRequest};
pub use rounds::ShippedRounds;
pub use row_writer::Shipped;
pub use tuning::UlogdTuning;

use engine::{CellsOf, Disposition, ReadRows, RowSink, Run, RunError};
use export::{
    Address, Control, Ledger, MemoryStore, Output, OutputOptions, RecoveredCounts, Spool, SpoolOptions, Status,
    StatusReport, Store, Target, TransportOptions, check_target, open_transport,
};
use formats::writer;
use gate::{Fate, RowGate};
use group_report::PartOutputs;
use pending_batch::PendingBatch;
use record::{Accounting, Columns, Lookups, RowCells, SourceError, SourceFault};
use reload::{Endings, Monitors};
use row_writer::RowWriter;
use runtime::messages::{footer_lines, print_message};
use runtime::run_state::RunState;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for delivering waiting messages at the end of a run.
const DRAIN: Duration = Duration::from_secs(5);

/// The outputs of a run.
pub struct Shipment<T: Shipped> {
    outputs: Vec<Shipper<T>>,
    /// The settings with which the outputs were started.
    settings: ShipRequest,
    /// The outputs as seen by other threads.
    monitors: Monitors,
    /// Outputs that a new configuration no longer contains.
    endings: Endings,
    /// Folds and limits rows.
    gate: Option<Box<dyn RowGate<T>>>,
    /// Answers requests on the control socket during the run.
    _control: Option<Control>,
}

/// One output, and its writer of messages.
struct Shipper<T: Shipped> {
    target: Target,
    writer: Box<dyn RowWriter<T>>,
    pending: PendingBatch,
    /// True if the writer skips some rows.
    chooses: bool,
    /// True if rows can state here that they stand for others.
    has_words: bool,
    /// The counts of earlier runs, if the output has a spool.
    at_start: Option<Ledger>,
}

impl<T: Shipped> Shipment<T> {
    /// Checks the targets before anything is opened: the format must fit the table, and certificates must be usable.
    pub fn check(ship: &ShipRequest, columns: &Columns) -> Result<(), String> {
        Shipment::<T>::check_as(T::NAME, ship, columns)
    }

    /// [`Shipment::check`] for rows that belong to another table than their type.
    fn check_as(table: &str, ship: &ShipRequest, columns: &Columns) -> Result<(), String> {
        let format = |target: &Target| writer::<T>(table, target, None, columns, ship.comment.as_deref()).map(|_| ());
        ship.targets.iter().try_for_each(format).map_err(|error| format!("--to: {error}"))?;
        let mut warnings = Vec::new();
        for target in &ship.targets {
            warnings.extend(check_target(target, &ship.tls).map_err(|error| format!("--to: {error}"))?);
        }
        // Outputs with the same files have the same warnings.
        warnings.dedup();
        warnings.iter().for_each(|warning| print_message(warning));
        Ok(())
    }

    /// Starts an output for each target. An unreachable receiver is not an error: rows wait for it.
    pub fn start(ship: &ShipRequest, columns: &Columns, run: &Arc<RunState>) -> Result<Shipment<T>, RunError> {
        Shipment::start_as(T::NAME, ship, columns, run)
    }

    /// [`Shipment::start`] for rows that belong to another table than their type.
    fn start_as(
        table: &str,
        ship: &ShipRequest,
        columns: &Columns,
        run: &Arc<RunState>,
    ) -> Result<Shipment<T>, RunError> {
        let gate = T::gate(&ship.repeats);
        let columns = if gate.is_some() { &gate::columns(columns) } else { columns };
        let start = |(index, target): (usize, &Target)| {
            Shipper::start(table, target, ship.tuning.get(index), ship, columns, run)
        };
        let outputs: Vec<Shipper<T>> = ship.targets.iter().enumerate().map(start).collect::<Result<_, _>>()?;
        for output in outputs.iter().filter(|output| ship.repeats.fold.is_some() && !output.has_words) {
            print_message(&format!(
                "{}: receives every row; its format cannot store the count of folded rows (--fold)",
                output.target
            ));
        }
        let monitors = Monitors::default();
        let control = match &ship.control {
            Some(path) => Some(control(path, monitors.clone(), run)?),
            None => None,
        };
        let (settings, endings) = (ship.clone(), Endings::default());
        if let Some(part) = run.part() {
            part.set_outputs(Arc::new(PartOutputs { monitors: monitors.clone(), lost: run.count_lost() }));
        }
        let mut shipment = Shipment { outputs, settings, monitors, endings, gate, _control: control };
        shipment.watch();
        Ok(shipment)
    }

    /// Ends the outputs after a run: waits, for a limited time, until receivers have taken the waiting messages. Adds
    /// undelivered ones to the result, and prints them if the run failed. With `prints_stats`, reports each receiver's
    /// ledger (`--stats`).
    pub fn end(&mut self, prints_stats: bool, run: Result<Run, RunError>) -> Result<Run, RunError> {
        let (mut failed, mut run) = (Accounting::default(), run);
        self.finish(prints_stats, run.as_mut().map_or(&mut failed, |run| &mut run.stats));
        footer_lines(&failed).iter().for_each(|line| print_message(line));
        run
    }

    fn finish(&mut self, prints_stats: bool, stats: &mut Accounting) {
        self.flush();
        let unfolded = self.gate.as_ref().map_or(0, |gate| gate.unfolded());
        if unfolded > 0 {
            let most = export::FOLD_KEYS_MAX;
            print_message(&format!(
                "{unfolded} rows were not folded: more than {most} different rows at a time (--fold)"
            ));
        }
        self.say_forgotten();
        for (count, words) in self.outputs.iter().filter_map(Shipper::left_out) {
            stats.incomplete(count, words);
        }
        self.outputs.iter().for_each(|shipper| _ = shipper.pending.output.begin_end());
        let earlier = self.endings.take();
        let starts = earlier.iter().map(|ended| ended.at_start);
        let starts: Vec<Option<Ledger>> = starts.chain(self.outputs.iter().map(|shipper| shipper.at_start)).collect();
        let earlier = earlier.iter().map(|ended| (&ended.target, ended.status.clone()));
        let now = self.outputs.iter_mut().map(|shipper| (&shipper.target, shipper.pending.output.finish(&|| false)));
        let ended: Vec<_> = earlier.chain(now).collect();
        for ((target, status), start) in ended.iter().zip(&starts) {
            // Losses of an earlier run were reported by that run.
            let ledger = start.map_or(status.ledger, |start| status.ledger.since(&start));
            notes::add(&target.to_string(), &Status { ledger, ..status.clone() }, stats);
        }
        if prints_stats {
            notes::print(&ended, stats.lost);
        }
    }
}

impl<T: Shipped> Shipment<T> {
    /// Ships the due rows that stand for others; with `is_end` all of them.
    pub fn say_held(&mut self, cells: &CellsOf<'_, T>, is_end: bool) {
        let Some(gate) = &mut self.gate else { return };
        let outputs = &mut self.outputs;
        gate.take_due(is_end, &mut |row, notice| {
            cells.with(row, &mut |own| {
                let noted = [own, &notice.cells].concat();
                for output in outputs.iter_mut() {
                    match (output.has_words, notice.is_fold) {
                        (true, _) => output.ship_held_row(row, &mut &noted[..], cells.lookups(), &notice.words),
                        (false, false) => output.ship_held_row(row, &mut &own[..], cells.lookups(), b""),
                        (false, true) => {}
                    }
                }
            });
        });
    }

    /// Reports spools that are not being delivered because the run does not have their targets.
    fn say_forgotten(&self) {
        let Some(spool) = &self.settings.spool else { return };
        let used: Vec<String> = self.outputs.iter().map(|shipper| shipper.target.to_string()).collect();
        for other in Spool::find_other_spools(&spool.dir, &used).unwrap_or_default() {
            let (waiting, target, path) = (other.waiting, &other.target, other.path.display());
            print_message(&format!(
                "{waiting} messages are queued in {path} for {target}, to which this run does not ship"
            ));
        }
    }
}

impl<T: Shipped> Shipper<T> {
    fn start(
        table: &str,
        target: &Target,
        tuning: Option<&UlogdTuning>,
        ship: &ShipRequest,
        columns: &Columns,
        run: &Arc<RunState>,
    ) -> Result<Shipper<T>, RunError> {
        let mut writer = writer::<T>(table, target, tuning, columns, ship.comment.as_deref()).map_err(refused)?;
        let store = store(target, ship)?;
        let at_start = store.is_persistent().then(|| store.ledger());
        let options = OutputOptions { when_full: ship.when_full, drain: DRAIN };
        let way =
            TransportOptions { file_header: writer.file_header(), tls: ship.tls.clone(), rotation: ship.rotation };
        let transport = open_transport(target, way).map_err(|error| refused(error.to_string()))?;
        let name = target.to_string();
        let tell = Box::new(move |notice| print_message(&notes::sentence(&name, &notice)));
        // The output's thread resolves names and connects, at the start and after each error.
        let start = move || Output::start_telling("netwren-ship", store, transport, options, tell);
        let output = run.at_origin(start).map_err(|error| refused(error.to_string()))?;
        let output = output.map_err(|error| refused(format!("cannot start a thread: {error}")))?;
        Ok(Shipper {
            target: target.clone(),
            chooses: writer.chooses(),
            writer,
            pending: PendingBatch::new(output, run),
            has_words: has_words(target.format),
            at_start,
        })
    }

    /// See [`RowSink::all_rows`].
    fn all_rows(&mut self, read: &mut ReadRows<'_, T>) -> Option<u64> {
        self.writer.write_rows(read, &mut self.pending)
    }

    /// Returns how many rows the output's format had no place for, and a sentence about them.
    fn left_out(&self) -> Option<(u64, String)> {
        let (count, why) = (self.pending.left_out, self.writer.lacks_place()?);
        (count > 0).then(|| (count, format!("rows not written to {}: {why}", self.target)))
    }

    #[inline]
    fn row(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>) {
        self.noted_row(row, cells, lookups, b"");
    }

    /// Handles a row with a fate other than [`Fate::Ship`].
    fn held_row(&mut self, fate: Fate, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>) {
        let pending = &mut self.pending;
        match fate {
            Fate::Folded if self.has_words => pending.folded += 1,
            Fate::StandsForFolded if self.has_words => pending.held += u64::from(self.writer.takes(row)),
            Fate::StandsForLimited => pending.held += u64::from(self.writer.takes(row)),
            Fate::Limited => pending.limited += 1,
            Fate::Ship | Fate::Folded | Fate::StandsForFolded => self.row(row, cells, lookups),
        }
    }

    /// Ships a row that stands for others.
    fn ship_held_row(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, words: &[u8]) {
        // An output added by a reload did not exist when the row was kept.
        self.pending.held = self.pending.held.saturating_sub(self.writer.takes(row).into());
        self.noted_row(row, cells, lookups, words);
    }

    #[inline]
    fn noted_row(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, words: &[u8]) {
        if self.chooses && !self.writer.takes(row) {
            self.pending.left_out += u64::from(self.writer.misses(row));
            return;
        }
        let pending = &mut self.pending;
        if pending.batch.is_empty() {
            self.writer.begin_batch();
        }
        match words {
            [] => self.writer.write(row, cells, lookups, pending.batch.bytes_mut()),
            words => self.writer.write_noted(row, cells, lookups, words, pending.batch.bytes_mut()),
        }
        pending.end_message(T::class(row));
    }
}

/// The queue for `target`; reports what the spool contains, or that the queue is in memory.
fn store(target: &Target, ship: &ShipRequest) -> Result<Box<dyn Store>, RunError> {
    let Some(spool) = &ship.spool else {
        if !matches!(target.address, Address::File(_)) {
            let mib = ship.queue_max >> 20;
            print_message(&format!(
                "{target}: queues up to {mib} MiB in memory while it is unavailable (--spool DIR: on disk)"
            ));
        }
        return Ok(Box::new(MemoryStore::new(ship.queue_max)));
    };
    let options = SpoolOptions { age_max: spool.age_max, sync: spool.sync, ..SpoolOptions::new(spool.bytes_max) };
    let opened = Spool::open(&spool.dir, &target.to_string(), options);
    let (store, recovered) = opened.map_err(|error| refused(error.to_string()))?;
    if recovered != RecoveredCounts::default() {
        print_message(&format!("{target}: {recovered}"));
    }
    Ok(Box::new(store))
}

/// Serves `path`: reports the counts of all outputs, and hands over the sockets of `run`.
fn control(path: &Path, monitors: Monitors, run: &Arc<RunState>) -> Result<Control, RunError> {
    let (run, counted) = (Arc::clone(run), Arc::clone(run));
    let report = move || StatusReport {
        outputs: monitors.reports(""),
        lost_in_kernel: counted.lost_in_kernel(),
        ..StatusReport::default()
    };
    Control::start(path, report, move |successor| run.hand_over_to(successor))
        .map_err(|error| refused(format!("--control: {error}")))
}

/// The error of a run that cannot ship.
fn refused(text: String) -> RunError {
    RunError::Source(SourceError { what: "output", fault: SourceFault::Unsupported, cause: text.into() })
}

impl<T: Shipped> RowSink<T> for Shipment<T> {
    fn row(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>) -> Disposition {
        let fate = self.gate.as_mut().map_or(Fate::Ship, |gate| gate.fate(row));
        for output in &mut self.outputs {
            match fate {
                Fate::Ship => output.row(row, cells, lookups),
                fate => output.held_row(fate, row, cells, lookups),
            }
        }
        Disposition::Emitted
    }

    fn all_rows(&mut self, read: &mut ReadRows<'_, T>) -> Option<u64> {
        match (&mut self.outputs[..], &self.gate) {
            ([output], None) => output.all_rows(read),
            _ => None,
        }
    }

    fn end_batch(&mut self, cells: &CellsOf<'_, T>) {
        self.say_held(cells, false);
    }

    fn flush(&mut self) {
        for output in &mut self.outputs {
            output.pending.push();
        }
    }
}
