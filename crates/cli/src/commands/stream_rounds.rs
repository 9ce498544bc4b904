//! `--watch` for a stream: groups its rows in rounds, with rates per second.

use crate::command::GroupRate;
use engine::{Ended, Plan, RenewedLookups, ResolvingSink, Run, RunError};
use lookups::names::DnsNames;
use record::{
    Accounting, Column, Columns, Demand, Each, Next, Offer, Round, Sink, SinkError, SourceError, Stream, StreamSource,
    StreamState, Table, Value,
};
use std::cell::Cell;
use std::time::Duration;
use sys::clock;

/// Parameters for reading a stream in rounds.
pub(super) struct StreamRounds<'r, T: Table> {
    pub(super) plan: &'r Plan<T>,
    pub(super) period: Duration,
    /// Columns of groups that are also shown per second.
    pub(super) rates: &'r [GroupRate],
}

/// State that a round shares with its sink.
#[derive(Default)]
struct RoundFacts {
    /// Duration of the round in ns.
    lasted_ns: Cell<u64>,
    /// True for the final partial round of a run, if it has no rows.
    is_empty_rest: Cell<bool>,
}

impl<T: Table> StreamRounds<'_, T> {
    /// Reads rounds until the stream ends or the reader closes the output.
    pub(super) fn read(
        &self,
        stream: &mut dyn Stream<T>,
        lookups: &mut dyn RenewedLookups,
        sink: &mut dyn Sink,
        names: &mut Option<DnsNames<'_>>,
    ) -> Result<Run, RunError> {
        let facts = RoundFacts::default();
        let mut sink = RateSink { inner: sink, rates: self.rates, columns: Vec::new(), facts: &facts };
        let mut all = Run { stats: Accounting::default(), ended: Ended::Whole };
        let period_ns = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let start_ns = clock::monotonic_ns();
        let mut round =
            OneRound { stream, begin_ns: start_ns, end_ns: 0, number: 0, rows: 0, is_over: false, facts: &facts };
        while !round.is_over && all.ended == Ended::Whole {
            round.begin(start_ns, period_ns);
            let run = self.read_one(&mut round, lookups, &mut sink, names)?;
            all.stats.add(&run.stats);
            all.ended = run.ended;
        }
        let handed_out = all.stats.seen;
        let mut rest = round.stream.close();
        rest.seen = rest.seen.saturating_sub(handed_out);
        all.stats.add(&rest);
        Ok(all)
    }

    fn read_one(
        &self,
        round: &mut OneRound<'_, T>,
        lookups: &mut dyn RenewedLookups,
        sink: &mut RateSink<'_>,
        names: &mut Option<DnsNames<'_>>,
    ) -> Result<Run, RunError> {
        let number = Round { n: round.number, time_s: clock::wall().seconds };
        let source = StreamSource::new(round);
        let mut result = Ok(Run { stats: Accounting::default(), ended: Ended::Whole });
        lookups.with(&mut |lookups| {
            result = match names {
                Some(names) => {
                    self.plan.run(&source, lookups, &mut ResolvingSink::new(sink, names), Some(number), &|| false)
                }
                None => self.plan.run(&source, lookups, sink, Some(number), &|| false),
            };
        });
        result
    }
}

/// The rows of a stream until a round ends.
struct OneRound<'r, T: Table> {
    stream: &'r mut dyn Stream<T>,
    /// Start and planned end, on the monotonic clock.
    begin_ns: u64,
    end_ns: u64,
    /// The number of the round, starting at 1.
    number: u64,
    rows: u64,
    /// True if no more rows will arrive.
    is_over: bool,
    facts: &'r RoundFacts,
}

impl<T: Table> OneRound<'_, T> {
    /// Starts the next round, which ends at the next multiple of the period.
    fn begin(&mut self, start_ns: u64, period_ns: u64) {
        let periods = self.begin_ns.saturating_sub(start_ns) / period_ns + 1;
        self.end_ns = start_ns.saturating_add(periods.saturating_mul(period_ns));
        self.number += 1;
        self.rows = 0;
    }
}

impl<T: Table> Stream<T> for OneRound<'_, T> {
    fn offer(&self, demand: &Demand<T>) -> Offer {
        self.stream.offer(demand)
    }

    fn next(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<StreamState, SourceError> {
        let rows = &mut self.rows;
        let state = self.stream.next(demand, &mut |row| {
            *rows += 1;
            each(row)
        });
        self.is_over = !matches!(state, Ok(StreamState::Open));
        if self.is_over || clock::monotonic_ns() < self.end_ns { state } else { Ok(StreamState::Ended) }
    }

    /// The row counts of the round; the stream's own counts are read at its end.
    fn close(&mut self) -> Accounting {
        let now_ns = clock::monotonic_ns();
        self.facts.lasted_ns.set(now_ns.saturating_sub(self.begin_ns));
        let is_rest = self.is_over && self.number > 1 && self.rows == 0 && now_ns < self.end_ns;
        self.facts.is_empty_rest.set(is_rest);
        self.begin_ns = now_ns;
        Accounting { seen: self.rows, ..Accounting::default() }
    }
}

/// A sink that adds rates to the groups of a round.
struct RateSink<'s> {
    inner: &'s mut dyn Sink,
    rates: &'s [GroupRate],
    /// The index of the column for each rate.
    columns: Vec<usize>,
    facts: &'s RoundFacts,
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
