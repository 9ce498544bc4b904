//! How a run ended: in order, early, or not at all.

use crate::answers::Unanswered;
use record::{Accounting, SinkError, SourceError};
use std::fmt;

/// A run that came to an end.
#[derive(Debug)]
pub struct Run {
    /// What became of every row.
    pub stats: Accounting,
    /// Why there were no more.
    pub ended: Ended,
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The source had no more rows.
    Whole,
    /// `--limit` was reached while streaming.
    Limit,
    /// `stop` said so (Ctrl-C).
    Stopped,
    /// The reader of the output went away. No error: `| head` does it.
    Closed,
}

/// Why a run came to nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The source could not be read at all; the sink has not been called.
    Source(SourceError),
    /// The backend that the user forces lacks a field that is asked for; nothing was read.
    Unanswered(Unanswered),
    /// The output could not be written.
    Sink(SinkError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Source(error) => error.fmt(f),
            RunError::Unanswered(error) => error.fmt(f),
            RunError::Sink(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Source(error) => Some(error),
            RunError::Unanswered(error) => Some(error),
            RunError::Sink(error) => Some(error),
        }
    }
}
