//! Decodes packet bytes without allocation: views into the received bytes.
//!
//! Link-layer, network and transport headers, and the tuple by which connection tracking identifies a packet, for
//! packet records; descriptions of packets in words; DNS messages, to look up names of addresses. This crate knows no
//! socket, no file, no output. Every byte is treated as hostile: lengths are checked before each read, compression
//! pointers are bounded, nothing panics.
#![forbid(unsafe_code)]

mod bytes;
pub mod dns;
mod fuzz;
mod headers;
mod info;
mod link;
mod mac;
mod tuple;

pub use fuzz::fuzz_headers;
pub use headers::{read_headers, read_headers_into, read_network_into, read_quoted_v6, read_transport};
pub use info::{INFO_BYTES_MAX, put_info};
pub use link::{fuzz_frame, is_tagged, put_untagged, read_frame};
pub use mac::mac_text;
pub use tuple::{PacketTuple, packet_tuple};
