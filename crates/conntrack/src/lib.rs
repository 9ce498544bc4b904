//! The kernel's connection-tracking table as rows.
//!
//! Entries and expectations of one network namespace, live or from a recording, one row at a time in a reused buffer.
//! Knows ctnetlink; knows nothing of sockets, processes, of what a user calls a filter, of output. Start reading at
//! [`dump_entries`]; how a message becomes a row is in [`CtDecoder`].
#![forbid(unsafe_code)]

pub mod change;
mod ctnetlink;
mod dump;
mod error;
pub mod events;
mod expect;
mod raw_counters;
pub mod uapi;

pub use ctnetlink::CtDecoder;
pub use dump::{CtTable, Dumped, KernelFilter, Place, TupleFilter, dump_entries, dump_expectations, key, put_tuple};
pub use error::DecodeError;
pub use expect::ExpectDecoder;
pub use raw_counters::{count_entries, cpu_counters};
