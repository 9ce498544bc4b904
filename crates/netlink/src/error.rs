//! Errors of missing or incomplete answers.
use std::fmt;

use sys::{Errno, SysError};

/// A dump (or another request) that the kernel refused or that was incomplete.
///
/// Rows handed out before the error stay valid; together they are not the whole table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpError {
    /// The kernel answered with an error.
    Refused {
        /// The requested table (`tcp sockets`).
        what: &'static str,
        /// Its error.
        errno: Errno,
        /// Its explanation (extended acknowledgement), escaped.
        kernel_says: Option<Box<str>>,
        /// Kind of the attribute of the request that it complains about.
        at_attr: Option<u16>,
    },
    /// A message claims more bytes than the buffer has, or an attribute more than the message.
    Malformed {
        /// The requested table.
        what: &'static str,
        /// Kind of the attribute; `None` if the message itself is too long.
        attr: Option<u16>,
        /// Number of bytes claimed.
        claims: usize,
        /// Number of bytes available.
        has: usize,
    },
    /// The bytes ended before the dump did: a recording that was truncated, or that was made by a run that stopped
    /// early.
    CutShort {
        /// The requested table.
        what: &'static str,
        /// Number of messages available.
        messages: u64,
        /// The reason for the end.
        errno: Errno,
    },
    /// The kernel dropped messages because our buffer was full.
    Overrun {
        /// The requested table.
        what: &'static str,
        /// Number of messages received.
        messages: u64,
    },
    /// The request cannot be encoded: one attribute exceeds the maximum length of an attribute.
    TooLong {
        /// The requested table.
        what: &'static str,
        /// Kind of the attribute.
        attr: u16,
        /// Its length in bytes.
        bytes: usize,
    },
    /// A system call failed.
    Io(SysError),
}

impl DumpError {
    /// The errno that caused it, if there is one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            DumpError::Refused { errno, .. } | DumpError::CutShort { errno, .. } => Some(*errno),
            DumpError::Io(error) => Some(error.errno),
            _ => None,
        }
    }

    /// True if this kernel, or a filter in front of it, does not offer the interface at all: another backend should be
    /// tried.
    pub fn is_unavailable(&self) -> bool {
        let is_absent = |errno: Errno| errno.is_denied() || errno.is_unsupported() || errno == Errno::INVAL;
        !matches!(self, DumpError::CutShort { .. }) && self.errno().is_some_and(is_absent)
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::Refused { what, errno, kernel_says, at_attr } => {
                write!(f, "cannot dump {what}: {errno}")?;
                if let Some(text) = kernel_says {
                    write!(f, ": {text}")?;
                }
                if let Some(attr) = at_attr {
                    write!(f, " (at attribute {attr} of the request)")?;
                }
                if errno.is_denied() {
                    f.write_str(" (`netwren support` lists what works)")?;
                }
                Ok(())
            }
            DumpError::Malformed { what, attr: Some(attr), claims, has } => {
                write!(f, "cannot read {what}: attribute {attr} claims {claims} bytes, {has} are present")
            }
            DumpError::Malformed { what, attr: None, claims, has } => {
                write!(f, "cannot read {what}: a message claims {claims} bytes, {has} are present")
            }
            DumpError::CutShort { what, messages, errno } => {
                write!(f, "{what} {} incomplete: {errno}, after {messages} messages", is_or_are(what))
            }
            DumpError::Overrun { what, messages } => {
                write!(f, "{what} {} incomplete: the kernel dropped messages after {messages}", is_or_are(what))
            }
            DumpError::TooLong { what, attr, bytes } => {
                write!(f, "cannot request {what}: attribute {attr} has {bytes} bytes (use a shorter filter)")
            }
            DumpError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DumpError {}

/// The verb for the name of a table, as [`crate::Query`] contains it: `the connection-tracking table` is, `TCP sockets
/// (IPv4)` are.
pub fn is_or_are(what: &str) -> &'static str {
    let noun = what.split(" (").next().unwrap_or(what);
    if noun.ends_with('s') { "are" } else { "is" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_10_the_verb_follows_the_noun() {
        let text = |what| DumpError::Overrun { what, messages: 2 }.to_string();
        let missing = "incomplete: the kernel dropped messages after 2";
        assert_eq!(text("the connection-tracking table"), format!("the connection-tracking table is {missing}"));
        assert_eq!(text("TCP sockets (IPv4)"), format!("TCP sockets (IPv4) are {missing}"));
        assert_eq!(
            text("dying connection-tracking entries"),
            format!("dying connection-tracking entries are {missing}")
        );
    }
}
