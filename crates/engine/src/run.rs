//! Running a plan: one source, one pass, one sink. Start reading at [`Plan::run`].
//!
//! Everything that a native command shows goes through this module. The way of a row:
//!
//! 1. The source offers ([`Scan::offer`]) which parts of the filter it applies itself. The engine skips the parts that
//!    the source applies exactly; it tests the others, and those that the source only narrows.
//! 2. The source calls the engine with each row. The row borrows the source's receive buffer and is invalid afterwards.
//! 3. The rest of the filter is tested (`gate`). This needs no allocation and no text.
//! 4. The planned cells are read from the row (`cells`). They still borrow it.
//! 5. They go to the sink at once (streaming, `output`), or are packed into an arena (`--sort`), or are counted into a
//!    group (`--by`).
//! 6. After the last row the kept rows or the groups are sorted and go to the sink, and the row counts are closed.
//!
//! Variants of this way have separate files: rounds that reuse unchanged rows (`cached`), streams that the user ends
//! (`follow`), typed rows for callers that write them themselves (`typed_rows`).
//!
//! # The row counts
//!
//! Every row from the source ends in exactly one place:
//!
//! | count | rows |
//! |---|---|
//! | `emitted` | reached the sink as themselves, or as a number where it shows no more ([`Sink::rows_wanted`]) |
//! | `filtered` | did not pass the rest of the filter (rows that the kernel filtered were never seen) |
//! | `grouped` | were counted into a group |
//! | `cut` | passed, but come after `--limit` or after the reader of the output went away |
//! | `duplicates`, `failed` | the source's own: came twice, could not be decoded; also `failed`: could not be written |
//!
//! The source counts `seen` where rows arrive from the kernel. It must equal the sum of the others; otherwise the run
//! is incomplete and reports it ([`Accounting::compare`]). Lines that show a group are *results*, not rows, and are in
//! no count: with `--by`, `emitted` is 0 and `grouped` is the number of rows in all groups. When a limit without an
//! order is reached, the source is stopped: the rows that it did not read are unknown and therefore not `cut`.
mod cached;
mod cells;
mod follow;
mod gate;
mod outcome;
mod output;
mod typed_rows;

use crate::answers::add_gap;
use crate::group::{Grouper, folded_reason};
use crate::order::{RowOrder, Sorter};
use crate::plan::{Grouping, Plan, Work};
use crate::rendered_rows::RenderedRows;
use cells::{CellsOnDemand, fill, recycled};
use gate::{Gate, Pass};
use output::Out;
use record::{Accounting, Lookups, Next, Round, Scan, Sink, SinkError, Source, Table, Value};
use std::mem;

pub use cached::CachedPlan;
use cached::Streaming;
pub use follow::{CellsOf, ReadRows, RenewedLookups, RowSink};
pub use outcome::{Ended, Run, RunError};
pub use typed_rows::Disposition;

impl<T: Table> Plan<T> {
    /// Reads `source` once and passes the result to `sink`: `begin`, every row, `end`.
    ///
    /// `lookups` supply joined fields; absent ones return null. `stop` is polled now and then; once it returns true,
    /// the run ends in order and the rows read so far are shown. The sink's `begin` is called when the first row
    /// arrives or the pass is over, so a source that fails at once leaves no header in the output.
    ///
    /// Streaming allocates nothing per row. Sorting keeps the planned cells of every row that passes (about 100 bytes
    /// each for the default columns), or of about twice the limit; grouping keeps the groups, in streams a bounded
    /// number.
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

    /// Sends the demand to the source once, before any row arrives.
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
        Out::new(sink, &self.columns, round)
    }

    fn read(
        &self,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        mut out: Out<'_>,
        rendered: Option<&mut RenderedRows>,
    ) -> Result<Run, RunError> {
        let mut pass = Pass::new(self.limit);
        let mut from_source = match (&self.work, rendered) {
            _ if pass.ended == Ended::Limit => Accounting::default(),
            (Work::Stream, Some(rendered)) => self.stream_cached(scan, gate, &mut out, &mut pass, rendered)?,
            (Work::Sort(order), Some(rendered)) if order.by_rate => {
                self.sort_cached(order, scan, Streaming::new(gate, &mut out, &mut pass, rendered))?
            }
            (Work::Stream, None) => self.stream(scan, gate, &mut out, &mut pass)?,
            (Work::Sort(order), _) => self.sorted(order, scan, gate, &mut out, &mut pass)?,
            (Work::Group(how), _) => self.grouped(how, scan, gate, &mut out, &mut pass)?,
        };
        add_gap(gate.gap.as_deref(), &mut from_source);
        self.close(out, pass, from_source)
    }

    /// Outputs rows as they arrive.
    fn stream(
        &self,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
    ) -> Result<Accounting, RunError> {
        // One vector for all rows, see `recycled`.
        let mut spare = vec![Value::Null; self.cells.len()];
        let from_source = scan.run(&mut |row| self.write_row(row, gate, out, pass, &mut spare));
        from_source.map_err(RunError::Source)
    }

    /// Writes a row that passes the gate.
    #[inline]
    fn write_row(
        &self,
        row: &T::Row<'_>,
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
        spare: &mut Vec<Value<'static>>,
    ) -> Next {
        if gate.admits(row, pass) {
            if out.is_full(pass) {
                out.leave_out(1, pass);
            } else {
                let mut cells = mem::take(spare);
                fill(&self.cells, row, gate.lookups, &mut cells);
                // `pass` also has the sink's answer.
                let _ = out.row(&cells, pass);
                *spare = recycled(cells);
            }
            pass.check_limit();
        }
        pass.next()
    }

    /// Keeps rows until the last has arrived, then outputs them in order.
    fn sorted(
        &self,
        order: &RowOrder,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
    ) -> Result<Accounting, RunError> {
        // Cells after the columns are needed only for the order.
        let shown = self.columns.0.len();
        let mut sorter = Sorter::new(order, self.cells.len(), shown, self.limit_in_memory(out));
        let mut passed = 0;
        let mut spare = vec![Value::Null; self.cells.len()];
        let from_source = scan.run(&mut |row| {
            if gate.admits(row, pass) {
                passed += 1;
                let cell = |place: usize| self.cells.get(place).map_or(Value::Null, |get| get.cell(row, gate.lookups));
                if !sorter.cuts(cell) {
                    let mut cells = mem::take(&mut spare);
                    fill(&self.cells, row, gate.lookups, &mut cells);
                    sorter.add(&cells);
                    spare = recycled(cells);
                }
            }
            pass.next()
        });
        let from_source = from_source.map_err(RunError::Source)?;
        sorter.finish(|cells| out.row(cells.get(..shown).unwrap_or(cells), pass));
        let written = pass.stats.emitted + pass.stats.failed;
        if pass.ended == Ended::Closed {
            pass.stats.cut = passed - written;
            return Ok(from_source);
        }
        // Rows that passed the filter but were not output are beyond the limit, or not wanted. No other rows are cut.
        let within_limit = passed.min(self.limit.unwrap_or(u64::MAX));
        out.leave_out(within_limit.saturating_sub(written), pass);
        pass.stats.cut = passed - within_limit;
        Ok(from_source)
    }

    /// Counts rows into groups and outputs the groups.
    fn grouped(
        &self,
        how: &Grouping,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
    ) -> Result<Accounting, RunError> {
        let mut grouper = Grouper::new(how.keys.clone(), how.folds.clone(), how.bound);
        let mut grouped = 0;
        let mut from_source = self.collect(scan, gate, pass, &mut |cells| {
            grouped += 1;
            grouper.add(cells);
        })?;
        if grouper.folded() > 0 {
            (from_source.incomplete, from_source.only_namespaces_missing) = (true, false);
            from_source.add_reason(grouper.folded(), folded_reason());
        }
        let width = self.columns.0.len();
        let mut sorter = Sorter::new(&how.order, width, width, self.limit_in_memory(out));
        let mut groups = 0;
        grouper.finish(|cells| {
            groups += 1;
            sorter.add(cells);
        });
        sorter.finish(|cells| out.row(cells, pass));
        if pass.ended != Ended::Closed {
            let within_limit = groups.min(self.limit.unwrap_or(u64::MAX));
            out.leave_out(within_limit.saturating_sub(pass.stats.emitted), pass);
        }
        // `out` has just counted lines that are not rows; the row counts have the rows of the groups instead.
        pass.stats.emitted = 0;
        pass.stats.failed = 0;
        pass.stats.cut = 0;
        pass.stats.grouped = grouped;
        Ok(from_source)
    }

    /// Passes the cells of every row that passes the filter to `keep`.
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

    /// Returns how many of the sorted rows are written; `None` for all.
    fn limit_in_memory(&self, out: &Out<'_>) -> Option<usize> {
        let limit = self.limit.unwrap_or(u64::MAX).min(out.rows_wanted());
        (limit < u64::MAX).then(|| usize::try_from(limit).unwrap_or(usize::MAX))
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

#[cfg(test)]
mod tests;
