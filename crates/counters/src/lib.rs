//! The kernel's network counters as rows, with what they changed by in a window of time.
//!
//! Reads the text files of /proc/net ([`texts`]), interfaces and queueing disciplines by rtnetlink, statistics of
//! drivers by ethtool's ioctls, twice, and compares the two readings. Knows what each counter means ([`describe`]),
//! knows nothing of clocks, of waiting between two readings, nor of what a difference says about the host. Start
//! reading at [`CounterReader`].
#![forbid(unsafe_code)]

mod difference;
mod drivers;
mod fuzz;
mod links;
mod meanings;
mod memory;
mod probe;
mod qdiscs;
mod reader;
mod reading;
mod source;
pub mod texts;
mod traps;

pub use fuzz::fuzz_counters;
pub use meanings::{Meaning, describe};
pub use memory::CounterMemory;
pub use probe::{probe_drivers, probe_traps};
pub use reader::{CounterReader, ReadMore, read_sockets};
pub use reading::{COUNTERS_MAX, CounterReading, CounterValue, Object, Width};
pub use source::{CounterTable, NextReading};
