//! The kernel's socket tables as rows.
//!
//! TCP, UDP and unix sockets of one network namespace, by sock_diag or from /proc/net, live or from a recording, one
//! row at a time in a reused buffer. Knows both interfaces; knows nothing of processes, of what a user calls a
//! filter, of output. Start reading at [`SocketSource`]; a new column begins in `record::rows` and ends in
//! `inet_diag`, `unix_diag` or `proc_tcp`.
#![forbid(unsafe_code)]

mod books;
mod bpf_door;
mod bpf_rows;
mod bytecode;
mod choose;
mod expected;
mod error;
mod fuzz;
mod ifindex;
mod inet_diag;
mod keys;
mod probe;
mod proc_door;
mod proc_line;
mod proc_tcp;
mod proc_unix;
mod pushdown;
mod source;
mod unix_diag;
mod window;

pub use bpf_door::Doors;
pub use choose::{BPF_HAS, NETLINK_LACKS_UNIX, PROC_LACKS_INET, PROC_LACKS_UNIX, Via};
pub use error::DecodeError;
pub use fuzz::{fuzz_proc_line, fuzz_sock_diag, fuzz_walk_block};
pub use inet_diag::{InetDecoder, decode_inet};
pub use probe::{Probe, probe, sees_marks};
pub use proc_tcp::parse_proc_line;
pub use proc_unix::parse_proc_unix_line;
pub use pushdown::Families;
pub use source::{Options, SocketSource};
pub use unix_diag::{UnixDecoder, decode_unix};
