//! Following a stream: rows go out as they come, and reach the reader whenever there are no more for now.

use super::{Ended, Gate, Out, Pass, Run, RunError};
use crate::answers::add_gap;
use crate::plan::Plan;
use record::{Lookups, Push, Sink, SourceError, Stream, StreamState, Table, Value};

/// Lookups that may change between two batches of rows: nothing borrows from them then.
pub trait RenewedLookups {
    /// Calls `then` once, with the lookups for the rows of one batch.
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>));
}

/// Lookups that stay as they are.
struct Fixed<'l>(&'l Lookups<'l>);

impl RenewedLookups for Fixed<'_> {
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>)) {
        then(self.0);
    }
}

/// What each batch of rows passes through.
struct Gated<'g> {
    lookups: &'g mut dyn RenewedLookups,
    /// What the stream does of the filter.
    pushed: &'g [Push],
    /// True once no further row is wanted.
    stop: &'g dyn Fn() -> bool,
}

impl<T: Table> Plan<T> {
    /// Hands the rows of `stream` to `sink` until the stream ends, the limit is reached or the reader goes away.
    ///
    /// The plan must be streaming (see [`Plan::is_streaming`]): order and groups need a last row, so they are not
    /// looked at. The row counts are those of [`Plan::run`].
    ///
    /// A live stream knows itself when to end, and what it has read by then is shown. `stop` is for those that do not:
    /// once it is true no further row is shown (a replay, whose rows follow each other without a wait).
    pub fn follow(
        &self,
        stream: &mut dyn Stream<T>,
        lookups: &Lookups<'_>,
        sink: &mut dyn Sink,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, RunError> {
        self.follow_renewed(stream, &mut Fixed(lookups), sink, stop)
    }

    /// The same with lookups that are asked for anew before each batch of rows.
    pub fn follow_renewed(
        &self,
        stream: &mut dyn Stream<T>,
        lookups: &mut dyn RenewedLookups,
        sink: &mut dyn Sink,
        stop: &dyn Fn() -> bool,
    ) -> Result<Run, RunError> {
        let offer = stream.offer(&self.demand);
        self.check(&offer).map_err(RunError::Unanswered)?;
        let gap = self.filter_gap(&offer);
        let mut out = Out { sink, columns: &self.columns, round: None, begun: false, fault: None };
        let mut pass = Pass::new(self.limit);
        let mut broken = None;
        if pass.ended == Ended::Whole {
            // A reader may wait for the header to know that it has begun.
            out.flush();
            let mut gated = Gated { lookups, pushed: &offer.pushed, stop };
            broken = self.batches(stream, &mut gated, &mut out, &mut pass)?;
        }
        let mut from_stream = stream.close();
        if let Some(error) = broken {
            from_stream.incomplete = true;
            from_stream.add_reason(0, error.to_string());
        }
        add_gap(gap.as_deref(), &mut from_stream);
        self.close(out, pass, from_stream)
    }

    // The error of a stream that broke off after rows are out: what is missing is then said beside them.
    fn batches(
        &self,
        stream: &mut dyn Stream<T>,
        gated: &mut Gated<'_>,
        out: &mut Out<'_>,
        pass: &mut Pass,
    ) -> Result<Option<SourceError>, RunError> {
        let mut spare = vec![Value::Null; self.cells.len()];
        while pass.ended == Ended::Whole && out.fault.is_none() {
            // A caller that gives no lookups wants no more rows.
            let mut state = Ok(StreamState::Ended);
            let (pushed, stop) = (gated.pushed, gated.stop);
            gated.lookups.with(&mut |lookups| {
                let gate = Gate { residual: self.predicate.residual(pushed), gap: None, lookups, stop };
                let mut each = |row: &T::Row<'_>| self.write_row(row, &gate, out, pass, &mut spare);
                state = stream.next(&self.demand, &mut each);
            });
            out.flush();
            match state {
                Ok(StreamState::Ended) => break,
                Ok(StreamState::Open) => {}
                Err(error) if pass.handed == 0 => return Err(RunError::Source(error)),
                Err(error) => return Ok(Some(error)),
            }
            // A batch may be without rows, and rows are looked at now and then only.
            if pass.ended == Ended::Whole && (gated.stop)() {
                pass.ended = Ended::Stopped;
            }
        }
        Ok(None)
    }
}

impl Out<'_> {
    /// What waits reaches the reader; a reader that went away is learnt here, too.
    fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = self.begin().and_then(|()| self.sink.flush()).err();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::PlanRequest;
    use crate::run::Ended;
    use record::rows::{SocketEvent, SocketEvents};
    use record::{Accounting, Columns, Demand, Each, Next, Offer, Round, SinkError, SourceError, field_index};

    /// As many rows at a time as the numbers say; how many it made.
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

    /// Writes down what it is called for; the reader goes away at the flush given.
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

    /// Ctrl-C in a replay, whose stream does not know of it; also where batches have no rows.
    #[test]
    fn issue_10_a_stop_ends_it_after_the_batch() {
        let (calls, run) = follow_until(&[1, 1, 1], None, 0, &|| true);
        assert_eq!((&*calls, run.ended), ("bfrfe", Ended::Stopped));
        let (calls, run) = follow_until(&[0, 0, 0], None, 0, &|| true);
        assert_eq!((&*calls, run.ended), ("bffe", Ended::Stopped));
    }
}
