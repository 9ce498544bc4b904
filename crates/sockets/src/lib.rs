//! The kernel's socket tables as rows.
//!
//! Reads sockets of network namespaces via sock_diag, from /proc/net or with BPF, live or from a recording, one row at
//! a time in a reused buffer. Knows the kernel's interfaces, but nothing about processes, filter syntax or output.
//! Start reading at [`SocketSource`]; a new column begins in `record::rows` and ends in one of the modules of
//! `backends`.
#![forbid(unsafe_code)]

mod address_families;
mod all_netns;
mod backends;
mod choose;
mod destroy;
mod events;
mod expected;
mod fuzz;
mod keys;
mod options;
mod pushdown;
mod source;
mod trial;

pub use all_netns::AllNetnsSockets;
pub use backends::bpf::cache::BackendCache;
pub use backends::bpf::rows::NOT_IN_WALK;
pub use backends::netlink::inet_diag::{InetDecoder, decode_inet};
pub use backends::netlink::netlink_diag::NetlinkDecoder;
pub use backends::netlink::packet_diag::PacketDecoder;
pub use backends::netlink::raw_dump::dump_tcp;
pub use backends::netlink::sctp_diag::SctpDecoder;
pub use backends::netlink::tipc_diag::TipcDecoder;
pub use backends::netlink::unix_diag::{UnixDecoder, decode_unix};
pub use backends::netlink::vsock_diag::decode_vsock;
pub use backends::netlink::xdp_diag::XdpDecoder;
pub use backends::proc::packet::{parse_proc_netlink_line, parse_proc_packet_line};
pub use backends::proc::tcp::parse_proc_line;
pub use backends::proc::unix::parse_proc_unix_line;
pub use choose::recorded_bits;
pub use choose::{
    BPF_HAS, NETLINK_LACKS_UNIX, PROC_LACKS_INET, PROC_LACKS_NETLINK, PROC_LACKS_PACKET, PROC_LACKS_UNIX, Via,
};
pub use destroy::{CloseOutcome, Cookie, Target, close, mptcp_token, try_closing};
pub use events::netlink::destroyed::Destroyed;
pub use events::{FlowSums, Follow, LiveConnections, UdpSenders, try_following};
pub use expected::tcp_sockets as count_tcp;
pub use fuzz::{fuzz_proc_line, fuzz_sock_diag, fuzz_walk_block};
pub use netlink::DecodeError;
pub use options::Options;
pub use pushdown::Families;
pub use source::SocketSource;
pub use trial::{BackendTrial, sees_marks, try_backends};
