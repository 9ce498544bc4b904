//! Running a plan: the rows of one feed go to one sink. Start reading at [`Plan::run`].
//!
//! Everything that a native command shows goes through this module. The way of a row:
//!
//! 1. The source offers (`Scan::offer`) which parts of the filter it applies itself. The engine skips the parts that
//!    the source applies exactly; it tests the others, and those that the source only narrows.
//! 2. The source calls the engine with each row. The row borrows the source's receive buffer and is invalid afterwards.
//! 3. The rest of the filter is tested (`gate`). This needs no allocation and no text.
//! 4. The planned cells are read from the row (`cells`). They still borrow it.
//! 5. They go to the sink at once (streaming, `output`), or are packed into an arena (`--sort`), or are counted into a
//!    group (`--by`).
//! 6. After the last row the kept rows or the groups are sorted and go to the sink, and the row counts are closed.
//!
//! Tables, rounds of `--watch` and streams all come as a [`Feed`] (`feed`). Their rows go to a sink as cells
//! (`cell_writer`; unchanged rows of a round as the text of the round before: `cached`), or as typed rows to a caller
//! that writes them itself (`typed_rows`).
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
mod cell_writer;
mod cells;
mod feed;
mod gate;
mod outcome;
mod output;
mod typed_rows;

use crate::answers::add_gap;
use crate::plan::Plan;
use crate::rendered_rows::RenderedRows;
use cell_writer::CellWriter;
use gate::{Gate, PassCounts};
use record::{Accounting, FilterPushdown, Offer, Round, Sink, SourceError, Table};
use typed_rows::TypedWriter;

pub use feed::{Answers, Feed, FeedPart, FeedState, FixedLookups, OneRound, ReadPart, RenewedLookups, StreamFeed};
pub use outcome::{EndReason, Run, RunError};
pub use typed_rows::{CellsOf, Disposition, EachRow, ReadRows, RowSink};

/// The destination of a run's rows.
trait Receiver<T: Table> {
    /// Begins a round.
    fn begin(&mut self, round: Option<Round>);
    /// Reads the rows of a part, and takes those that pass the gate. Returns the part's own counts.
    fn read(
        &mut self,
        part: &mut FeedPart<'_, T>,
        gate: &Gate<'_, T>,
        pass: &mut PassCounts,
    ) -> Result<Accounting, SourceError>;
    /// Shows the rows so far.
    fn flush(&mut self);
    /// False once rows can no longer be written.
    fn takes_more(&self) -> bool;
    /// Ends a round that has these counts.
    fn end(&mut self, pass: PassCounts, stats: Accounting) -> Result<Run, RunError>;
}

/// A round of which a part was read.
struct OpenRound {
    /// The parts of the filter that the source applies.
    pushdown: Vec<FilterPushdown>,
    /// The reason about fields that the filter tests and the backend lacks.
    gap: Option<String>,
    /// The counts of the engine.
    pass: PassCounts,
    /// The counts of the source.
    stats: Accounting,
}

impl<T: Table> Plan<T> {
    /// Reads `feed` to its end and passes each round to `sink`: `begin`, every row, `end`. Returns the counts of all
    /// rounds, and the end of the last one.
    ///
    /// The sink's `begin` is called when the first row arrives or the round is over, so a source that fails at once
    /// leaves no header in the output. The run ends early if a limit is reached while rows stream, if the feed is to
    /// stop, or if the reader of the output goes away.
    ///
    /// Streaming allocates nothing per row. Sorting keeps the planned cells of every row that passes (about 100 bytes
    /// each for the default columns), or of about twice the limit; grouping keeps the groups, in streams a bounded
    /// number. If the feed compares its lookups ([`Answers`]) and the sink can reuse rows, unchanged rows of a round
    /// are not made again: such a row costs about a fifth, the others a few nanoseconds more.
    pub fn run(&self, feed: &mut dyn Feed<T>, sink: &mut dyn Sink) -> Result<Run, RunError> {
        self.run_reusing(&mut RenderedRows::default(), feed, sink)
    }

    /// Like [`Plan::run`], with rows of an earlier round into the same sink.
    pub(crate) fn run_reusing(
        &self,
        rendered: &mut RenderedRows,
        feed: &mut dyn Feed<T>,
        sink: &mut dyn Sink,
    ) -> Result<Run, RunError> {
        self.read(feed, &mut CellWriter::new(self, sink, rendered))
    }

    /// Reads `feed` to its end and hands every row that passes the filter to `rows`, with the cells of the plan's
    /// columns on demand; order and groups are ignored. A row that arrives and that neither `rows` nor the filter nor
    /// the source reports makes the run incomplete, with a reason.
    pub fn run_rows<S: RowSink<T> + ?Sized>(&self, feed: &mut dyn Feed<T>, rows: &mut S) -> Result<Run, RunError> {
        self.read(feed, &mut TypedWriter::new(self, rows))
    }

    fn read<R: Receiver<T>>(&self, feed: &mut dyn Feed<T>, to: &mut R) -> Result<Run, RunError> {
        let mut all = Run { stats: Accounting::default(), ended: EndReason::Whole };
        let (mut open, mut is_shown) = (None::<OpenRound>, false);
        loop {
            let (mut notes, mut read) = (Accounting::default(), Ok(()));
            let state = feed.next(&self.demand, &mut notes, &mut |part| read = self.read_part(part, &mut open, to));
            all.stats.add(&notes);
            is_shown |= open.as_ref().is_some_and(|round| round.pass.handed > 0);
            let (state, broken) = match read.and_then(|()| state.map_err(RunError::Source)) {
                Ok(state) => (state, None),
                // The rows read so far are shown; the missing ones are then reported with them.
                Err(RunError::Source(error)) if is_shown => (FeedState::Ended, Some(error.to_string())),
                Err(error) => return Err(error),
            };
            let goes_on = open.as_ref().is_none_or(|round| round.pass.ended == EndReason::Whole && to.takes_more());
            if state == FeedState::Open && goes_on {
                continue;
            }
            let mut is_last = state != FeedState::EndOfRound;
            if let Some(mut round) = open.take() {
                if is_last {
                    round.stats.add(&feed.close());
                }
                if let Some(error) = &broken {
                    round.stats.incomplete(0, error.clone());
                }
                add_gap(round.gap.as_deref(), &mut round.stats);
                let run = to.end(round.pass, round.stats)?;
                all.stats.add(&run.stats);
                (all.ended, is_shown) = (run.ended, true);
                if is_last {
                    return Ok(all);
                }
                is_last = matches!(all.ended, EndReason::Closed | EndReason::Stopped);
            }
            if is_last {
                all.stats.add(&feed.close());
                if let Some(error) = broken {
                    all.stats.incomplete(0, error);
                }
                return Ok(all);
            }
        }
    }

    fn read_part<R: Receiver<T>>(
        &self,
        mut part: FeedPart<'_, T>,
        open: &mut Option<OpenRound>,
        to: &mut R,
    ) -> Result<(), RunError> {
        let is_first = open.is_none();
        let round = match open {
            Some(round) => round,
            None => open.insert(self.open_round(&part.scan.offer())?),
        };
        if is_first {
            to.begin(part.round);
        }
        if round.pass.ended != EndReason::Whole {
            return Ok(());
        }
        if is_first && part.is_live {
            // A reader may wait for the header to learn that the stream has begun.
            to.flush();
        }
        if !to.takes_more() {
            return Ok(());
        }
        let gate =
            Gate { residual: self.predicate.residual_filter(&round.pushdown), lookups: part.lookups, stop: part.stop };
        let counts = to.read(&mut part, &gate, &mut round.pass).map_err(RunError::Source)?;
        round.stats.add(&counts);
        if part.is_live {
            to.flush();
            // A part may have no rows, and `stop` is polled only once in a number of rows.
            if round.pass.ended == EndReason::Whole && (part.stop)() {
                round.pass.ended = EndReason::Stopped;
            }
        }
        Ok(())
    }

    /// Begins a round; `offer` says how it is read. Fails if the forced backend lacks a field.
    fn open_round(&self, offer: &Offer) -> Result<OpenRound, RunError> {
        self.check(offer).map_err(RunError::Unanswered)?;
        Ok(OpenRound {
            pushdown: offer.pushdown.clone(),
            gap: self.filter_gap(offer),
            pass: PassCounts::new(self.limit),
            stats: Accounting::default(),
        })
    }
}

#[cfg(test)]
mod tests;
