//! Rounds in which rows that are the same as in the round before are not made again. See [`crate::rendered_rows`].

use super::{Gate, Out, Pass, Run, RunError, fill, recycled};
use crate::plan::{Plan, Work};
use crate::rendered_rows::RenderedRows;
use record::{Accounting, Get, Lookups, Next, Reused, Round, RowBytes, RowCache, Scan, Sink, Source, Table, Value};
use std::cell::RefCell;
use std::mem;

/// A plan for one of several rounds into the same sink, with the rows kept from the round before.
pub struct CachedPlan<'k, T: Table> {
    plan: &'k Plan<T>,
    rendered: &'k mut RenderedRows,
}

impl<T: Table> CachedPlan<'_, T> {
    /// Like [`Plan::run`], but does not make rows again that are the same as in the round before. This is possible for
    /// rows that are output as they arrive, to a sink that keeps its rows.
    ///
    /// Such a row costs about a fifth, the others a few nanoseconds more.
    pub fn run(
        self,
        source: &dyn Source<T>,
        lookups: &Lookups<'_>,
        sink: &mut dyn Sink,
        round: Option<Round>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, RunError> {
        let plan = self.plan;
        // An order needs cells, and a limit of the plan or the sink must be checked for each row.
        let is_bound = plan.limit.is_some() || sink.rows_wanted().is_some();
        let fits = matches!(plan.work, Work::Stream) && !is_bound && sink.can_reuse();
        let mut scan = source.prepare(&plan.demand);
        let gate = plan.gate(&*scan, lookups, stop)?;
        plan.read(&mut *scan, &gate, plan.out(sink, round), fits.then_some(self.rendered))
    }
}

impl<T: Table> Plan<T> {
    /// Returns the plan for a round that follows another, with the rows that `rendered` keeps from it. Lookups must
    /// return the same values in both; otherwise call [`RenderedRows::clear`] first.
    pub fn cached<'k>(&'k self, rendered: &'k mut RenderedRows) -> CachedPlan<'k, T> {
        CachedPlan { plan: self, rendered }
    }

    /// Returns the column that shows a field, if one does; `None` if the field is also used for anything else.
    fn column_but_for(&self, field: usize) -> Option<Option<usize>> {
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
        gate: &Gate<'_, T>,
        out: &mut Out<'_>,
        pass: &mut Pass,
        rendered: &mut RenderedRows,
    ) -> Result<Accounting, RunError> {
        rendered.begin();
        let streaming = RefCell::new(Streaming { gate, out, pass, rendered, tag: Some(0) });
        let shared = Shared { plan: self, streaming };
        let mut spare = vec![Value::Null; self.cells.len()];
        let from_source = scan.run_cached(&shared, &mut |row| {
            // One vector for all rows, like in `stream`.
            shared.streaming.borrow_mut().row(&self.cells, row, &mut spare)
        });
        from_source.map_err(RunError::Source)
    }
}

/// The data that both decoded and reused rows need.
struct Streaming<'p, 'o, 'g, T: Table> {
    /// The gate that rows pass, and their output.
    gate: &'p Gate<'g, T>,
    out: &'p mut Out<'o>,
    pass: &'p mut Pass,
    /// The rows of the round before and of this one.
    rendered: &'p mut RenderedRows,
    /// The tag of the next decoded row.
    tag: Option<u32>,
}

impl<T: Table> Streaming<'_, '_, '_, T> {
    /// Handles a row that the source decoded: tests it, writes it, and keeps it if it has a tag.
    fn row(&mut self, plan: &[Get<T>], row: &T::Row<'_>, spare: &mut Vec<Value<'static>>) -> Next {
        let tag = self.tag.replace(0);
        if tag.is_none() {
            self.rendered.invalidate();
        }
        let mut passed = None;
        if self.gate.admits(row, self.pass) {
            let gate = self.gate;
            let (column, mut hole) = (self.rendered.hole_column(), 0);
            let mut cells = mem::take(spare);
            fill(plan, row, gate.lookups, &mut cells);
            // `pass` also has the answer.
            let _ = match self.rendered.fresh() {
                Some(fresh) => self.out.put(self.pass, |sink| {
                    let row = sink.render_row(&cells, column, fresh)?;
                    hole = row.hole_at;
                    Ok(row.next)
                }),
                None => self.out.put(self.pass, |sink| sink.row(&cells)),
            };
            *spare = recycled(cells);
            passed = Some(hole);
        }
        if let Some(tag) = tag {
            self.rendered.keep(tag, passed);
        }
        self.pass.next()
    }

    /// Handles a row as undecoded bytes: if they are the same as in the round before, writes its text again.
    #[inline]
    fn reuse(&mut self, bytes: RowBytes<'_>) -> Option<Reused> {
        let kept = self.rendered.look(bytes)?;
        self.gate.count(self.pass);
        match self.rendered.text(kept) {
            None => self.pass.stats.filtered += 1,
            Some(text) => {
                let hole = self.rendered.hole(kept, bytes.beside);
                let _ = self.out.put(self.pass, |sink| sink.write_rendered(text, hole));
            }
        }
        Some(Reused { next: self.pass.next(), tag: kept.tag() })
    }
}

/// A [`Streaming`] for two callers: the source asks before it decodes, and passes on the rows that were unknown.
struct Shared<'p, 'o, 'g, T: Table> {
    plan: &'g Plan<T>,
    streaming: RefCell<Streaming<'p, 'o, 'g, T>>,
}

impl<T: Table> RowCache for Shared<'_, '_, '_, T> {
    fn exclude_field(&self, field: usize) -> bool {
        let Some(column) = self.plan.column_but_for(field) else { return false };
        self.streaming.borrow_mut().rendered.set_hole_column(column);
        true
    }

    fn reuse(&self, bytes: RowBytes<'_>) -> Option<Reused> {
        self.streaming.borrow_mut().reuse(bytes)
    }

    fn invalidate(&self) {
        self.streaming.borrow_mut().rendered.invalidate();
    }

    fn set_tag(&self, tag: Option<u32>) {
        self.streaming.borrow_mut().tag = tag;
    }
}
