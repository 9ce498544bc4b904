#![allow(clippy::unwrap_used)]
use super::*;
use crate::plan::{Plan, PlanRequest, SortKey};
use crate::run::{Disposition, EndReason, ReadRows, RowSink, Run};
use record::rows::{SocketEvent, SocketEvents};
use record::{Columns, Next, RowCells, Schema, Sink, SinkError, SourceFault, Value, field_index};

/// The number of a batch that ends the stream with an error.
const BROKEN: u64 = u64::MAX;

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
        let broken = || SourceError { what: "events", fault: SourceFault::Io, cause: "broken".into() };
        match self.0.first() {
            None => Ok(StreamState::Ended),
            Some(&BROKEN) => Err(broken()),
            Some(_) => Ok(StreamState::Open),
        }
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

fn no_lookups() -> FixedLookups<'static> {
    FixedLookups(Lookups::empty())
}

fn follow(rows: &[u64], limit: Option<u64>, closed_at: u32) -> (String, Run) {
    follow_until(rows, limit, closed_at, &|| false)
}

fn follow_until(rows: &[u64], limit: Option<u64>, closed_at: u32, stop: &dyn Fn() -> bool) -> (String, Run) {
    let columns = vec![field_index::<SocketEvents>("cookie").unwrap()];
    let plan = Plan::<SocketEvents>::new(PlanRequest { columns, limit, ..PlanRequest::default() }).unwrap();
    let mut log = Log { closed_at, ..Log::default() };
    let mut stream = Batches(rows.to_vec(), 0);
    let run = plan.run(&mut StreamFeed::new(&mut stream, &mut no_lookups(), stop), &mut log).unwrap();
    assert!(run.stats.balances());
    (log.calls, run)
}

#[test]
fn every_batch_reaches_the_reader_before_the_next_is_awaited() {
    let (calls, run) = follow(&[2, 0, 1], None, 0);
    assert_eq!(calls, "bfrrffrfe");
    assert_eq!((run.stats.emitted, run.stats.lost, run.ended), (3, 7, EndReason::Whole));
}

#[test]
fn a_limit_and_a_closed_pipe_end_it() {
    let (calls, run) = follow(&[2, 2, 2], Some(3), 0);
    assert_eq!((&*calls, run.ended), ("bfrrfrfe", EndReason::Limit));
    let (calls, run) = follow(&[1, 1, 1], None, 2);
    assert_eq!((&*calls, run.ended), ("bfrf", EndReason::Closed));
    let (calls, _) = follow(&[1], Some(0), 0);
    assert_eq!(calls, "be");
}

/// Takes a limited number of rows; records the cookies of rows and of cells.
struct Rows(Vec<(u64, u64)>, u64);

impl RowSink<SocketEvents> for Rows {
    fn row(&mut self, row: &SocketEvent, cells: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        // A cookie of 0 is shown as absent.
        let cell = if let [Value::U64(cell)] = cells.all_cells() { *cell } else { 0 };
        self.0.push((row.cookie, cell));
        if self.0.len() as u64 == self.1 { Disposition::Closed } else { Disposition::Emitted }
    }
    fn flush(&mut self) {}
}

#[test]
fn typed_rows_come_with_their_cells_and_are_counted() {
    let columns = vec![field_index::<SocketEvents>("cookie").unwrap()];
    let plan = Plan::<SocketEvents>::new(PlanRequest { columns, ..PlanRequest::default() }).unwrap();
    for (rows_max, emitted, cut, ended) in [(99, 3, 0, EndReason::Whole), (2, 1, 1, EndReason::Closed)] {
        let mut rows = Rows(Vec::new(), rows_max);
        let (mut stream, mut lookups) = (Batches(vec![2, 1], 0), no_lookups());
        let run = plan.run_rows(&mut StreamFeed::new(&mut stream, &mut lookups, &|| false), &mut rows).unwrap();
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
    let filter = crate::filter::conjuncts(Schema::from_table::<SocketEvents>(), "cookie != 0").unwrap();
    let columns = vec![field_index::<SocketEvents>("cookie").unwrap()];
    let plain = || PlanRequest { columns: columns.clone(), ..PlanRequest::default() };
    for (request, at_once, alone) in [
        (plain(), 3, 0),
        (PlanRequest { limit: Some(9), ..plain() }, 0, 3),
        (PlanRequest { conjuncts: filter, ..plain() }, 0, 1),
    ] {
        let plan = Plan::<SocketEvents>::new(request).unwrap();
        let mut rows = AtOnce::default();
        let (mut stream, mut lookups) = (Batches(vec![2, 0, 1], 0), no_lookups());
        let run = plan.run_rows(&mut StreamFeed::new(&mut stream, &mut lookups, &|| false), &mut rows).unwrap();
        assert!(run.stats.balances());
        assert_eq!((rows.0, rows.1, run.stats.emitted), (at_once, alone, at_once + alone));
        assert_eq!((run.stats.seen, run.stats.filtered), (3, 3 - at_once - alone));
    }
}

/// Ctrl-C in a replay, whose stream does not notice it, even if batches have no rows.
#[test]
fn issue_10_a_stop_ends_it_after_the_batch() {
    let (calls, run) = follow_until(&[1, 1, 1], None, 0, &|| true);
    assert_eq!((&*calls, run.ended), ("bfrfe", EndReason::Stopped));
    let (calls, run) = follow_until(&[0, 0, 0], None, 0, &|| true);
    assert_eq!((&*calls, run.ended), ("bffe", EndReason::Stopped));
}

/// An order needs the last row, so all batches are one table; an error after some rows shows those.
#[test]
fn sorted_rows_of_a_stream_come_at_its_end() {
    let columns = vec![field_index::<SocketEvents>("cookie").unwrap()];
    let request = PlanRequest { columns, sort: SortKey::parse_list("cookie:desc"), ..PlanRequest::default() };
    let plan = Plan::<SocketEvents>::new(request).unwrap();
    for (batches, calls, incomplete) in [(vec![2, 0, 3], "brrrrre", false), (vec![2, 1, BROKEN], "brrre", true)] {
        let (mut log, mut stream) = (Log::default(), Batches(batches, 0));
        let run = plan.run(&mut StreamFeed::new(&mut stream, &mut no_lookups(), &|| false), &mut log).unwrap();
        assert!(run.stats.balances());
        assert_eq!((&*log.calls, run.stats.incomplete, run.stats.lost), (calls, incomplete, 7));
    }
    let mut stream = Batches(vec![0, BROKEN], 0);
    assert!(plan.run(&mut StreamFeed::new(&mut stream, &mut no_lookups(), &|| false), &mut Log::default()).is_err());
}
