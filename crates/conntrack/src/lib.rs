//! Reads the kernel's connection-tracking table as rows.
//!
//! Entries and expectations of one or all network namespaces, live or from a recording, one row at a time in a reused
//! buffer. This crate knows ctnetlink, /proc and the rows of a BPF program; it knows nothing of sockets, processes,
//! filter text or output. Start reading at [`ConntrackSource`]; [`CtDecoder`] turns a netlink message into a row.
#![forbid(unsafe_code)]

mod all_netns;
mod backends;
pub mod change;
mod choose;
pub mod events;
mod fuzz;
mod kernel_filter;
mod labels;
mod options;
mod pushdown;
mod sizes;
mod source;
pub mod stats;
mod table;
mod trial;
pub mod uapi;

pub use all_netns::source::{AllNetnsConntrack, AllNetnsScan};
pub use all_netns::{VisitNetns, in_each, in_each_for};
pub use backends::bpf::cache::BackendCache;
pub use backends::bpf::chains::Chains;
pub use backends::bpf::rows::source_ports;
pub use backends::fault::errno_of;
pub use backends::netlink::counters::{count_entries, cpu_counters};
pub use backends::netlink::ctnetlink::CtDecoder;
pub use backends::netlink::dump::{DumpResult, dump_entries, dump_expectations, key};
pub use backends::netlink::entry_queries::{EntryQueries, QueryCounts};
pub use backends::netlink::expect::ExpectDecoder;
pub use backends::proc::line::parse_proc_line;
pub use choose::{BPF_LACKS, NETLINK_LACKS, PROC_LACKS, Via, recorded_bits};
pub use fuzz::{fuzz_conntrack_line, fuzz_conntrack_walk, fuzz_ctnetlink};
pub use kernel_filter::{KernelFilter, TupleFilter, put_tuple};
pub use labels::LabelNames;
pub use netlink::DecodeError;
pub use options::Options;
pub use source::{ConntrackScan, ConntrackSource};
pub use sys::WalkError;
pub use table::{CtTable, NetnsRef};
pub use trial::{BackendTrial, try_backends};
