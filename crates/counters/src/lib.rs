//! The kernel's network counters as rows, with their change over a time window.
//!
//! Reads the text files of /proc/net ([`texts`]), interfaces and queueing disciplines via rtnetlink, and driver
//! statistics via ethtool ioctls, each twice, and compares the two readings. This crate knows the meaning of each
//! counter ([`describe`]); it knows nothing of clocks, of waiting between two readings, or of the conclusions from a
//! difference. Start reading at [`CounterReader`].
#![forbid(unsafe_code)]

mod difference;
mod drivers;
mod fuzz;
mod links;
mod meanings;
mod memory;
mod qdiscs;
mod reader;
mod reading;
mod source;
pub mod texts;
mod traps;
mod trial;

pub use fuzz::fuzz_counters;
pub use meanings::{CounterMeaning, describe};
pub use memory::CounterMemory;
pub use reader::{CounterReader, ReadAdditional, read_sockets};
pub use reading::{COUNTERS_MAX, CounterReading, CounterValue, Object, Width};
pub use source::{CounterTable, NextReading};
pub use trial::{try_drivers, try_traps};
