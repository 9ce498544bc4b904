//! Errors for refused expressions.

use std::fmt;

/// An expression that is not a valid filter, or not for this link type. Where libpcap refuses the same expression, the
/// message is libpcap's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The problem, in one line.
    pub message: String,
    /// The position in the expression, in bytes from 1.
    pub column: usize,
}

impl FilterError {
    pub(crate) fn new(message: impl Into<String>, at: usize) -> FilterError {
        FilterError { message: message.into(), column: at + 1 }
    }

    /// The parser's error for everything that it cannot read.
    pub(crate) fn syntax(at: usize) -> FilterError {
        FilterError::new("can't parse filter expression: syntax error", at)
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for FilterError {}
