//! Decoding of packet bytes without allocation: views into the bytes that were received.
//!
//! Link-layer, network and transport headers, and what connection tracking knows a packet by, for records of packets;
//! what packets say, in words; DNS messages, for looking up names of addresses. Knows no socket, no file, no output;
//! every byte is taken for hostile: lengths are checked before each read, compression pointers are bounded, nothing
//! panics.
#![forbid(unsafe_code)]

mod bytes;
pub mod dns;
mod fuzz;
mod headers;
mod info;
mod link;
mod tuple;

pub use fuzz::fuzz_headers;
pub use headers::{read_headers, read_headers_into};
pub use info::{INFO_BYTES_MAX, put_info};
pub use link::{fuzz_frame, is_tagged, mac_text, put_untagged, read_frame};
pub use tuple::{PacketTuple, packet_tuple};
