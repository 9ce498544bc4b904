//! Decoding of packet bytes without allocation: views into the bytes that were received.
//!
//! So far DNS messages only, for looking up names of addresses. Link, network and transport headers come with the
//! capture table. Knows no socket, no file, no output; every byte is taken for hostile: lengths are checked before
//! each read, compression pointers are bounded, nothing panics.
#![forbid(unsafe_code)]

pub mod dns;
