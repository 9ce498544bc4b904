//! The record OPT (RFC 6891): the largest datagram that the sender accepts, and options.

use super::super::bytes::{Printed, be16, be32, part, u8_at};
use super::super::line::Line;
use super::super::pieces::{HexBytes, put, put_last, when, word_of};
use super::name::put_name;
use record::Addr;

const LLQ: u16 = 1;
const SERVER_TAG: u16 = 17;
const ALGORITHMS_UNDERSTOOD: u16 = 5;
const HASHES_UNDERSTOOD: u16 = 6;
const N3U: u16 = 7;
const CLIENT_SUBNET: u16 = 8;
const EXPIRE: u16 = 9;
const COOKIE: u16 = 10;
const KEEPALIVE: u16 = 11;
const PADDING: u16 = 12;
const CHAIN: u16 = 13;
const KEY_TAG: u16 = 14;

#[rustfmt::skip]
const OPTIONS: [(u16, &str); 15] = [
    (LLQ, "LLQ"), (2, "UL"), (3, "NSID"), (ALGORITHMS_UNDERSTOOD, "DAU"), (HASHES_UNDERSTOOD, "DHU"), (N3U, "N3U"),
    (CLIENT_SUBNET, "ECS"), (EXPIRE, "EXPIRE"), (COOKIE, "COOKIE"), (KEEPALIVE, "KEEPALIVE"), (PADDING, "PADDING"),
    (CHAIN, "CHAIN"), (KEY_TAG, "KEY-TAG"), (16, "CLIENT-TAG"), (SERVER_TAG, "SERVER-TAG"),
];

/// Algorithms of signatures, hashes of DS and of NSEC3 (registries of the IANA), in the tool's spelling.
#[rustfmt::skip]
const ALGORITHMS: [(u8, &str); 17] = [
    (0, "DELETE"), (1, "RSAMD5"), (2, "DH"), (3, "DS"), (5, "RSASHA1"), (6, "DSA-NSEC3-SHA1"),
    (7, "RSASHA1-NSEC3-SHA1"), (8, "RSASHA256"), (10, "RSASHA512"), (12, "ECC-GOST"), (13, "ECDSAP256SHA256"),
    (14, "ECDSAP384SHA384"), (15, "ED25519"), (16, "ED448"), (252, "INDIRECT"), (253, "PRIVATEDNS"),
    (254, "PRIVATEOID"),
];
const HASHES: [(u8, &str); 4] = [(1, "SHA-1"), (2, "SHA-256"), (3, "GOST_R_34.11-94"), (4, "SHA-384")];
const NSEC3_HASHES: [(u8, &str); 1] = [(1, "SHA-1")];

/// Appends ` UDPsize=1232 DO [NSID 01,PADDING (3)]`.
pub(super) fn put(line: &mut Line<'_>, bytes: &[u8], size: u16, flags: u16, start: usize, end: usize) -> Printed {
    put!(line, " UDPsize=", size, when(flags & 0x8000 != 0, " DO"));
    let mut at = start;
    if at >= end {
        return Ok(());
    }
    put!(line, " [");
    while at < end {
        at = put_option(line, bytes, at)?;
        if at < end {
            put!(line, ",");
        }
    }
    put_last!(line, "]")
}

/// Appends an option; returns the offset of the next.
fn put_option(line: &mut Line<'_>, bytes: &[u8], at: usize) -> Printed<usize> {
    let kind = be16(bytes, at)?;
    put!(line, word_of(&OPTIONS, kind).ok_or(("Opt", kind)));
    let length = usize::from(be16(bytes, at + 2)?);
    let (at, end) = (at + 4, at + 4 + length);
    if length == 0 {
        return Ok(end);
    }
    let is_wrong = match kind {
        EXPIRE => length != 4,
        KEEPALIVE => length != 2,
        COOKIE => length != 8 && !(16..=40).contains(&length),
        KEY_TAG => length % 2 != 0,
        CLIENT_SUBNET => length < 4,
        _ => false,
    };
    part(bytes, at, length)?;
    put!(line, " ");
    if is_wrong {
        put!(line, " (invalid)");
        return Ok(end);
    }
    match kind {
        CLIENT_SUBNET => put_subnet(line, bytes, at, length)?,
        EXPIRE => put!(line, be32(bytes, at)?, " sec"),
        KEEPALIVE => put!(line, be16(bytes, at)? / 10, ".", be16(bytes, at)? % 10, " sec"),
        PADDING => put!(line, "(", length, ")"),
        // The tool reads pointers of this name as offsets into other bytes, and continues after a wrong name.
        CHAIN if u8_at(bytes, at)? & 0xc0 != 0xc0 => {
            let _ = put_name(line, bytes, at);
        }
        CHAIN => {}
        KEY_TAG => {
            for n in (0..length).step_by(2) {
                put!(line, when(n > 0, " "), be16(bytes, at + n)?);
            }
        }
        ALGORITHMS_UNDERSTOOD => put_algorithms(line, part(bytes, at, length)?, &ALGORITHMS),
        HASHES_UNDERSTOOD => put_algorithms(line, part(bytes, at, length)?, &HASHES),
        N3U => put_algorithms(line, part(bytes, at, length)?, &NSEC3_HASHES),
        _ => put!(line, HexBytes(part(bytes, at, length)?)),
    }
    Ok(end)
}

fn put_algorithms(line: &mut Line<'_>, numbers: &[u8], table: &[(u8, &'static str)]) {
    for (n, &number) in numbers.iter().enumerate() {
        put!(line, when(n > 0, " "), word_of(table, number).ok_or(("Alg_", number)));
    }
}

/// Appends a client subnet (RFC 7871 §6): family, source and scope prefix length, and as many bytes of the address as
/// the source prefix needs.
fn put_subnet(line: &mut Line<'_>, bytes: &[u8], at: usize, length: usize) -> Printed {
    let (family, source, scope) = (be16(bytes, at)?, u8_at(bytes, at + 2)?, u8_at(bytes, at + 3)?);
    let address = part(bytes, at + 4, length - 4)?;
    let mut octets = [0u8; 16];
    let bits = if family == 1 { 32 } else { 128 };
    let is_whole = usize::from(source).div_ceil(8) == address.len();
    if !is_whole || source.max(scope) > bits || !matches!(family, 1 | 2) {
        return put_last!(line, " (invalid)");
    }
    octets.iter_mut().zip(address).for_each(|(octet, given)| *octet = *given);
    match family {
        1 => put!(line, Addr::V4([octets[0], octets[1], octets[2], octets[3]])),
        _ => put!(line, Addr::V6(octets)),
    }
    put_last!(line, "/", source, "/", scope)
}
