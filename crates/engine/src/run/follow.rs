//! Following a stream: rows are output as they arrive, and flushed whenever there are no more for now.

use super::{CellsOnDemand, Disposition, Ended, Gate, Out, Pass, Run, RunError, fill};
use crate::answers::add_gap;
use crate::plan::Plan;
use record::{Accounting, Each, Lookups, Next, Push, RowCells, Sink, SourceError, Stream, StreamState, Table, Value};

/// Lookups that may change between two batches of rows, while nothing borrows from them.
pub trait RenewedLookups {
    /// Calls `then` once, with the lookups for the rows of one batch.
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>));
}

/// Lookups that never change.
struct Fixed<'l>(&'l Lookups<'l>);

impl RenewedLookups for Fixed<'_> {
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>)) {
        then(self.0);
    }
}

/// Reads a batch: calls the given closure with each of its rows.
pub type ReadRows<'r, T> = dyn FnMut(&mut Each<'_, T>) + 'r;

/// A receiver of a stream's typed rows.
pub trait RowSink<T: Table> {
    /// Takes a row that passed the filter, with its planned cells. All of it is borrowed: copy what you keep.
    fn row(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>) -> Disposition;

    /// Takes all rows of a batch without a filter and without their cells: calls `read` once, with a closure that
    /// always wants more, and returns the number of rows. Returns `None`, without a call, if rows must go through
    /// [`RowSink::row`].
    fn all_rows(&mut self, read: &mut ReadRows<'_, T>) -> Option<u64> {
        let _ = read;
        None
    }

    /// Ends a batch: there are no more rows for now, and `cells` can make cells of rows that were kept.
    fn end_batch(&mut self, cells: &CellsOf<'_, T>) {
        let _ = cells;
    }

    /// Outputs the rows so far: there are no more for now.
    fn flush(&mut self);
}

/// Makes the planned cells of rows that a sink has kept.
pub struct CellsOf<'c, T: Table> {
    plan: &'c Plan<T>,
    lookups: &'c Lookups<'c>,
}

impl<T: Table> CellsOf<'_, T> {
    /// Returns the lookups that names come from.
    pub fn lookups(&self) -> &Lookups<'_> {
        self.lookups
    }

    /// Passes the cells of `row` to `then`. Allocates.
    pub fn with(&self, row: &T::Row<'_>, then: &mut dyn FnMut(&[Value<'_>])) {
        let mut cells = vec![Value::Null; self.plan.cells.len()];
        fill(&self.plan.cells, row, self.lookups, &mut cells);
        then(&cells);
    }
}

/// The destination of a stream's rows.
trait Receiver<T: Table> {
    fn row(&mut self, row: &T::Row<'_>, gate: &Gate<'_, T>, pass: &mut Pass) -> Next;
    /// Takes the next batch.
    fn batch(&mut self, read: &mut ReadRows<'_, T>, gate: &Gate<'_, T>, pass: &mut Pass) {
        read(&mut |row| self.row(row, gate, pass));
    }
    fn end_batch(&mut self, _: &Lookups<'_>) {}
    fn flush(&mut self);
    fn takes_more(&self) -> bool;
}

/// Passes cells to a sink.
struct Cells<'p, 's, T: Table> {
    plan: &'p Plan<T>,
    out: Out<'s>,
    spare: Vec<Value<'static>>,
}

impl<T: Table> Receiver<T> for Cells<'_, '_, T> {
    fn row(&mut self, row: &T::Row<'_>, gate: &Gate<'_, T>, pass: &mut Pass) -> Next {
        self.plan.write_row(row, gate, &mut self.out, pass, &mut self.spare)
    }

    fn flush(&mut self) {
        self.out.flush();
    }

    fn takes_more(&self) -> bool {
        self.out.fault.is_none()
    }
}

/// Passes typed rows on, with their cells on demand.
struct Typed<'p, 's, T: Table, S: ?Sized> {
    plan: &'p Plan<T>,
    rows: &'s mut S,
    spare: Vec<Value<'static>>,
}

impl<T: Table, S: RowSink<T> + ?Sized> Receiver<T> for Typed<'_, '_, T, S> {
    #[inline]
    fn row(&mut self, row: &T::Row<'_>, gate: &Gate<'_, T>, pass: &mut Pass) -> Next {
        if gate.admits(row, pass) {
            let mut cells = CellsOnDemand::new(&self.plan.cells, row, gate.lookups, &mut self.spare);
            pass.dispose(self.rows.row(row, &mut cells, gate.lookups));
            cells.recycle();
        }
        pass.next()
    }

    fn batch(&mut self, read: &mut ReadRows<'_, T>, gate: &Gate<'_, T>, pass: &mut Pass) {
        let rows = if gate.admits_all() && !pass.has_limit() { self.rows.all_rows(read) } else { None };
        match rows {
            Some(rows) => pass.emit(rows),
            None => read(&mut |row| self.row(row, gate, pass)),
        }
    }

    fn end_batch(&mut self, lookups: &Lookups<'_>) {
        self.rows.end_batch(&self.plan.cells_of(lookups));
    }

    fn flush(&mut self) {
        self.rows.flush();
    }

    fn takes_more(&self) -> bool {
        true
    }
}

/// The parts of the gate for each batch of rows.
struct Gated<'g> {
    lookups: &'g mut dyn RenewedLookups,
    /// The parts of the filter that the stream applies.
    pushed: &'g [Push],
    /// True once no further row is wanted.
    stop: &'g dyn Fn() -> bool,
}

impl<T: Table> Plan<T> {
    /// Passes the rows of `stream` to `sink` until the stream ends, the limit is reached or the reader goes away.
    ///
    /// The plan must be streaming (see [`Plan::is_streaming`]): order and groups need a last row, so they are ignored.
    /// The row counts are the same as for [`Plan::run`].
    ///
    /// A live stream itself knows when to end, and the rows read by then are shown. `stop` is for streams that do not
    /// (a replay, whose rows follow each other without a wait): once it returns true, no further row is shown.
    pub fn follow(
        &self,
        stream: &mut dyn Stream<T>,
        lookups: &Lookups<'_>,
        sink: &mut dyn Sink,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, RunError> {
        self.follow_renewed(stream, &mut Fixed(lookups), sink, stop)
    }

    /// Like [`Plan::follow`], with lookups that are renewed before each batch of rows.
    pub fn follow_renewed(
        &self,
        stream: &mut dyn Stream<T>,
        lookups: &mut dyn RenewedLookups,
        sink: &mut dyn Sink,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, RunError> {
        let out = Out::new(sink, &self.columns, None);
        let mut cells = Cells { plan: self, out, spare: vec![Value::Null; self.cells.len()] };
        let (pass, from_stream) = self.follow_to(stream, lookups, &mut cells, stop)?;
        self.close(cells.out, pass, from_stream)
    }

    /// Passes the rows of `stream` to `rows` until the stream ends, the limit is reached or `rows` wants no more.
    /// `rows` gets the cells of the plan's columns; order and groups are ignored.
    pub fn follow_rows<S: RowSink<T> + ?Sized>(
        &self,
        stream: &mut dyn Stream<T>,
        lookups: &mut dyn RenewedLookups,
        rows: &mut S,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, RunError> {
        let mut typed = Typed { plan: self, rows, spare: vec![Value::Null; self.cells.len()] };
        let (pass, mut stats) = self.follow_to(stream, lookups, &mut typed, stop)?;
        pass.settle(&mut stats);
        Ok(Run { stats, ended: pass.ended })
    }

    /// Returns a maker of cells for rows that were kept; names come from `lookups`.
    pub fn cells_of<'c>(&'c self, lookups: &'c Lookups<'c>) -> CellsOf<'c, T> {
        CellsOf { plan: self, lookups }
    }

    fn follow_to<R: Receiver<T>>(
        &self,
        stream: &mut dyn Stream<T>,
        lookups: &mut dyn RenewedLookups,
        to: &mut R,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Pass, Accounting), RunError> {
        let offer = stream.offer(&self.demand);
        self.check(&offer).map_err(RunError::Unanswered)?;
        let gap = self.filter_gap(&offer);
        let mut pass = Pass::new(self.limit);
        let mut broken = None;
        if pass.ended == Ended::Whole {
            // A reader may wait for the header to learn that the stream has begun.
            to.flush();
            let mut gated = Gated { lookups, pushed: &offer.pushed, stop };
            broken = self.batches(stream, &mut gated, to, &mut pass)?;
        }
        let mut from_stream = stream.close();
        if let Some(error) = broken {
            from_stream.incomplete(0, error.to_string());
        }
        add_gap(gap.as_deref(), &mut from_stream);
        Ok((pass, from_stream))
    }

    // Returns the error of a stream that broke off after rows were output; the missing rows are then reported with
    // them.
    fn batches<R: Receiver<T>>(
        &self,
        stream: &mut dyn Stream<T>,
        gated: &mut Gated<'_>,
        to: &mut R,
        pass: &mut Pass,
    ) -> Result<Option<SourceError>, RunError> {
        while pass.ended == Ended::Whole && to.takes_more() {
            // A caller that gives no lookups wants no more rows.
            let mut state = Ok(StreamState::Ended);
            let (pushed, stop) = (gated.pushed, gated.stop);
            gated.lookups.with(&mut |lookups| {
                let gate = Gate { residual: self.predicate.residual(pushed), gap: None, lookups, stop };
                to.batch(&mut |each| state = stream.next(&self.demand, each), &gate, pass);
                to.end_batch(lookups);
            });
            to.flush();
            match state {
                Ok(StreamState::Ended) => break,
                Ok(StreamState::Open) => {}
                Err(error) if pass.handed == 0 => return Err(RunError::Source(error)),
                Err(error) => return Ok(Some(error)),
            }
            // A batch may have no rows, and `stop` is polled only once in a number of rows.
            if pass.ended == Ended::Whole && (gated.stop)() {
                pass.ended = Ended::Stopped;
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::PlanRequest;
    use crate::run::Ended;
    use record::rows::{SocketEvent, SocketEvents};
    use record::{Columns, Demand, Offer, Round, Schema, SinkError, field_index};

    /// A stream with these numbers of rows per batch, and the number of rows it made.
    struct Batches(Vec<u64>, u64);

    impl Stream<SocketEvents> for Batches {
        fn offer(&self, _: &Demand<SocketEvents>) -> Offer {
            Offer::default()
        }

        fn next(
            &mut self,
            _: &Demand<SocketEvents>,
            each: &mut Each<'_, SocketEvents>,
        ) -> Result<StreamState, SourceError> {
            let rows = self.0.remove(0);
            for cookie in 0..rows {
                self.1 += 1;
                if each(&SocketEvent { cookie, ..SocketEvent::EMPTY }) == Next::Stop {
                    return Ok(StreamState::Open);
                }
            }
            Ok(if self.0.is_empty() { StreamState::Ended } else { StreamState::Open })
        }

        fn close(&mut self) -> Accounting {
            Accounting { seen: self.1, lost: 7, ..Accounting::default() }
        }
    }

    /// Records its calls; the reader goes away at the given flush.
    #[derive(Default)]
    struct Log {
        calls: String,
        flushes: u32,
        closed_at: u32,
    }

    impl Sink for Log {
        fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
            self.calls.push('b');
            Ok(())
        }
        fn row(&mut self, _: &[Value<'_>]) -> Result<Next, SinkError> {
            self.calls.push('r');
            Ok(Next::More)
        }
        fn flush(&mut self) -> Result<(), SinkError> {
            self.calls.push('f');
            self.flushes += 1;
            if self.flushes == self.closed_at { Err(SinkError::Closed) } else { Ok(()) }
        }
        fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
            self.calls.push('e');
            Ok(())
        }
    }

    fn follow(rows: &[u64], limit: Option<u64>, closed_at: u32) -> (String, Run) {
        follow_until(rows, limit, closed_at, &|| false)
    }

    fn follow_until(rows: &[u64], limit: Option<u64>, closed_at: u32, stop: &dyn Fn() -> bool) -> (String, Run) {
        let columns = vec![field_index::<SocketEvents>("cookie").unwrap()];
        let plan = Plan::<SocketEvents>::new(PlanRequest { columns, limit, ..PlanRequest::default() }).unwrap();
        let mut log = Log { closed_at, ..Log::default() };
        let run = plan.follow(&mut Batches(rows.to_vec(), 0), &Lookups::none(), &mut log, stop).unwrap();
        assert!(run.stats.balances());
        (log.calls, run)
    }

    #[test]
    fn every_batch_reaches_the_reader_before_the_next_is_awaited() {
        let (calls, run) = follow(&[2, 0, 1], None, 0);
        assert_eq!(calls, "bfrrffrfe");
        assert_eq!((run.stats.emitted, run.stats.lost, run.ended), (3, 7, Ended::Whole));
    }

    #[test]
    fn a_limit_and_a_closed_pipe_end_it() {
        let (calls, run) = follow(&[2, 2, 2], Some(3), 0);
        assert_eq!((&*calls, run.ended), ("bfrrfrfe", Ended::Limit));
        let (calls, run) = follow(&[1, 1, 1], None, 2);
        assert_eq!((&*calls, run.ended), ("bfrf", Ended::Closed));
        let (calls, _) = follow(&[1], Some(0), 0);
        assert_eq!(calls, "be");
    }

    /// Takes a limited number of rows; records the cookies of rows and of cells.
    struct Rows(Vec<(u64, u64)>, u64);

    impl RowSink<SocketEvents> for Rows {
        fn row(&mut self, row: &SocketEvent, cells: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
            // A cookie of 0 is shown as absent.
            let of = |cell: Value<'_>| if let Value::U64(cell) = cell { cell } else { 0 };
            let cell = of(cells.cell(0));
            assert_eq!((of(cells.all()[0]), cells.cell(1)), (cell, Value::Null));
            self.0.push((row.cookie, cell));
            if self.0.len() as u64 == self.1 { Disposition::Closed } else { Disposition::Emitted }
        }
        fn flush(&mut self) {}
    }

    #[test]
    fn typed_rows_come_with_their_cells_and_are_counted() {
        let columns = vec![field_index::<SocketEvents>("cookie").unwrap()];
        let plan = Plan::<SocketEvents>::new(PlanRequest { columns, ..PlanRequest::default() }).unwrap();
        for (rows_max, emitted, cut, ended) in [(99, 3, 0, Ended::Whole), (2, 1, 1, Ended::Closed)] {
            let mut rows = Rows(Vec::new(), rows_max);
            let none = Lookups::none();
            let mut lookups = Fixed(&none);
            let run = plan.follow_rows(&mut Batches(vec![2, 1], 0), &mut lookups, &mut rows, &|| false).unwrap();
            assert!(run.stats.balances());
            assert_eq!((run.stats.emitted, run.stats.cut, run.ended), (emitted, cut, ended));
            assert!(rows.0.iter().all(|(cookie, cell)| cell == cookie));
        }
    }

    /// Takes the rows of a batch all at once if it may; counts those, and the rows that came one by one.
    #[derive(Default)]
    struct AtOnce(u64, u64);

    impl RowSink<SocketEvents> for AtOnce {
        fn row(&mut self, _: &SocketEvent, _: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
            self.1 += 1;
            Disposition::Emitted
        }
        fn all_rows(&mut self, read: &mut ReadRows<'_, SocketEvents>) -> Option<u64> {
            let before = self.0;
            read(&mut |_| {
                self.0 += 1;
                Next::More
            });
            Some(self.0 - before)
        }
        fn flush(&mut self) {}
    }

    #[test]
    fn issue_12_rows_come_at_once_unless_one_of_them_may_not_pass() {
        let filter = crate::filter::conjuncts(Schema::of::<SocketEvents>(), "cookie != 0").unwrap();
        let columns = vec![field_index::<SocketEvents>("cookie").unwrap()];
        let plain = || PlanRequest { columns: columns.clone(), ..PlanRequest::default() };
        for (request, at_once, alone) in [
            (plain(), 3, 0),
            (PlanRequest { limit: Some(9), ..plain() }, 0, 3),
            (PlanRequest { conjuncts: filter, ..plain() }, 0, 1),
        ] {
            let plan = Plan::<SocketEvents>::new(request).unwrap();
            let (mut rows, none) = (AtOnce::default(), Lookups::none());
            let mut stream = Batches(vec![2, 0, 1], 0);
            let run = plan.follow_rows(&mut stream, &mut Fixed(&none), &mut rows, &|| false).unwrap();
            assert!(run.stats.balances());
            assert_eq!((rows.0, rows.1, run.stats.emitted), (at_once, alone, at_once + alone));
            assert_eq!((run.stats.seen, run.stats.filtered), (3, 3 - at_once - alone));
        }
    }

    /// Ctrl-C in a replay, whose stream does not notice it, even if batches have no rows.
    #[test]
    fn issue_10_a_stop_ends_it_after_the_batch() {
        let (calls, run) = follow_until(&[1, 1, 1], None, 0, &|| true);
        assert_eq!((&*calls, run.ended), ("bfrfe", Ended::Stopped));
        let (calls, run) = follow_until(&[0, 0, 0], None, 0, &|| true);
        assert_eq!((&*calls, run.ended), ("bffe", Ended::Stopped));
    }
}
