//! Why a message, a struct or a line of the kernel could not be made into a row.
use std::fmt;

use crate::attr::AttrError;

/// What is no row. It costs this row only: the run counts it and goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is shorter than its fixed struct.
    Short {
        /// Name of the kernel's struct.
        what: &'static str,
        /// Bytes the struct has.
        claims: usize,
        /// Bytes there are.
        has: usize,
    },
    /// An attribute claims more bytes than the message has, or holds fewer than its kind needs.
    Attr {
        /// Kind of the attribute; 0 if not even its head was there.
        attr: u16,
        /// Bytes claimed or needed.
        claims: usize,
        /// Bytes there are.
        has: usize,
    },
    /// It is of an address family that the decoder does not know.
    Family(u8),
    /// What makes a row is not in the message.
    Missing(&'static str),
    /// A word or a column of a /proc line is missing or is not what it should be.
    Word(&'static str),
}

impl From<AttrError> for DecodeError {
    fn from(error: AttrError) -> DecodeError {
        DecodeError::Attr { attr: error.attr, claims: error.claims, has: error.has }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Short { what, claims, has } => write!(f, "{what} claims {claims} bytes, {has} are there"),
            DecodeError::Attr { attr, claims, has } => {
                write!(f, "attribute {attr} claims {claims} bytes, {has} are there")
            }
            DecodeError::Family(family) => write!(f, "address family {family} is unknown here"),
            DecodeError::Missing(what) => write!(f, "{what} is missing"),
            DecodeError::Word(word) => write!(f, "{word} is missing or no number"),
        }
    }
}

impl std::error::Error for DecodeError {}
