//! Captures packets from interfaces.

mod counts;
mod links;
pub(crate) mod place;
mod ring;
mod rings;
pub(crate) mod stream;

/// Names the stream in messages to the user.
const WHAT: &str = "packets";
