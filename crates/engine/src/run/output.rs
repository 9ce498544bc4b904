//! The end of a run where rows become output: the sink, and what happened to it.

use super::Ended;
use super::gate::Pass;
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};

/// The sink of a run. Calls `begin` before the first row, counts rows that were written, and keeps the first fault.
pub(super) struct Out<'s> {
    pub(super) sink: &'s mut dyn Sink,
    /// For `begin`.
    pub(super) columns: &'s Columns,
    /// The round of `--watch`, for `begin`.
    pub(super) round: Option<Round>,
    /// True once `begin` was called.
    pub(super) begun: bool,
    /// Why the sink takes nothing more.
    pub(super) fault: Option<SinkError>,
}

impl Out<'_> {
    /// Writes a row and counts it. After `Stop` nothing more may be written.
    pub(super) fn row(&mut self, cells: &[Value<'_>], pass: &mut Pass) -> Next {
        self.put(pass, |sink| sink.row(cells))
    }

    /// Counts a row that `write` writes, as [`Out::row`] does.
    #[inline]
    pub(super) fn put(
        &mut self,
        pass: &mut Pass,
        write: impl FnOnce(&mut dyn Sink) -> Result<Next, SinkError>,
    ) -> Next {
        let begun = if self.begun { Ok(()) } else { self.begin() };
        match begun.and_then(|()| write(&mut *self.sink)) {
            Ok(next) => {
                pass.stats.emitted += 1;
                if next == Next::Stop {
                    pass.ended = Ended::Closed;
                }
                next
            }
            Err(fault) => {
                // A reader that went away has cut the table off; anything else is a row that could not be written.
                match fault {
                    SinkError::Closed => pass.stats.cut += 1,
                    SinkError::Io(_) => pass.stats.failed += 1,
                }
                pass.ended = Ended::Closed;
                self.fault = Some(fault);
                Next::Stop
            }
        }
    }

    /// Hands the columns to the sink, once.
    pub(super) fn begin(&mut self) -> Result<(), SinkError> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        self.sink.begin(self.columns, self.round)
    }

    /// Ends the sink's work; a run without rows begins it here.
    pub(super) fn end(&mut self, stats: &Accounting) {
        let ended = self.begin().and_then(|()| self.sink.end(stats));
        self.fault = ended.err();
    }
}
