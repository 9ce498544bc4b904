//! The outcome of a run: a complete end, an early one, or an error.

use crate::answers::UnansweredField;
use record::{Accounting, SinkError, SourceError};
use std::fmt;

/// The result of a run that was not an error.
#[derive(Debug)]
pub struct Run {
    /// The row counts.
    pub stats: Accounting,
    /// The reason for the end.
    pub ended: EndReason,
}

/// The reason why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// The source had no more rows.
    Whole,
    /// `--limit` was reached while streaming.
    Limit,
    /// `stop` requested it (Ctrl-C).
    Stopped,
    /// The reader of the output went away. This is not an error: `| head` does it.
    Closed,
}

/// The reason why a run failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The source could not be read at all; the sink has not been called.
    Source(SourceError),
    /// The forced backend lacks a requested field; nothing was read.
    Unanswered(UnansweredField),
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
