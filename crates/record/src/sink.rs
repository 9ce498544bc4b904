//! Sinks: the last writers of rows, and the only place where values become text.

use crate::{Accounting, Kind, Value};
use std::fmt;
use std::ops::ControlFlow;

/// Whether the receiver wants more rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Next {
    /// Continue.
    More,
    /// Stop (`--limit`, a closed pipe, Ctrl-C): the run ends, and this is not an error.
    Stop,
}

impl From<Next> for ControlFlow<()> {
    fn from(next: Next) -> ControlFlow<()> {
        if next == Next::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// One column of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Header and JSON key.
    pub name: Box<str>,
    /// Meaning, unit, alignment.
    pub kind: Kind,
}

/// The columns in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(pub Vec<Column>);

/// A writer of rows.
pub trait Sink {
    /// The number of rows of the next round that will be shown, because a screen has a limited height. The other rows
    /// need not be rendered; they are counted and reported with [`Sink::leave_out`]. `None` means all rows.
    fn rows_wanted(&self) -> Option<u64> {
        None
    }

    /// True if addresses stay in their columns when their names are known. The names then go to separate columns after
    /// all others; these column names end in `_name`.
    fn keeps_addresses(&self) -> bool {
        false
    }

    /// Called once per round, before its first row. `round` is None unless rounds repeat (`--watch`).
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError>;

    /// Writes the planned cells of one row. They borrow the receive buffer: copy what you keep.
    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError>;

    /// True if [`Sink::render_row`] and [`Sink::write_rendered`] are supported, because the text of a row depends only
    /// on its cells and the columns.
    fn can_reuse(&self) -> bool {
        false
    }

    /// Appends the bytes that [`Sink::row`] would write to `rendered`, without the cell of column `hole`, and writes
    /// nothing. Returns the offset in the row's bytes where that cell belongs; 0 if no cell is missing.
    fn render_row(
        &mut self,
        cells: &[Value<'_>],
        hole: Option<usize>,
        rendered: &mut Vec<u8>,
    ) -> Result<usize, SinkError> {
        let _ = (cells, hole, rendered);
        Err(SinkError::Io("this output stores no rows".into()))
    }

    /// Writes a row from the bytes that [`Sink::render_row`] returned for equal cells, possibly in an earlier round.
    /// `hole` is the cell that these bytes lack.
    fn write_rendered(&mut self, rendered: &[u8], hole: Option<Hole<'_>>) -> Result<Next, SinkError> {
        let _ = (rendered, hole);
        Err(SinkError::Io("this output stores no rows".into()))
    }

    /// Reports the number of rows of the round that are not shown ([`Sink::rows_wanted`]). Called at most once, before
    /// [`Sink::end`].
    fn leave_out(&mut self, rows: u64) {
        let _ = rows;
    }

    /// Called when rows arrive slowly (`--follow`) and no more are available for now: all rows handed over so far must
    /// reach the reader. A sink without a buffer does nothing.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Ends the round: all rows written so far must reach the reader.
    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError>;
}

/// The cell that a rendered row lacks.
#[derive(Clone, Copy, Debug)]
pub struct Hole<'v> {
    /// Its column.
    pub column: usize,
    /// Offset where it belongs ([`Sink::render_row`]).
    pub at: usize,
    /// Its current value.
    pub value: Value<'v>,
}

/// Which repetition this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// 1 for the first.
    pub n: u64,
    /// Nanoseconds since 1970, UTC.
    pub time_ns: u64,
}

impl Round {
    /// Seconds since 1970, UTC.
    pub fn time_s(&self) -> i64 {
        i64::try_from(self.time_ns / 1_000_000_000).unwrap_or(i64::MAX)
    }
}

/// Why a row could not be written.
#[derive(Debug)]
pub enum SinkError {
    /// The reader closed its end; this counts as success.
    Closed,
    /// A system error (`no space left on device`).
    Io(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SinkError::Closed => f.write_str("the reader of the output has closed it"),
            SinkError::Io(cause) => write!(f, "cannot write the output: {cause}"),
        }
    }
}

impl std::error::Error for SinkError {}
