//! Decoding of packet bytes without allocation: views into the bytes that were received.
//!
//! Network and transport headers, for records of packets; DNS messages, for looking up names of addresses. Knows no
//! socket, no file, no output; every byte is taken for hostile: lengths are checked before each read, compression
//! pointers are bounded, nothing panics.
#![forbid(unsafe_code)]

pub mod dns;
mod headers;

pub use headers::{fuzz_headers, read_headers};
