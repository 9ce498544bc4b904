//! Where the rows of a run come from: a [`Feed`]. A table is a stream that ends.
//!
//! A feed hands out its rows in parts. A table has one part per round, a stream one per batch. [`OneRound`] reads a
//! table once, [`StreamFeed`] follows a stream; the feed of a table in rounds also needs a session and lives above.

use record::{Accounting, Demand, Each, Lookups, Offer, Round, Scan, Source, SourceError, Stream, StreamState, Table};

/// The rows of a run, in parts.
pub trait Feed<T: Table> {
    /// Waits for the next part and calls `read` with it, which reads the part at once. Adds reasons for missing data
    /// to `notes`. Returns [`FeedState::Ended`] without calling `read` if no part is left.
    ///
    /// An error means that nothing more can be read. Errors of a table come from [`FeedPart::scan`] instead.
    fn next(
        &mut self,
        demand: &Demand<T>,
        notes: &mut Accounting,
        read: &mut ReadPart<'_, T>,
    ) -> Result<FeedState, SourceError>;

    /// Returns the row counts and losses that no part has reported. Called once, after the last part.
    fn close(&mut self) -> Accounting {
        Accounting::default()
    }
}

/// Reads a part of a [`Feed`].
pub type ReadPart<'r, T> = dyn FnMut(FeedPart<'_, T>) + 'r;

/// Whether a feed has more rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeedState {
    /// The round goes on.
    Open,
    /// The round has ended, and another one may follow.
    EndOfRound,
    /// No more rows follow.
    Ended,
}

/// A part of a feed, with everything that its rows need.
pub struct FeedPart<'p, T: Table> {
    /// Reads the rows.
    pub scan: &'p mut dyn Scan<T>,
    /// Supplies joined fields; absent lookups return null.
    pub lookups: &'p Lookups<'p>,
    /// Polled now and then; true once no further row is wanted. The rows read so far are shown.
    pub stop: &'p dyn Fn() -> bool,
    /// The round to which the part belongs, if rounds repeat.
    pub round: Option<Round>,
    /// The answers of the lookups, compared with the round before.
    pub answers: Answers,
    /// True if rows come as events happen. The reader then sees the headings before the first row, and the rows of
    /// each part before the next one.
    pub is_live: bool,
}

impl<'p, T: Table> FeedPart<'p, T> {
    /// A part that is not live and belongs to no round.
    pub fn new(scan: &'p mut dyn Scan<T>, lookups: &'p Lookups<'p>, stop: &'p dyn Fn() -> bool) -> FeedPart<'p, T> {
        FeedPart { scan, lookups, stop, round: None, answers: Answers::Unknown, is_live: false }
    }
}

/// The answers of the lookups, compared with the round before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answers {
    /// The comparison is impossible: no row of an earlier round may be written again.
    Unknown,
    /// Some answers are new: only later rounds may write the rows of this one again.
    New,
    /// All answers are the same: unchanged rows may be written again.
    Same,
}

/// One reading of a table, with lookups that were filled before.
pub struct OneRound<'s, T: Table> {
    source: &'s dyn Source<T>,
    lookups: &'s Lookups<'s>,
    stop: &'s dyn Fn() -> bool,
}

impl<'s, T: Table> OneRound<'s, T> {
    /// Reads `source` until its end or until `stop` returns true.
    pub fn new(source: &'s dyn Source<T>, lookups: &'s Lookups<'s>, stop: &'s dyn Fn() -> bool) -> OneRound<'s, T> {
        OneRound { source, lookups, stop }
    }
}

impl<T: Table> Feed<T> for OneRound<'_, T> {
    fn next(
        &mut self,
        demand: &Demand<T>,
        _: &mut Accounting,
        read: &mut ReadPart<'_, T>,
    ) -> Result<FeedState, SourceError> {
        read(FeedPart::new(&mut *self.source.prepare(demand), self.lookups, self.stop));
        Ok(FeedState::Ended)
    }
}

/// Lookups that may change between two batches of rows, while nothing borrows from them.
pub trait RenewedLookups {
    /// Calls `then` once, with the lookups for the rows of one batch.
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>));
}

/// Lookups that never change.
pub struct FixedLookups<'l>(pub Lookups<'l>);

impl RenewedLookups for FixedLookups<'_> {
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>)) {
        then(&self.0);
    }
}

/// The rows of a stream, with lookups that are renewed before each batch.
pub struct StreamFeed<'s, T: Table> {
    stream: &'s mut dyn Stream<T>,
    lookups: &'s mut dyn RenewedLookups,
    stop: &'s dyn Fn() -> bool,
}

impl<'s, T: Table> StreamFeed<'s, T> {
    /// Follows `stream` until it ends.
    ///
    /// A live stream itself knows when to end, and the rows read by then are shown. `stop` is for streams that do not
    /// (a replay, whose rows follow each other without a wait): once it returns true, no further row is shown.
    pub fn new(
        stream: &'s mut dyn Stream<T>,
        lookups: &'s mut dyn RenewedLookups,
        stop: &'s dyn Fn() -> bool,
    ) -> StreamFeed<'s, T> {
        StreamFeed { stream, lookups, stop }
    }

    /// Reads one batch in `read`, which may change the part before. Returns the state of the stream after it.
    pub fn next_batch(&mut self, demand: &Demand<T>, read: &mut ReadPart<'_, T>) -> Result<StreamState, SourceError> {
        // A caller that gives no lookups wants no more rows.
        let mut state = Ok(StreamState::Ended);
        let (stream, stop) = (&mut *self.stream, self.stop);
        self.lookups.with(&mut |lookups| {
            let mut batch = Batch { stream: &mut *stream, demand, state: &mut state };
            read(FeedPart { is_live: true, ..FeedPart::new(&mut batch, lookups, stop) });
        });
        state
    }
}

impl<T: Table> Feed<T> for StreamFeed<'_, T> {
    fn next(
        &mut self,
        demand: &Demand<T>,
        _: &mut Accounting,
        read: &mut ReadPart<'_, T>,
    ) -> Result<FeedState, SourceError> {
        let state = self.next_batch(demand, read)?;
        Ok(if state == StreamState::Open { FeedState::Open } else { FeedState::Ended })
    }

    fn close(&mut self) -> Accounting {
        self.stream.close()
    }
}

/// The next batch of a stream. Its counts come at the end of the stream.
struct Batch<'b, T: Table> {
    stream: &'b mut dyn Stream<T>,
    demand: &'b Demand<T>,
    state: &'b mut Result<StreamState, SourceError>,
}

impl<T: Table> Scan<T> for Batch<'_, T> {
    fn offer(&self) -> Offer {
        self.stream.offer(self.demand)
    }

    fn run(&mut self, each: &mut Each<'_, T>) -> Result<Accounting, SourceError> {
        *self.state = self.stream.next(self.demand, each);
        Ok(Accounting::default())
    }
}

#[cfg(test)]
mod tests;
