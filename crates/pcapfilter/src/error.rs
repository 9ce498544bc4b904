//! Why an expression was refused.

use std::fmt;

/// An expression that is no filter, or none for this link type. The words are libpcap's where libpcap refuses the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// What is wrong, in one line.
    pub message: String,
    /// Where in the expression, in bytes from 1.
    pub column: usize,
}

impl FilterError {
    pub(crate) fn new(message: impl Into<String>, at: usize) -> FilterError {
        FilterError { message: message.into(), column: at + 1 }
    }

    /// The parser's word for everything that it cannot read.
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
