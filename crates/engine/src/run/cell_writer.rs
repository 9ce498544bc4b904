//! Writes the cells of rows to a sink: as the rows arrive, in their order, or in groups.

use super::cached::Streaming;
use super::cells::{clear_cells, fill};
use super::gate::{Gate, PassCounts};
use super::output::Out;
use super::{Answers, EndReason, FeedPart, Receiver, Run, RunError};
use crate::group::{Grouper, folded_reason};
use crate::order::{RowOrder, Sorter};
use crate::plan::{Grouping, Plan, RowWork};
use crate::rendered_rows::RenderedRows;
use record::{Accounting, Round, Scan, Sink, SourceError, Table, Value};
use std::mem;

/// The receiver of rows for a sink.
pub(super) struct CellWriter<'w, T: Table> {
    plan: &'w Plan<T>,
    out: Out<'w>,
    /// One vector for the cells of all rows, see [`clear_cells`].
    spare: Vec<Value<'static>>,
    /// The rows of the round before.
    rendered: &'w mut RenderedRows,
    /// The rows that are written at the end of the round, in an order.
    sorted: Option<SortedRows>,
    /// The groups that are written at the end of the round.
    grouped: Option<GroupedRows>,
}

struct SortedRows {
    sorter: Sorter,
    /// Number of rows that passed the filter.
    passed: u64,
}

struct GroupedRows {
    grouper: Grouper,
    /// Number of rows in all groups.
    rows: u64,
}

impl<'w, T: Table> CellWriter<'w, T> {
    pub(super) fn new(plan: &'w Plan<T>, sink: &'w mut dyn Sink, rendered: &'w mut RenderedRows) -> CellWriter<'w, T> {
        let (out, spare) = (Out::new(sink, &plan.columns), vec![Value::Null; plan.cells.len()]);
        CellWriter { plan, out, spare, rendered, sorted: None, grouped: None }
    }

    /// True if unchanged rows may be written as in the round before. Any other order needs cells, and a limit of the
    /// plan or the sink must be checked for each row.
    fn can_reuse(&self, answers: Answers) -> bool {
        let keeps_order = match &self.plan.work {
            RowWork::Stream => true,
            RowWork::Sort(order) => order.by_rate,
            RowWork::Group(_) => false,
        };
        answers != Answers::Unknown && keeps_order && self.plan.limit.is_none() && self.out.can_reuse()
    }

    /// Writes rows as they arrive.
    fn stream(
        &mut self,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        pass: &mut PassCounts,
    ) -> Result<Accounting, SourceError> {
        let CellWriter { plan, out, spare, .. } = self;
        scan.run(&mut |row| {
            if gate.admits(row, pass) {
                if out.is_full(pass) {
                    out.leave_out(1, pass);
                } else {
                    let mut cells = mem::take(spare);
                    fill(&plan.cells, row, gate.lookups, &mut cells);
                    // `pass` also has the sink's answer.
                    let _ = out.row(&cells, pass);
                    *spare = clear_cells(cells);
                }
                pass.check_limit();
            }
            pass.next()
        })
    }

    /// Keeps rows until the last has arrived.
    fn sort(
        &mut self,
        order: &RowOrder,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        pass: &mut PassCounts,
    ) -> Result<Accounting, SourceError> {
        let CellWriter { plan, out, spare, sorted, .. } = self;
        let SortedRows { sorter, passed } = sorted.get_or_insert_with(|| {
            // Cells after the columns are needed only for the order.
            let (width, shown) = (plan.cells.len(), plan.columns.0.len());
            SortedRows { sorter: Sorter::new(order, width, shown, limit_in_memory(plan, out)), passed: 0 }
        });
        scan.run(&mut |row| {
            if gate.admits(row, pass) {
                *passed += 1;
                let cell = |place: usize| plan.cells.get(place).map_or(Value::Null, |get| get.cell(row, gate.lookups));
                if !sorter.is_surely_cut(cell) {
                    let mut cells = mem::take(spare);
                    fill(&plan.cells, row, gate.lookups, &mut cells);
                    sorter.add(&cells);
                    *spare = clear_cells(cells);
                }
            }
            pass.next()
        })
    }

    /// Counts rows into groups.
    fn group(
        &mut self,
        how: &Grouping,
        scan: &mut dyn Scan<T>,
        gate: &Gate<'_, T>,
        pass: &mut PassCounts,
    ) -> Result<Accounting, SourceError> {
        let CellWriter { plan, spare, grouped, .. } = self;
        let GroupedRows { grouper, rows } = grouped.get_or_insert_with(|| {
            let grouper = Grouper::new(how.keys.clone(), how.folds.clone(), how.bound);
            GroupedRows { grouper, rows: 0 }
        });
        scan.run(&mut |row| {
            if gate.admits(row, pass) {
                *rows += 1;
                let mut cells = mem::take(spare);
                fill(&plan.cells, row, gate.lookups, &mut cells);
                grouper.add(&cells);
                *spare = clear_cells(cells);
            }
            pass.next()
        })
    }

    /// Writes the rows in their order.
    fn write_sorted(&mut self, held: SortedRows, pass: &mut PassCounts) {
        let SortedRows { sorter, passed } = held;
        let (plan, out) = (self.plan, &mut self.out);
        let shown = plan.columns.0.len();
        sorter.finish(|cells| out.row(cells.get(..shown).unwrap_or(cells), pass));
        let written = pass.stats.emitted + pass.stats.failed;
        if pass.ended == EndReason::Closed {
            pass.stats.cut = passed - written;
            return;
        }
        // Rows that passed the filter but were not output are beyond the limit, or not wanted. No other rows are cut.
        let within_limit = passed.min(plan.limit.unwrap_or(u64::MAX));
        out.leave_out(within_limit.saturating_sub(written), pass);
        pass.stats.cut = passed - within_limit;
    }

    /// Writes the groups in their order.
    fn write_groups(&mut self, how: &Grouping, held: GroupedRows, pass: &mut PassCounts, stats: &mut Accounting) {
        let GroupedRows { grouper, rows } = held;
        if grouper.folded_rows() > 0 {
            (stats.incomplete, stats.only_namespaces_missing) = (true, false);
            stats.add_reason(grouper.folded_rows(), folded_reason());
        }
        let (plan, out) = (self.plan, &mut self.out);
        let width = plan.columns.0.len();
        let mut sorter = Sorter::new(&how.order, width, width, limit_in_memory(plan, out));
        let mut groups = 0;
        grouper.finish(|cells| {
            groups += 1;
            sorter.add(cells);
        });
        sorter.finish(|cells| out.row(cells, pass));
        if pass.ended != EndReason::Closed {
            let within_limit = groups.min(plan.limit.unwrap_or(u64::MAX));
            out.leave_out(within_limit.saturating_sub(pass.stats.emitted), pass);
        }
        // `out` has just counted lines that are not rows; the row counts have the rows of the groups instead.
        (pass.stats.emitted, pass.stats.failed, pass.stats.cut) = (0, 0, 0);
        pass.stats.grouped = rows;
    }
}

/// Returns how many of the sorted rows are written; `None` for all.
fn limit_in_memory<T: Table>(plan: &Plan<T>, out: &Out<'_>) -> Option<usize> {
    let limit = plan.limit.unwrap_or(u64::MAX).min(out.rows_wanted());
    (limit < u64::MAX).then(|| usize::try_from(limit).unwrap_or(usize::MAX))
}

impl<T: Table> Receiver<T> for CellWriter<'_, T> {
    fn begin(&mut self, round: Option<Round>) {
        self.out.begin_round(round);
    }

    fn read(
        &mut self,
        part: &mut FeedPart<'_, T>,
        gate: &Gate<'_, T>,
        pass: &mut PassCounts,
    ) -> Result<Accounting, SourceError> {
        let plan = self.plan;
        if self.can_reuse(part.answers) {
            if part.answers == Answers::New {
                self.rendered.clear();
            }
            let streaming = Streaming::new(gate, &mut self.out, pass, self.rendered);
            return match &plan.work {
                RowWork::Sort(order) => plan.sort_cached(order, part.scan, streaming),
                _ => plan.stream_cached(part.scan, streaming),
            };
        }
        match &plan.work {
            RowWork::Stream => self.stream(part.scan, gate, pass),
            RowWork::Sort(order) => self.sort(order, part.scan, gate, pass),
            RowWork::Group(how) => self.group(how, part.scan, gate, pass),
        }
    }

    fn flush(&mut self) {
        // Sorted rows and groups come at the end of the round.
        if self.plan.is_streaming() {
            self.out.flush();
        }
    }

    fn takes_more(&self) -> bool {
        self.out.fault.is_none()
    }

    fn end(&mut self, mut pass: PassCounts, mut stats: Accounting) -> Result<Run, RunError> {
        if let Some(held) = self.sorted.take() {
            self.write_sorted(held, &mut pass);
        }
        if let (RowWork::Group(how), Some(held)) = (&self.plan.work, self.grouped.take()) {
            self.write_groups(how, held, &mut pass, &mut stats);
        }
        self.out.end(pass, stats)
    }
}
