//! The helper process that looks up sockets and their owners for a capture (docs/adr/0027).
//!
//! It is this program, started again before privileges are dropped: it keeps the privileges for lookups, and gets no
//! bytes of packets. An empty message requests another reading, which it answers with messages (`message.rs`). If BPF
//! is available, it also sends connections as they are established and closed.

mod events;
mod feed;
mod message;
mod outbox;
mod process;
mod reading;

pub use feed::{OwnerFeed, OwnerHelper, Wake};
pub use process::{NAME, OwnerOptions, run};
