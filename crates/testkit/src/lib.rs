//! What tests share: namespaces of their own, sockets in every state, masks, locks.
//!
//! A test takes a [`netns::Lab`], makes its sockets there, runs the program under
//! test ([`program::netwren`]) and its peers (`lab.command("ss")`) inside, and
//! compares. Everything is undone on drop, also when the test panics; what a killed
//! test left behind, the next one removes. Knows nothing of rows, sinks or flags.
#![forbid(unsafe_code)]
// A helper of tests fails by panicking: that is its job.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod authority;
pub mod conntrack;
mod families;
pub mod knob;
pub mod lock;
pub mod mask;
pub mod netns;
pub mod postgres;
pub mod program;
pub mod root;
pub mod routed;
pub mod screen;
mod socket_filter;
pub mod tables;
mod tasks;
pub mod tool;
mod traffic;
pub mod unpacked;
mod wait;
mod watchdog;

pub use knob::HostKnob;
/// The allocator that counts, for crates that may not name `sys`.
pub use socket_filter::{attach_filter, try_filter};
pub use sys::allocator;
pub use traffic::{Listener, Pair};
pub use wait::{told_if_late, until_equal, wait_until};

/// Says something that the test harness does not swallow, as it does with `eprintln`.
pub fn loud(line: &str) {
    use std::io::Write;
    // One write: lines of two tests do not mix. A closed stderr is nobody's concern here.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
