//! The bytes of netstat (net-tools 2.10).
//!
//! Sockets or counter files in, netstat's lines out. Knows no switch and reads nothing: who is listed and in how many
//! rounds is the command line's business, but for the question what netstat counts as listening ([`Show::wants`]).

mod address;
mod counter_words;
mod counters;
mod timer;
mod unix;
mod writer;

pub use counters::{Counted, Garbled, Statistics};
pub use writer::{Names, Options, Show, Writer};
