//! The kernel's connection-tracking table as rows.
//!
//! Entries and expectations of one network namespace, live or from a recording, one row at a time in a reused buffer.
//! Knows ctnetlink, /proc and the rows of a BPF program; knows nothing of sockets, processes, of what a user calls a
//! filter, of output. Start reading at [`CtSource`]; how a message becomes a row is in [`CtDecoder`].
#![forbid(unsafe_code)]

mod bpf_door;
mod bpf_rows;
mod by_walk;
mod chains;
pub mod change;
mod choose;
mod ctnetlink;
mod dump;
pub mod events;
mod every_source;
mod everywhere;
mod expect;
mod fuzz;
mod labels;
mod probe;
mod proc_door;
mod proc_line;
mod pushdown;
mod raw_counters;
mod rows;
mod seen;
mod sizes;
mod source;
pub mod stats;
pub mod uapi;
mod walk_filter;

pub use bpf_door::{Doors, WalkError};
pub use bpf_rows::own_ports;
pub use by_walk::WalkAsk;
pub use chains::Chains;
pub use choose::{BPF_LACKS, NETLINK_LACKS, PROC_LACKS, Via, recorded_bits};
pub use ctnetlink::CtDecoder;
pub use dump::{CtTable, Dumped, KernelFilter, Place, TupleFilter, dump_entries, dump_expectations, key, put_tuple};
pub use every_source::EveryCt;
pub use everywhere::{Visit, in_each, in_each_for};
pub use expect::ExpectDecoder;
pub use fuzz::{fuzz_conntrack_line, fuzz_conntrack_walk, fuzz_ctnetlink};
pub use labels::LabelNames;
pub use netlink::DecodeError;
pub use probe::{Probe, probe};
pub use proc_line::parse_proc_line;
pub use raw_counters::{count_entries, cpu_counters};
pub use source::{CtSource, Options};
