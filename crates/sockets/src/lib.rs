//! The kernel's socket tables as rows.
//!
//! Sockets of one network namespace, by sock_diag or from /proc/net, live or from a recording, one
//! row at a time in a reused buffer. Knows both interfaces; knows nothing of processes, of what a user calls a
//! filter, of output. Start reading at [`SocketSource`]; a new column begins in `record::rows` and ends in
//! one of `*_diag` or of `proc_*`.
#![forbid(unsafe_code)]

mod bpf_door;
mod bpf_rows;
mod bytecode;
mod choose;
mod destroy;
mod destroyed;
mod everywhere;
mod expected;
mod fuzz;
mod handed_out;
mod ifindex;
mod inet_diag;
mod keys;
mod live;
mod named;
mod netlink_diag;
mod options;
mod packet_diag;
mod probe;
mod proc_door;
mod proc_line;
mod proc_packet;
mod proc_tcp;
mod proc_unix;
mod pushdown;
mod raw_dump;
mod request;
mod rows;
mod sctp_diag;
mod source;
mod tipc_diag;
mod unix_diag;
mod unix_lines;
mod vsock_diag;
mod window;
mod xdp_diag;

pub use bpf_door::Doors;
pub use choose::recorded_bits;
pub use choose::{
    BPF_HAS, NETLINK_LACKS_UNIX, PROC_LACKS_INET, PROC_LACKS_NETLINK, PROC_LACKS_PACKET, PROC_LACKS_UNIX, Via,
};
pub use destroy::{Closing, Cookie, Target, close, probe_closing};
pub use destroyed::Destroyed;
pub use everywhere::EverySocket;
pub use expected::tcp_sockets as count_tcp;
pub use fuzz::{fuzz_proc_line, fuzz_sock_diag, fuzz_walk_block};
pub use inet_diag::{InetDecoder, decode_inet};
pub use live::{FlowSums, Follow, LiveConnections, probe_following};
pub use netlink::DecodeError;
pub use netlink_diag::NetlinkDecoder;
pub use options::Options;
pub use packet_diag::PacketDecoder;
pub use probe::{Probe, probe, sees_marks};
pub use proc_packet::{parse_proc_netlink_line, parse_proc_packet_line};
pub use proc_tcp::parse_proc_line;
pub use proc_unix::parse_proc_unix_line;
pub use pushdown::Families;
pub use raw_dump::dump_tcp;
pub use sctp_diag::SctpDecoder;
pub use source::SocketSource;
pub use tipc_diag::TipcDecoder;
pub use unix_diag::{UnixDecoder, decode_unix};
pub use vsock_diag::decode_vsock;
pub use xdp_diag::XdpDecoder;
