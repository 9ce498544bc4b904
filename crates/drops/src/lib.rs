//! Packets that the kernel drops, as rows: how many, why, where in the kernel, and what that means.
//!
//! A BPF program counts; [`DropCounter`] reads it and puts what was dropped since the last reading into a block of
//! bytes, with the names of reasons and functions that occur in it; [`DropSource`] makes rows of such a block, which
//! may come from a recording as well. [`DropStream`] tells each drop by itself, through a ring. Knows the kernel's
//! reasons and functions; knows nothing of sockets, processes, rules or output. Start reading at [`DropSource`].
#![forbid(unsafe_code)]

#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod block;
mod counter;
mod error;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod event_block;
#[cfg(feature = "bpf")]
mod event_ring;
mod fuzz;
mod hook;
mod meaning;
mod names;
mod probe;
#[cfg(feature = "bpf")]
mod reasons;
mod source;
mod stream;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod symbols;

pub use counter::{DropCounter, DropScope};
pub use error::DropsError;
pub use fuzz::{fuzz_block, fuzz_events, fuzz_symbols};
pub use meaning::{DropMeaning, is_benign, meaning_of};
pub use probe::probe;
pub use source::{DropOptions, DropSource};
pub use stream::{DropStream, FollowDrops};
