//! Packets that the kernel drops, as rows: number, reason, place in the kernel, and meaning.
//!
//! A BPF program counts them; without BPF, the kernel's own trace or its drop monitor is read. [`DropCounter`] puts the
//! drops since the last reading into a block of bytes, with the names of reasons and functions that occur in it;
//! [`DropSource`] turns such a block, which may come from a recording, into rows. [`DropStream`] reports each drop
//! separately, through a ring. [`Losses`] makes rows of losses that are not dropped packets. This crate knows the
//! kernel's reasons and functions; it knows nothing of sockets, processes, rules or output. Start reading at
//! [`DropSource`].
#![forbid(unsafe_code)]

mod backend;
mod block;
#[cfg(feature = "bpf")]
mod bpf_backend;
mod choose;
mod counter;
mod error;
mod event_block;
mod event_source;
#[cfg(test)]
mod fixtures;
mod functions;
mod fuzz;
mod hook;
mod losses;
mod meaning;
mod names;
mod net_dm;
mod net_dm_backend;
mod reasons;
mod source;
mod stream;
mod trace;
mod trace_backend;
mod trial;
mod via;

use sys::symbols;

pub use backend::DropScope;
pub use counter::DropCounter;
pub use error::DropsError;
pub use fuzz::{fuzz_block, fuzz_events, fuzz_net_dm, fuzz_symbols, fuzz_trace};
pub use losses::{LOSING_SOCKETS_MAX, LOSSES, Loss, LossCounter, Losses, PacketsOver, SocketDrops};
pub use meaning::{DropMeaning, is_benign, meaning_of};
pub use net_dm::{DropAlert, DropMonitor, DropOrigins, OUR_QUEUE as MONITOR_QUEUE, monitor_losses};
pub use source::{DropOptions, DropSource, NOT_COUNTED};
pub use stream::{DropStream, FollowDrops, SNAPLEN_MAX};
pub use symbols::Symbols;
pub use trial::{try_counting, try_monitor};
pub use via::DropsVia;
