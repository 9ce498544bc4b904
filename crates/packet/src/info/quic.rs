//! Describes the long header of QUIC, with which connections start (RFC 8999, RFC 9000 17.2, RFC 9369).

use super::put_word;
use crate::bytes::array;
use record::text::put_hex;

/// The bit of the long header, and the bit that is set in versions 1 and 2.
const LONG_HEADER: u8 = 0x80;
const FIXED: u8 = 0x40;
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
/// Other versions are only recognised on this port: elsewhere such bytes may be anything.
const PORT: u16 = 443;
/// Maximum size of a connection identifier in known versions.
const ID_BYTES_MAX: usize = 20;
/// Names of packet types per version, indexed by two bits of the first byte.
const KINDS_1: [&[u8]; 4] = [b"initial", b"0-rtt", b"handshake", b"retry"];
const KINDS_2: [&[u8]; 4] = [b"retry", b"initial", b"0-rtt", b"handshake"];

/// Appends `quic v1 initial dcid 8394c8f03e515708` if a datagram starts with a long header: the identifiers of the
/// receiver and the sender, unless they are empty.
pub(super) fn put(data: &[u8], ports: [u16; 2], out: &mut Vec<u8>) {
    let Some(header) = LongHeader::read(data) else { return };
    let is_known = matches!(header.version, VERSION_1 | VERSION_2) && header.first & FIXED != 0;
    if !is_known && !ports.contains(&PORT) {
        return;
    }
    put_word(out, b"quic ");
    let kind = usize::from(header.first >> 4 & 3);
    match header.version {
        0 => out.extend_from_slice(b"version negotiation"),
        VERSION_1 => put_version(b"v1 ", KINDS_1[kind], out),
        VERSION_2 => put_version(b"v2 ", KINDS_2[kind], out),
        version => {
            out.extend_from_slice(b"version 0x");
            put_hex(out, version.into());
        }
    }
    for (word, id) in [(b"dcid", header.dest), (b"scid", header.source)] {
        if !id.is_empty() {
            put_word(out, word);
            out.push(b' ');
            put_bytes(id, out);
        }
    }
}

/// Fields that all versions have.
struct LongHeader<'h> {
    first: u8,
    version: u32,
    /// Connection identifiers: the receiver's, the sender's.
    dest: &'h [u8],
    source: &'h [u8],
}

impl<'h> LongHeader<'h> {
    fn read(data: &'h [u8]) -> Option<LongHeader<'h>> {
        let first = *data.first().filter(|first| **first & LONG_HEADER != 0)?;
        let version = array(data, 1).map(u32::from_be_bytes)?;
        let (dest, rest) = id(data.get(5..)?)?;
        let (source, _) = id(rest)?;
        Some(LongHeader { first, version, dest, source })
    }
}

/// An identifier with its length before it, and the bytes after it.
fn id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    let length = usize::from(length);
    if length > ID_BYTES_MAX {
        return None;
    }
    rest.split_at_checked(length)
}

fn put_version(version: &[u8], kind: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(version);
    out.extend_from_slice(kind);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}
