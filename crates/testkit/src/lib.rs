//! Shared code for tests: separate namespaces, sockets in every state, masks, locks.
//!
//! A test makes a [`netns::Lab`], creates its sockets there, runs the program under test ([`program::netwren`]) and
//! its peers (`lab.command("ss")`) inside, and compares their output. Everything is undone on drop, even if the test
//! panics; the next test removes what a killed test left behind. This crate does not know rows, sinks or flags.
#![deny(unsafe_code)]
// Test code fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod authority;
pub mod clickhouse;
pub mod conntrack;
mod families;
pub mod kafka;
pub mod knob;
pub mod lock;
pub mod mask;
pub mod netns;
pub mod otlp;
mod ports;
pub mod postgres;
pub mod program;
pub mod root;
pub mod routed;
pub mod screen;
// Acts on a process between fork and exec.
#[allow(unsafe_code)]
pub mod sandbox;
pub mod signals;
mod socket_filter;
pub mod tables;
mod tasks;
pub mod tool;
mod traffic;
pub mod unpacked;
mod wait;
mod watchdog;

pub use knob::HostKnob;
/// The counting allocator, for crates that may not name `sys`.
pub use socket_filter::{attach_filter, try_filter};
pub use sys::allocator;
pub use traffic::{Listener, Pair};
pub use wait::{report_if_late, until_equal, wait_until};

/// Prints a line that the test harness does not capture, unlike `eprintln`.
pub fn print_loud(line: &str) {
    use std::io::Write;
    // A single write, so that lines of two tests do not mix. A closed stderr is ignored.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
