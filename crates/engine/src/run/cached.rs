//! Rounds in which rows that are the same as in the round before are not made again. See [`crate::rendered_rows`].

use super::EndReason;
use super::cells::{clear_cells, fill};
use super::gate::{Gate, PassCounts};
use super::output::Out;
use crate::order::{RowOrder, Sorter};
use crate::plan::Plan;
use crate::rendered_rows::RenderedRows;
use record::{Accounting, CachedRow, Get, Hole, Next, RowBytes, RowCache, Scan, SourceError, Table, Value};
use std::cell::RefCell;
use std::mem;

impl<T: Table> Plan<T> {
    /// Returns the column that shows a field, if one does; `None` if the field is also used for anything else.
    fn only_column_of(&self, field: usize) -> Option<Option<usize>> {
        let mut is_tested = false;
        self.demand.conjuncts.iter().for_each(|part| part.for_each_test(&mut |test| is_tested |= test.field == field));
        let name = T::FIELDS.get(field)?.name;
        let mut columns = self.columns.0.iter().enumerate().filter(|(_, column)| *column.name == *name);
        let first = columns.next().map(|(at, _)| at);
        (!is_tested && columns.next().is_none()).then_some(first)
    }

    /// Outputs rows as they arrive; unchanged ones with their text from the round before.
    pub(super) fn stream_cached(
        &self,
        scan: &mut dyn Scan<T>,
        streaming: Streaming<'_, '_, '_, T>,
    ) -> Result<Accounting, SourceError> {
        self.read_cached(scan, streaming).map(|(from_source, _)| from_source)
    }

    /// Outputs rows that have a rate in their order, then unchanged ones as they arrived, with their text from the
    /// round before, then rows without a rate. Only the first and the last are kept as cells.
    pub(super) fn sort_cached(
        &self,
        order: &RowOrder,
        scan: &mut dyn Scan<T>,
        mut streaming: Streaming<'_, '_, '_, T>,
    ) -> Result<Accounting, SourceError> {
        let shown = self.columns.0.len();
        let sorter = Sorter::new(order, self.cells.len(), shown, None);
        streaming.deferred = Some(DeferredRows { sorter, shown, holes: Vec::new(), count: 0 });
        let (from_source, streaming) = self.read_cached(scan, streaming)?;
        let Streaming { deferred, rendered, out, pass, .. } = streaming;
        if let Some(deferred) = deferred {
            let rates: Vec<usize> = order.keys.iter().map(|&(place, _)| place).collect();
            deferred.write(&rates, rendered, out, pass);
        }
        Ok(from_source)
    }

    /// Reads all rows. Returns the source's counts, and the data with the rows that are not yet written.
    fn read_cached<'p, 'o, 'g>(
        &self,
        scan: &mut dyn Scan<T>,
        streaming: Streaming<'p, 'o, 'g, T>,
    ) -> Result<(Accounting, Streaming<'p, 'o, 'g, T>), SourceError> {
        streaming.rendered.begin();
        let shared = Shared { plan: self, streaming: RefCell::new(streaming) };
        let mut spare = vec![Value::Null; self.cells.len()];
        let from_source = scan.run_cached(&shared, &mut |row| {
            // One vector for all rows, see `clear_cells`.
            shared.streaming.borrow_mut().row(&self.cells, row, &mut spare)
        });
        Ok((from_source?, shared.streaming.into_inner()))
    }
}

/// The data that both decoded and reused rows need.
pub(super) struct Streaming<'p, 'o, 'g, T: Table> {
    /// The gate that rows pass, and their output.
    gate: &'p Gate<'g, T>,
    out: &'p mut Out<'o>,
    pass: &'p mut PassCounts,
    /// The rows of the round before and of this one.
    rendered: &'p mut RenderedRows,
    /// The tag of the next decoded row.
    tag: Option<u32>,
    /// The rows that are written after the last one has arrived; `None` if each is written at once.
    deferred: Option<DeferredRows>,
}

/// Rows of an order by rate. The texts of unchanged ones are in [`RenderedRows`].
struct DeferredRows {
    /// The other rows.
    sorter: Sorter,
    /// Number of cells that are columns; the cells after them are only keys.
    shown: usize,
    /// The cells that the texts of the unchanged rows lack, in the order of these rows; empty if none is missing.
    holes: Vec<Value<'static>>,
    /// Number of rows.
    count: u64,
}

impl DeferredRows {
    /// Writes all rows; `rates` are the places of the keys in a row's cells.
    fn write(self, rates: &[usize], rendered: &RenderedRows, out: &mut Out<'_>, pass: &mut PassCounts) {
        let DeferredRows { sorter, shown, holes, count } = self;
        let mut unchanged = Some(holes);
        sorter.finish(|cells| {
            let has_rate = |place: &usize| !matches!(cells.get(*place), None | Some(Value::Null | Value::U64(0)));
            match unchanged.take_if(|_| !rates.iter().any(has_rate)) {
                Some(holes) if write_unchanged(&holes, rendered, out, pass) == Next::Stop => Next::Stop,
                _ => out.row(cells.get(..shown).unwrap_or(cells), pass),
            }
        });
        if let Some(holes) = unchanged.filter(|_| pass.ended != EndReason::Closed) {
            let _ = write_unchanged(&holes, rendered, out, pass);
        }
        if pass.ended == EndReason::Closed {
            pass.stats.cut = count - pass.stats.emitted - pass.stats.failed;
        }
    }
}

/// Writes the unchanged rows from their texts.
fn write_unchanged(
    holes: &[Value<'static>],
    rendered: &RenderedRows,
    out: &mut Out<'_>,
    pass: &mut PassCounts,
) -> Next {
    for (n, (kept, text)) in rendered.passed_rows().enumerate() {
        let hole = rendered.hole(kept, holes.get(n).copied().unwrap_or(Value::Null));
        if out.put(pass, |sink| sink.write_rendered(text, hole)) == Next::Stop {
            return Next::Stop;
        }
    }
    Next::More
}

/// Returns the value if it borrows nothing.
fn to_static(value: Value<'_>) -> Option<Value<'static>> {
    match value {
        Value::Null => Some(Value::Null),
        Value::U64(n) => Some(Value::U64(n)),
        Value::I64(n) => Some(Value::I64(n)),
        Value::Thousandths(n) => Some(Value::Thousandths(n)),
        _ => None,
    }
}

impl<'p, 'o, 'g, T: Table> Streaming<'p, 'o, 'g, T> {
    pub(super) fn new(
        gate: &'p Gate<'g, T>,
        out: &'p mut Out<'o>,
        pass: &'p mut PassCounts,
        rendered: &'p mut RenderedRows,
    ) -> Streaming<'p, 'o, 'g, T> {
        Streaming { gate, out, pass, rendered, tag: Some(0), deferred: None }
    }

    /// Handles a row that the source decoded: tests it, writes or defers it, and keeps it if it has a tag.
    fn row(&mut self, plan: &[Get<T>], row: &T::Row<'_>, spare: &mut Vec<Value<'static>>) -> Next {
        let tag = self.tag.replace(0);
        if tag.is_none() {
            self.rendered.invalidate();
        }
        if self.gate.admits(row, self.pass) {
            let gate = self.gate;
            let mut cells = mem::take(spare);
            fill(plan, row, gate.lookups, &mut cells);
            match self.deferred.is_some() {
                true => self.defer_row(&cells, tag),
                false => self.write(&cells, tag),
            }
            *spare = clear_cells(cells);
        } else if let Some(tag) = tag {
            self.rendered.store_pending(tag, None);
        }
        self.pass.next()
    }

    /// Writes a row, and keeps its text if it was looked up.
    fn write(&mut self, cells: &[Value<'_>], tag: Option<u32>) {
        let column = self.rendered.hole_column();
        let rendered = self.rendered.pending_buffer().and_then(|fresh| self.out.render(cells, column, fresh));
        // `pass` also has the answer.
        let _ = match rendered {
            Some(at) => {
                let hole = column.and_then(|column| Some(Hole { column, at, value: *cells.get(column)? }));
                self.out.put(self.pass, |sink| sink.write_rendered(self.rendered.pending_text(), hole))
            }
            None => self.out.put(self.pass, |sink| sink.row(cells)),
        };
        if let Some((tag, at)) = tag.zip(rendered) {
            self.rendered.store_pending(tag, Some(at));
        }
    }

    /// Keeps the text of a row whose rates are zero or unknown, and the cells of any other.
    fn defer_row(&mut self, cells: &[Value<'_>], tag: Option<u32>) {
        let Some(deferred) = &mut self.deferred else { return };
        deferred.count += 1;
        let column = self.rendered.hole_column();
        let missing = column.map(|column| cells.get(column).copied().and_then(to_static));
        let shown = cells.get(..deferred.shown).unwrap_or(cells);
        let rendered = self.rendered.pending_buffer().and_then(|fresh| self.out.render(shown, column, fresh));
        match (tag.zip(rendered), missing) {
            (Some((tag, at)), None) if self.rendered.store_pending(tag, Some(at)) => {}
            (Some((tag, at)), Some(Some(value))) if self.rendered.store_pending(tag, Some(at)) => {
                deferred.holes.push(value)
            }
            _ => deferred.sorter.add(cells),
        }
    }

    /// Handles a row as undecoded bytes: if they are the same as in the round before, writes its text again or defers
    /// that.
    #[inline]
    fn reuse(&mut self, bytes: RowBytes<'_>) -> Option<CachedRow> {
        let kept = self.rendered.find_unchanged(bytes)?;
        self.gate.count(self.pass);
        match (self.rendered.text(kept), &mut self.deferred) {
            (None, _) => self.pass.stats.filtered += 1,
            (Some(text), None) => {
                let hole = self.rendered.hole(kept, bytes.beside);
                let _ = self.out.put(self.pass, |sink| sink.write_rendered(text, hole));
            }
            (Some(_), Some(deferred)) => {
                deferred.count += 1;
                if self.rendered.hole_column().is_some() {
                    deferred.holes.push(to_static(bytes.beside).unwrap_or(Value::Null));
                }
            }
        }
        Some(CachedRow { next: self.pass.next(), tag: kept.tag() })
    }
}

/// A [`Streaming`] for two callers: the source asks before it decodes, and passes on the rows that were unknown.
struct Shared<'a, 'p, 'o, 'g, T: Table> {
    plan: &'a Plan<T>,
    streaming: RefCell<Streaming<'p, 'o, 'g, T>>,
}

impl<T: Table> RowCache for Shared<'_, '_, '_, '_, T> {
    fn exclude_field(&self, field: usize) -> bool {
        let Some(column) = self.plan.only_column_of(field) else { return false };
        self.streaming.borrow_mut().rendered.set_hole_column(column);
        true
    }

    fn reuse(&self, bytes: RowBytes<'_>) -> Option<CachedRow> {
        self.streaming.borrow_mut().reuse(bytes)
    }

    fn invalidate(&self) {
        self.streaming.borrow_mut().rendered.invalidate();
    }

    fn set_tag(&self, tag: Option<u32>) {
        self.streaming.borrow_mut().tag = tag;
    }
}
