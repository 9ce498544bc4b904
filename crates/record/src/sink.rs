//! Where rows go: the last writers, the only place where values become text.

use crate::{Accounting, Kind, Value};
use std::fmt;
use std::ops::ControlFlow;

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Next {
    /// Go on.
    More,
    /// Enough (`--limit`, a closed pipe, Ctrl-C): the run ends without being an error.
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
    /// The number of rows of the next round that are shown (a screen has an end); the others need not be made, they are
    /// counted and handed over by [`Sink::leave_out`]. `None`: all of them.
    fn rows_wanted(&self) -> Option<u64> {
        None
    }

    /// True if addresses stay in their columns when their names are known. The names then go to separate columns after
    /// all others, with `_name` at the end of the column name.
    fn keeps_addresses(&self) -> bool {
        false
    }

    /// Called once a round, before its first row. `round` is None unless rounds repeat (`--watch`).
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError>;

    /// The planned cells of one row; they borrow the receive buffer: copy what you keep.
    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError>;

    /// True if [`Sink::render_row`] and [`Sink::write_rendered`] work: the text of a row depends on its cells and the
    /// columns alone.
    fn can_reuse(&self) -> bool {
        false
    }

    /// The same as [`Sink::row`], and appends what it wrote to `kept`, but for the cell of the column `lacks`.
    fn render_row(
        &mut self,
        cells: &[Value<'_>],
        hole: Option<usize>,
        rendered: &mut Vec<u8>,
    ) -> Result<Rendered, SinkError> {
        let _ = (hole, rendered);
        self.row(cells).map(|next| Rendered { next, hole_at: 0 })
    }

    /// Writes a row with the same cells as one of which [`Sink::render_row`] has kept these bytes, maybe in a round
    /// before;
    /// `missing` is the cell that they lack.
    fn write_rendered(&mut self, rendered: &[u8], hole: Option<Hole<'_>>) -> Result<Next, SinkError> {
        let _ = (rendered, hole);
        Err(SinkError::Io("this output keeps no rows".into()))
    }

    /// So many rows of the round are not shown ([`Sink::rows_wanted`]); called once at most, before [`Sink::end`].
    fn leave_out(&mut self, rows: u64) {
        let _ = rows;
    }

    /// Rows come slowly (`--follow`) and for now there are no more: what was handed over must reach the reader.
    /// A sink without a buffer has nothing to do.
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// The round is over: everything written so far must reach the reader.
    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError>;
}

/// A row that was written and kept.
#[derive(Clone, Copy, Debug)]
pub struct Rendered {
    /// Whether more rows are wanted.
    pub next: Next,
    /// Where in the bytes that were kept the cell is missing, if one is.
    pub hole_at: usize,
}

/// The cell that a kept row lacks.
#[derive(Clone, Copy, Debug)]
pub struct Hole<'v> {
    /// Its column.
    pub column: usize,
    /// Where it belongs ([`Rendered::hole_at`]).
    pub at: usize,
    /// What it is now.
    pub value: Value<'v>,
}

/// Which repetition this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// 1 for the first.
    pub n: u64,
    /// Seconds since 1970, UTC.
    pub time_s: i64,
}

/// Why a row could not be written.
#[derive(Debug)]
pub enum SinkError {
    /// The reader went away: success for us.
    Closed,
    /// The system refused (`no space left on device`).
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
