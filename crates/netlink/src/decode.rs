//! Decoding errors: why a message, a struct or a line of the kernel could not be made into a row.
use std::fmt;

use crate::attr::AttrError;

/// A row that could not be decoded. The run loses only this row: it counts the row and continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is shorter than its fixed struct.
    Short {
        /// Name of the kernel's struct.
        what: &'static str,
        /// Size of the struct in bytes.
        claims: usize,
        /// Number of bytes available.
        has: usize,
    },
    /// An attribute claims more bytes than the message has, or has fewer than its kind requires.
    Attr {
        /// Kind of the attribute; 0 if even its head is missing.
        attr: u16,
        /// Number of bytes claimed or required.
        claims: usize,
        /// Number of bytes available.
        has: usize,
    },
    /// It has an address family that the decoder does not know.
    Family(u8),
    /// The message lacks a required part.
    Missing(&'static str),
    /// A word or a column of a /proc line is missing or invalid.
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
            DecodeError::Short { what, claims, has } => write!(f, "{what} claims {claims} bytes, {has} are present"),
            DecodeError::Attr { attr, claims, has } => {
                write!(f, "attribute {attr} claims {claims} bytes, {has} are present")
            }
            DecodeError::Family(family) => write!(f, "unknown address family {family}"),
            DecodeError::Missing(what) => write!(f, "{what} is missing"),
            DecodeError::Word(word) => write!(f, "{word} is missing or not a number"),
        }
    }
}

impl std::error::Error for DecodeError {}
