//! Ships the rows of a table: each round as its plan shows it, with the time at which it was read.
//!
//! A plan's rows and groups are cells, so every table can be shipped. The outputs start with the first round, because
//! the columns are known only then.

use crate::{ShipRequest, Shipment, Shipped};
use engine::{RowSink, Run, RunError};
use record::{Accounting, Column, Columns, Field, Kind, Lookups, Next, Round, Sink, SinkError, Table, Value};
use runtime::messages::{footer_lines, print_message};
use runtime::run_state::RunState;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The added column.
const TIME: &str = "time";

/// The rows, or groups of rows, that the plan of any table shows. One type for all of them keeps the program small.
struct Rounds;

/// A row of a round: its values are cells.
#[derive(Clone, Copy)]
struct RoundRow {
    table: &'static str,
    time_ns: u64,
}

impl Table for Rounds {
    type Row<'b> = RoundRow;
    const NAME: &'static str = "rounds";
    const FIELDS: &'static [Field<Self>] = &[];
}

impl Shipped for Rounds {
    fn time_ns(row: &RoundRow) -> u64 {
        row.time_ns
    }

    fn msgid(row: &RoundRow) -> &'static str {
        row.table
    }
}

/// Ships rounds. Clones share the outputs: one is the sink of a run, and another ends it.
#[derive(Clone)]
pub struct ShippedRounds(Rc<RefCell<Outputs>>);

struct Outputs {
    ship: ShipRequest,
    run: Arc<RunState>,
    /// The outputs, from the first round on.
    shipment: Option<Shipment<Rounds>>,
    /// Why they did not start.
    refusal: Option<RunError>,
    /// The values that all of its rows share.
    round: RoundRow,
    /// True if the rows themselves have no column `time`.
    adds_time: bool,
    /// True if rounds follow one another.
    repeats: bool,
    /// The printed reasons for missing data.
    printed: Vec<Cow<'static, str>>,
}

/// Reasons that are printed during a run; all of them follow at its end.
///
/// Bound: different reasons for missing data in shipped rounds. Beyond: they are printed at the end only. By: any user
/// of the host.
const REASONS_MAX: usize = 64;

impl ShippedRounds {
    /// Checks the targets before anything is opened, as [`Shipment::check`].
    pub fn check(table: &str, ship: &ShipRequest, columns: &Columns) -> Result<(), String> {
        Shipment::<Rounds>::check_as(table, ship, columns)
    }

    /// Makes the sink for rounds of `table`. A single round has the time `now_ns`.
    pub fn new(table: &'static str, ship: &ShipRequest, run: &Arc<RunState>, now_ns: u64) -> ShippedRounds {
        ShippedRounds(Rc::new(RefCell::new(Outputs {
            ship: ship.clone(),
            run: Arc::clone(run),
            shipment: None,
            refusal: None,
            round: RoundRow { table, time_ns: now_ns },
            adds_time: true,
            repeats: false,
            printed: Vec::new(),
        })))
    }

    /// Ends the outputs, as [`Shipment::end`].
    pub fn end(&self, prints_stats: bool, run: Result<Run, RunError>) -> Result<Run, RunError> {
        let mut outputs = self.0.borrow_mut();
        if let Some(refusal) = outputs.refusal.take() {
            return Err(refusal);
        }
        match &mut outputs.shipment {
            Some(shipment) => shipment.end(prints_stats, run),
            None => run,
        }
    }
}

impl Sink for ShippedRounds {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let mut outputs = self.0.borrow_mut();
        if let Some(round) = round {
            outputs.round.time_ns = round.time_ns;
            outputs.repeats = true;
        }
        if outputs.shipment.is_none() {
            outputs.start(columns)?;
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let mut outputs = self.0.borrow_mut();
        let Outputs { shipment, round, adds_time, .. } = &mut *outputs;
        let time = adds_time.then_some(Value::Time(round.time_ns));
        let all: Vec<Value<'_>> = time.into_iter().chain(cells.iter().copied()).collect();
        if let Some(shipment) = shipment {
            // The outputs take every row: they queue, and count what they drop.
            let _ = shipment.row(round, &mut &all[..], &Lookups::empty());
        }
        Ok(Next::More)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.0.borrow_mut().shipment.iter_mut().for_each(RowSink::flush);
        Ok(())
    }

    fn end(&mut self, stats: &Accounting) -> Result<(), SinkError> {
        self.0.borrow_mut().print_new_reasons(stats);
        self.flush()
    }
}

impl Outputs {
    /// Prints reasons for missing data once, because the end of the rounds may be weeks away.
    fn print_new_reasons(&mut self, stats: &Accounting) {
        for reason in stats.why.iter().filter(|_| self.repeats) {
            if self.printed.len() < REASONS_MAX && !self.printed.contains(&reason.text) {
                self.printed.push(reason.text.clone());
                let why = vec![reason.clone()];
                let lines = footer_lines(&Accounting { why, ..Accounting::default() });
                lines.iter().for_each(|line| print_message(&format!("{}: {line}", self.round.table)));
            }
        }
    }

    fn start(&mut self, columns: &Columns) -> Result<(), SinkError> {
        self.adds_time = columns.0.iter().all(|column| &*column.name != TIME);
        let time = self.adds_time.then(|| Column { name: TIME.into(), kind: Kind::Time });
        let columns = Columns(time.into_iter().chain(columns.0.iter().cloned()).collect());
        match Shipment::start_as(self.round.table, &self.ship, &columns, &self.run) {
            Ok(shipment) => self.shipment = Some(shipment),
            Err(refusal) => {
                self.refusal = Some(refusal);
                return Err(SinkError::Closed);
            }
        }
        Ok(())
    }
}
