//! `--watch` for a stream: groups its rows in rounds, with rates per second.

use engine::{Feed, FeedPart, FeedState, ReadPart, StreamFeed};
use record::{
    Accounting, Column, Columns, Demand, Each, Kind, Next, Offer, Round, Scan, Sink, SinkError, SourceError,
    StreamState, Table, Value,
};
use std::cell::Cell;
use std::time::Duration;
use sys::clock;

/// A column of groups that is also shown per second, in an additional column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupRate {
    /// The column.
    pub of: &'static str,
    /// Name of its rate.
    pub name: &'static str,
    /// Unit of its rate.
    pub kind: Kind,
}

/// State that a round shares with its sink.
#[derive(Default)]
pub(crate) struct RoundFacts {
    /// Duration of the round in ns.
    lasted_ns: Cell<u64>,
    /// True for the final partial round of a run, if it has no rows.
    is_empty_rest: Cell<bool>,
}

/// The rows of a stream in rounds. Each round ends at the next multiple of the period.
pub(crate) struct StreamRounds<'r, 's, T: Table> {
    stream: StreamFeed<'s, T>,
    facts: &'r RoundFacts,
    period_ns: u64,
    start_ns: u64,
    /// Start and planned end of the round, on the monotonic clock; the end is 0 between two rounds.
    begin_ns: u64,
    end_ns: u64,
    /// The number of the round, starting at 1.
    number: u64,
    /// Rows of the round, and of all rounds.
    rows: u64,
    all_rows: u64,
}

impl<'r, 's, T: Table> StreamRounds<'r, 's, T> {
    /// Begins now. `facts` are for the round's sink.
    pub(crate) fn new(stream: StreamFeed<'s, T>, period: Duration, facts: &'r RoundFacts) -> StreamRounds<'r, 's, T> {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let start_ns = clock::monotonic_ns();
        let (begin_ns, end_ns, number, rows, all_rows) = (start_ns, 0, 0, 0, 0);
        StreamRounds { stream, facts, period_ns, start_ns, begin_ns, end_ns, number, rows, all_rows }
    }

    fn begin_round(&mut self) {
        let periods = self.begin_ns.saturating_sub(self.start_ns) / self.period_ns + 1;
        self.end_ns = self.start_ns.saturating_add(periods.saturating_mul(self.period_ns));
        self.number += 1;
        self.rows = 0;
    }

    /// Ends the round if its time is over or the stream `has_ended`; returns true then.
    fn end_round(&mut self, has_ended: bool) -> bool {
        let now_ns = clock::monotonic_ns();
        self.facts.lasted_ns.set(now_ns.saturating_sub(self.begin_ns));
        let is_early = now_ns < self.end_ns;
        self.facts.is_empty_rest.set(has_ended && self.number > 1 && self.rows == 0 && is_early);
        if is_early && !has_ended {
            return false;
        }
        (self.begin_ns, self.end_ns) = (now_ns, 0);
        true
    }
}

impl<T: Table> Feed<T> for StreamRounds<'_, '_, T> {
    fn next(
        &mut self,
        demand: &Demand<T>,
        _: &mut Accounting,
        read: &mut ReadPart<'_, T>,
    ) -> Result<FeedState, SourceError> {
        if self.end_ns == 0 {
            self.begin_round();
        }
        let (round, mut rows) = (Some(Round { n: self.number, time_ns: clock::wall_ns() }), 0);
        let state = self.stream.next_batch(demand, &mut |part| {
            let FeedPart { scan, lookups, stop, answers, .. } = part;
            let scan = &mut CountedScan { inner: scan, rows: &mut rows };
            read(FeedPart { scan, lookups, stop, round, answers, is_live: false });
        });
        self.rows += rows;
        self.all_rows += rows;
        let has_ended = !matches!(state, Ok(StreamState::Open));
        let is_over = self.end_round(has_ended);
        state?;
        Ok(match (has_ended, is_over) {
            (true, _) => FeedState::Ended,
            (false, true) => FeedState::EndOfRound,
            (false, false) => FeedState::Open,
        })
    }

    /// The stream's own counts, without the rows of the rounds.
    fn close(&mut self) -> Accounting {
        let mut rest = self.stream.close();
        rest.seen = rest.seen.saturating_sub(self.all_rows);
        rest
    }
}

/// The rows of a batch, counted: the stream's own counts come at its end, after all rounds.
struct CountedScan<'b, T: Table> {
    inner: &'b mut dyn Scan<T>,
    rows: &'b mut u64,
}

impl<T: Table> Scan<T> for CountedScan<'_, T> {
    fn offer(&self) -> Offer {
        self.inner.offer()
    }

    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        let CountedScan { inner, rows } = self;
        let mut stats = inner.run(&mut |row| {
            **rows += 1;
            each(row)
        })?;
        stats.seen += **rows;
        Ok(stats)
    }
}

/// A sink that adds rates to the groups of a round.
pub(crate) struct RateSink<'s> {
    inner: &'s mut dyn Sink,
    rates: &'s [GroupRate],
    /// The index of the column for each rate.
    columns: Vec<usize>,
    facts: &'s RoundFacts,
}

impl<'s> RateSink<'s> {
    /// Adds the columns `rates` to the groups that `inner` writes.
    pub(crate) fn new(inner: &'s mut dyn Sink, rates: &'s [GroupRate], facts: &'s RoundFacts) -> RateSink<'s> {
        RateSink { inner, rates, columns: Vec::new(), facts }
    }
}

impl Sink for RateSink<'_> {
    fn keeps_addresses(&self) -> bool {
        self.inner.keeps_addresses()
    }

    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        if self.facts.is_empty_rest.get() {
            return Ok(());
        }
        self.columns.clear();
        let mut with_rates = columns.clone();
        for rate in self.rates {
            if let Some(place) = columns.0.iter().position(|column| &*column.name == rate.of) {
                self.columns.push(place);
                with_rates.0.push(Column { name: rate.name.into(), kind: rate.kind });
            }
        }
        self.inner.begin(&with_rates, round)
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let lasted_ns = self.facts.lasted_ns.get();
        let rates = self.columns.iter().map(|place| match cells.get(*place) {
            Some(Value::U64(count)) => by_the_second(*count, lasted_ns),
            _ => Value::Null,
        });
        let cells: Vec<Value<'_>> = cells.iter().copied().chain(rates).collect();
        self.inner.row(&cells)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.inner.flush()
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        if self.facts.is_empty_rest.get() { Ok(()) } else { self.inner.end(totals) }
    }
}

/// A count over `lasted_ns` nanoseconds as a rate per second, rounded.
fn by_the_second(count: u64, lasted_ns: u64) -> Value<'static> {
    let half = u128::from(lasted_ns / 2);
    let rate = (u128::from(count) * 1_000_000_000 + half).checked_div(u128::from(lasted_ns));
    Value::number(rate.and_then(|rate| u64::try_from(rate).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded() {
        assert_eq!(by_the_second(3, 2_000_000_000), Value::U64(2), "1.5");
        assert_eq!(by_the_second(100, 250_000_000), Value::U64(400));
        assert_eq!(by_the_second(u64::MAX, 1), Value::Null);
        assert_eq!(by_the_second(7, 0), Value::Null);
    }
}
