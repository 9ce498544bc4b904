//! Captures packets from interfaces.

mod links;
pub(crate) mod place;
mod ring;
pub(crate) mod stream;
