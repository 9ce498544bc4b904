//! Captures packets from interfaces.

mod links;
pub(crate) mod place;
mod reader_thread;
mod ring;
mod ring_reader;
pub(crate) mod stream;
mod successor;
