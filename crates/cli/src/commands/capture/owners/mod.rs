//! Owners of packets: a process beside the one that reads packets looks up sockets and who holds them
//! (docs/adr/0027).
//!
//! It is this program again, started before rights are given up: it keeps those that looking needs, and gets no byte
//! of a packet. It is asked with one byte for another reading, and answers with [`message`]s; connections come as they
//! are established and end, where BPF tells.

mod events;
mod feed;
mod message;
mod options;
mod outbox;
mod process;
mod reading;

pub(super) use feed::{Owners, Wake};
pub(crate) use process::{NAME, run};
