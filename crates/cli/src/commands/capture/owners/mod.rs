//! Owners of packets: a helper process looks up sockets and their owners (docs/adr/0027).
//!
//! It is this program, started again before privileges are dropped: it keeps the privileges for lookups, and gets no
//! bytes of packets. One byte requests another reading, which it answers with [`message`]s. If BPF is available, it
//! also sends connections as they are established and closed.

mod events;
mod feed;
mod message;
mod options;
mod outbox;
mod process;
mod reading;

pub(super) use feed::{Owners, Wake};
pub(crate) use process::{NAME, run};
