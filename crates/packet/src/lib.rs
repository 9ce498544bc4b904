//! Decoding of packet bytes without allocation: views into the bytes that were received.
//!
//! Network and transport headers, and what connection tracking knows a packet by, for records of packets; DNS
//! messages, for looking up names of addresses. Knows no socket, no file, no output; every byte is taken for hostile:
//! lengths are checked before each read, compression pointers are bounded, nothing panics.
#![forbid(unsafe_code)]

pub mod dns;
mod fuzz;
mod headers;
mod tuple;

pub use fuzz::fuzz_headers;
pub use headers::read_headers;
pub use tuple::{PacketTuple, packet_tuple};
