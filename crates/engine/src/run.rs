//! Running a plan: one source, one pass, one sink. Start reading at [`Plan::run`].
//!
//! Everything that a native command shows goes through this file, so it tells the whole story of a row:
//!
//! 1. The source is asked (`offer`) which parts of the filter it does itself. The parts it does exactly are not
//!    tested again; the others, and those it only narrows, are.
//! 2. The source calls us with each row. The row borrows the source's receive buffer and is gone when we return.
//! 3. What is left of the filter is tested. No allocation, no text.
//! 4. The planned cells are read from the row. They still borrow it.
//! 5. They go to the sink at once (streaming), or are packed into an arena (`--sort`), or are counted into a group
//!    (`--by`).
//! 6. After the last row the order is made, the kept rows or the groups go to the sink, and the row counts are closed.
//!
//! # The row counts
//!
//! Every row that the source handed out ends in exactly one place:
//!
//! | book | rows |
//! |---|---|
//! | `emitted` | reached the sink as themselves |
//! | `filtered` | did not pass what was left of the filter (what the kernel filtered was never seen) |
//! | `grouped` | were counted into a group |
//! | `cut` | passed, but lie behind `--limit` or behind the point where the reader of the output went away |
//! | `duplicates`, `failed` | the source's own: came twice, could not be decoded; also `failed`: could not be written |
//!
//! `seen` is counted by the source, where rows come from the kernel, and must be their sum: where it is not, the run is
//! incomplete and says so ([`Accounting::compare`]). Lines that show a group are *results*, not rows: they are in no
//! book, so that with `--by` `emitted` is 0 and `grouped` tells how many rows the groups stand for. When a limit
//! without an order is reached, the source is stopped: the rows it did not read are not known and therefore not `cut`.
mod cached;
mod follow;
mod outcome;
mod typed_rows;

use crate::answers::add_gap;
use crate::group::Grouper;
use crate::order::Sorter;
use crate::plan::{Grouping, Plan, Work};
use crate::predicate::ResidualFilter;
use crate::rendered_rows::RenderedRows;
use record::{Accounting, Columns, Get, Lookups, Next, Round, Scan, Sink, SinkError, Source, Table, Value};
use std::mem;

pub use cached::CachedPlan;
pub use follow::RenewedLookups;
pub use outcome::{Ended, Run, RunError};
pub use typed_rows::Disposition;

/// How many rows may pass between two looks at `stop`. A look is a call and an atomic load; rows come at 10 million
/// a second at best, so even this many are a few microseconds.
const ROWS_BETWEEN_LOOKS: u64 = 64;

impl<T: Table> Plan<T> {
    /// Reads `source` once and hands the result to `sink`: `begin`, every row, `end`.
    ///
    /// `lookups` answer for joined fields; absent ones answer null. `stop` is asked now and then; when it says true,
    /// the run ends in order and what was read is shown. The sink's `begin` is called when the first row is there or
    /// the pass is over, so a source that fails at once leaves no header behind.
    ///
    /// Streaming allocates nothing per row. Sorting holds the planned cells of every row that passes (about 100 bytes
    /// each for the default columns), or about twice the limit; grouping holds the groups.
    pub fn run(
        &self,
        source: &dyn Source<T>,
        lookups: &Lookups<'_>,
        sink: &mut dyn Sink,
        round: Option<Round>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, RunError> {
        let mut scan = source.prepare(&self.demand);
        let gate = self.gate(&*scan, lookups, stop)?;
        self.read(&mut *scan, &gate, self.out(sink, round), None)
    }

    /// The question goes back once, before any row comes forward.
    fn gate<'g>(
        &'g self,
        scan: &dyn Scan<T>,
        lookups: &'g Lookups<'g>,
        stop: &'g dyn Fn() -> bool,
    ) -> Result<Gate<'g, T>, RunError> {
        let offer = scan.offer();
        self.check(&offer).map_err(RunError::Unanswered)?;
        Ok(Gate { residual: self.predicate.residual(&offer.pushed), gap: self.filter_gap(&offer), lookups, stop })
    }

    fn out<'s>(&'s self, sink: &'s mut dyn Sink, round: Option<Round>) -> Out<'s> {
        Out { sink, columns: &self.columns, round, begun: false, fault: None }
    }

    fn read(
        &self,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        mut out: Out<'_>,
        rendered: Option<&mut RenderedRows>,
    ) -> Result<Run, RunError> {
        let mut pass = Pass::new();
        // Nobody wants a row: nobody shall read one.
        let mut from_source = if self.limit == Some(0) {
            pass.ended = Ended::Limit;
            Accounting::default()
        } else {
            match (&self.work, rendered) {
                (Work::Stream, Some(rendered)) => self.stream_cached(scan, gate, &mut out, &mut pass, rendered)?,
                (Work::Stream, None) => self.stream(scan, gate, &mut out, &mut pass)?,
                (Work::Sort(keys), _) => self.sorted(keys, scan, gate, &mut out, &mut pass)?,
                (Work::Group(how), _) => self.grouped(how, scan, gate, &mut out, &mut pass)?,
            }
        };
        add_gap(gate.gap.as_deref(), &mut from_source);
        self.close(out, pass, from_source)
    }

    /// Rows go out as they come.
    fn stream(
        &self,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
    ) -> Result<Accounting, RunError> {
        // One vector for all rows, see `recycled`.
        let mut spare = vec![Value::Null; self.cells.len()];
        let limit = self.limit.unwrap_or(u64::MAX);
        let from_source = scan.run(&mut |row| {
            if !gate.admits(row, pass) {
                return pass.next();
            }
            let mut cells = mem::take(&mut spare);
            fill(&self.cells, row, gate.lookups, &mut cells);
            // The answer is in `pass`, too.
            let _ = out.row(&cells, pass);
            spare = recycled(cells);
            if pass.stats.emitted >= limit && pass.ended == Ended::Whole {
                // No order is asked for, so the first rows are as good as any: the source need not go on.
                pass.ended = Ended::Limit;
            }
            pass.next()
        });
        from_source.map_err(RunError::Source)
    }

    /// Rows are kept until the last has come.
    fn sorted(
        &self,
        keys: &[(usize, bool)],
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
    ) -> Result<Accounting, RunError> {
        // Cells behind the columns are there for the order alone.
        let shown = self.columns.0.len();
        let mut sorter = Sorter::new(keys, self.cells.len(), shown, self.limit_in_memory());
        let mut passed = 0;
        let from_source = self.collect(scan, gate, pass, &mut |cells| {
            passed += 1;
            sorter.add(cells);
        })?;
        sorter.finish(|cells| out.row(cells.get(..shown).unwrap_or(cells), pass));
        // What passed the filter and did not go out is behind the limit, or the reader has left. Nothing else is cut.
        let out = pass.stats.emitted + pass.stats.failed;
        pass.stats.cut = match self.limit {
            _ if pass.ended == Ended::Closed => passed - out,
            Some(limit) => passed.saturating_sub(limit),
            None => 0,
        };
        Ok(from_source)
    }

    /// Rows are counted; what goes out are the groups.
    fn grouped(
        &self,
        how: &Grouping,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
    ) -> Result<Accounting, RunError> {
        let mut grouper = Grouper::new(how.keys, how.folds.clone());
        let mut grouped = 0;
        let from_source = self.collect(scan, gate, pass, &mut |cells| {
            grouped += 1;
            grouper.add(cells);
        })?;
        let width = self.columns.0.len();
        let mut sorter = Sorter::new(&how.order, width, width, self.limit_in_memory());
        grouper.finish(|cells| sorter.add(cells));
        sorter.finish(|cells| out.row(cells, pass));
        // `out` has just counted lines that are no rows: in the row counts stand the rows behind them.
        pass.stats.emitted = 0;
        pass.stats.failed = 0;
        pass.stats.cut = 0;
        pass.stats.grouped = grouped;
        Ok(from_source)
    }

    /// Hands the cells of every row that passes to `keep`.
    fn collect(
        &self,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        pass: &mut Pass,
        keep: &mut dyn FnMut(&[Value<'_>]),
    ) -> Result<Accounting, RunError> {
        let mut spare = vec![Value::Null; self.cells.len()];
        let from_source = scan.run(&mut |row| {
            if gate.admits(row, pass) {
                let mut cells = mem::take(&mut spare);
                fill(&self.cells, row, gate.lookups, &mut cells);
                keep(&cells);
                spare = recycled(cells);
            }
            pass.next()
        });
        from_source.map_err(RunError::Source)
    }

    fn limit_in_memory(&self) -> Option<usize> {
        self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Closes the row counts and the sink.
    fn close(&self, mut out: Out<'_>, pass: Pass, from_source: Accounting) -> Result<Run, RunError> {
        let mut stats = from_source;
        pass.settle(&mut stats);
        let mut ended = pass.ended;
        if out.fault.is_none() {
            out.end(&stats);
        }
        match out.fault {
            Some(SinkError::Closed) => ended = Ended::Closed,
            Some(error) => return Err(RunError::Sink(error)),
            None => {}
        }
        Ok(Run { stats, ended })
    }
}

/// What stands between the source and the cells.
struct Gate<'g, T: Table> {
    residual: ResidualFilter<'g, T>,
    /// What the filter asks that the backend does not tell.
    gap: Option<String>,
    lookups: &'g Lookups<'g>,
    stop: &'g dyn Fn() -> bool,
}

impl<T: Table> Gate<'_, T> {
    /// True if the row passes; counts it either way.
    fn admits(&self, row: &T::Row<'_>, pass: &mut Pass) -> bool {
        self.count(pass);
        let passes = self.residual.matches(row, self.lookups);
        pass.stats.filtered += u64::from(!passes);
        passes
    }

    /// Counts a row, and looks now and then whether the run shall end.
    #[inline]
    fn count(&self, pass: &mut Pass) {
        if pass.handed % ROWS_BETWEEN_LOOKS == 0 && (self.stop)() {
            pass.ended = Ended::Stopped;
        }
        pass.handed += 1;
    }
}

/// The state of one run.
struct Pass {
    stats: Accounting,
    /// Rows that the source handed out.
    handed: u64,
    ended: Ended,
}

impl Pass {
    fn new() -> Pass {
        Pass { stats: Accounting::default(), handed: 0, ended: Ended::Whole }
    }

    /// Adds what became of the rows that the source handed out to what the source counted itself, and compares.
    fn settle(&self, stats: &mut Accounting) {
        stats.emitted = self.stats.emitted;
        stats.filtered += self.stats.filtered;
        stats.grouped += self.stats.grouped;
        stats.cut = self.stats.cut;
        stats.failed += self.stats.failed;
        stats.compare();
    }

    /// What the source is told.
    fn next(&self) -> Next {
        if self.ended == Ended::Whole { Next::More } else { Next::Stop }
    }
}

/// The sink with its first fault.
struct Out<'s> {
    sink: &'s mut dyn Sink,
    columns: &'s Columns,
    round: Option<Round>,
    begun: bool,
    fault: Option<SinkError>,
}

impl Out<'_> {
    /// Writes a row and counts it. After `Stop` nothing more is to be written.
    fn row(&mut self, cells: &[Value<'_>], pass: &mut Pass) -> Next {
        self.put(pass, |sink| sink.row(cells))
    }

    /// The same for a row that `write` writes.
    #[inline]
    fn put(&mut self, pass: &mut Pass, write: impl FnOnce(&mut dyn Sink) -> Result<Next, SinkError>) -> Next {
        let begun = if self.begun { Ok(()) } else { self.begin() };
        match begun.and_then(|()| write(&mut *self.sink)) {
            Ok(next) => {
                pass.stats.emitted += 1;
                if next == Next::Stop {
                    pass.ended = Ended::Closed;
                }
                next
            }
            Err(fault) => {
                // A reader that went away has cut the table off; anything else is a row that could not be written.
                match fault {
                    SinkError::Closed => pass.stats.cut += 1,
                    SinkError::Io(_) => pass.stats.failed += 1,
                }
                pass.ended = Ended::Closed;
                self.fault = Some(fault);
                Next::Stop
            }
        }
    }

    fn begin(&mut self) -> Result<(), SinkError> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        self.sink.begin(self.columns, self.round)
    }

    fn end(&mut self, stats: &Accounting) {
        let ended = self.begin().and_then(|()| self.sink.end(stats));
        self.fault = ended.err();
    }
}

/// Reads the planned cells of a row into their places.
///
/// Each is written where it stays. Pushing them would make each on the stack and copy it, and the copy of a value just
/// written in parts waits for those parts (a failed store forwarding): 52 instead of 28 ns for nine cells.
#[inline]
fn fill<'r, T: Table>(plan: &[Get<T>], row: &'r T::Row<'_>, lookups: &Lookups<'r>, cells: &mut [Value<'r>]) {
    for (place, get) in cells.iter_mut().zip(plan) {
        *place = cell(get, row, lookups);
    }
}

#[inline]
fn cell<'r, T: Table>(get: &Get<T>, row: &'r T::Row<'_>, lookups: &Lookups<'r>) -> Value<'r> {
    match *get {
        Get::Own(get) => get(row),
        Get::Joined { key, lookup } => lookups.value(lookup, key(row)),
        Get::Owners { key, part } => match (lookups.owners(key(row)), part) {
            ([], _) => Value::Null,
            (owners, None) => Value::Owners(owners),
            ([first, ..], Some(part)) => part(first),
        },
        Get::OwnersJoined { key, of, orphan, lookup } => {
            let key = key(row);
            let found = lookups.owners(key).first().map_or_else(|| orphan(row), |owner| of(key, owner));
            lookups.value(lookup, found)
        }
    }
}

/// The same vector, all null, for cells of another lifetime.
///
/// Cells borrow a row that lives as long as one call, so a vector of them cannot outlive the call, although its memory
/// could. Mapped to nulls its items borrow nothing. The standard library collects such a map in place, which keeps the
/// allocation; should it ever stop doing so, that costs an allocation a row and no correctness, and the test
/// `streaming_allocates_nothing` would tell. Measured: below 1 ns, less than an array on the stack for the usual case
/// and a vector for wide ones.
#[inline]
fn recycled(cells: Vec<Value<'_>>) -> Vec<Value<'static>> {
    cells.into_iter().map(|_| Value::Null).collect()
}

#[cfg(test)]
mod tests;
