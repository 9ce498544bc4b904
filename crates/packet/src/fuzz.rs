//! Entry point for the fuzzer: no bytes may make a decoder panic.
use std::hint::black_box;

use crate::headers::read_headers;
use crate::tuple::packet_tuple;

/// Reads any bytes as a packet.
pub fn fuzz_headers(data: &[u8]) {
    let read = read_headers(data);
    black_box(read.as_ref().and_then(packet_tuple));
    black_box(read);
}
