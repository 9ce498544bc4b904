//! Ethernet: addresses, VLAN tags, and the protocols within.

use super::bytes::{Printed, array, at_most, behind};
use super::line::{Ethernet, Line};
use super::llc::{self, Addresses};
use super::pieces::{HexWide, list, put};
use super::undecoded::default_print;
use super::{ethertype, ethertype_names};

const ADDRESS_BYTES: usize = 12;
const HEADER_BYTES: usize = 14;
/// Numbers up to this one are the length of an IEEE 802.3 frame.
pub(super) const LENGTH_MAX: u16 = 1500;
/// IEEE 802.1Q, 802.1ad and numbers that were used before.
pub(super) const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

/// Prints a frame; returns the length of its header including tags.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed<usize> {
    line.protocol = "ether";
    if length < bytes.len() {
        put!(line, "[length ", length, " < caplen ", bytes.len(), "] (invalid)");
        return Ok(length);
    }
    if bytes.len() < HEADER_BYTES {
        line.cut();
        return Ok(bytes.len());
    }
    let addresses = Addresses { dest: array(bytes, 0)?, source: array(bytes, 6)? };
    let kind = u16::from_be_bytes(array(bytes, ADDRESS_BYTES)?);
    if line.options.link_header {
        if TAGS.contains(&kind) && bytes.len() < HEADER_BYTES + 4 {
            put_addresses(line, addresses);
        } else {
            put_header(line, addresses, kind, length);
        }
    }
    let rest = length - HEADER_BYTES;
    Ok(HEADER_BYTES + print_kind(line, Some(addresses), kind, behind(bytes, HEADER_BYTES), rest)?)
}

/// Prints the bytes after a type: tags, IEEE 802.3 or the protocol of an EtherType; returns the length of the headers
/// in `bytes`.
pub(super) fn print_kind(
    line: &mut Line<'_>,
    addresses: Option<Addresses>,
    kind: u16,
    bytes: &[u8],
    length: usize,
) -> Printed<usize> {
    let (mut kind, mut bytes, mut length, mut header) = (kind, bytes, length, 0);
    while TAGS.contains(&kind) {
        let Some((tag, rest)) = bytes.split_first_chunk::<4>() else {
            line.protocol = "vlan";
            line.cut();
            return Ok(header + bytes.len());
        };
        let [high, low, kind_high, kind_low] = *tag;
        let next = u16::from_be_bytes([kind_high, kind_low]);
        if line.options.link_header && header > 0 {
            put_kind(line, kind);
            put!(line, ", ");
        }
        if line.options.link_header {
            put_tag(line, u16::from_be_bytes([high, low]));
            if next > LENGTH_MAX && !TAGS.contains(&next) {
                put_kind(line, next);
                put!(line, ", ");
            }
        }
        (kind, bytes, length, header) = (next, rest, length.saturating_sub(4), header + 4);
    }
    if kind <= LENGTH_MAX {
        if line.options.link_header && header > 0 {
            put!(line, "802.3");
        }
        // The frame has the length in its header, but at most the remaining bytes.
        let len = usize::from(kind).min(length);
        return Ok(header + llc::print(line, addresses, at_most(bytes, len), len)?.bytes);
    }
    if !ethertype::print(line, kind, bytes, length)? {
        if let Some(addresses) = addresses.filter(|_| !line.options.link_header) {
            put_header(line, addresses, kind, length + HEADER_BYTES + header);
        }
        default_print(line, bytes);
    }
    Ok(header)
}

/// Appends `vlan 100, p 0, `.
pub(super) fn put_tag(line: &mut Line<'_>, tag: u16) {
    put!(line, "vlan ", tag & 0xfff, ", p ", tag >> 13, if tag & 0x1000 != 0 { ", DEI, " } else { ", " });
}

/// Appends `02:00:00:00:00:10 > 02:00:00:00:00:01, ethertype IPv4 (0x0800), length 98: `.
fn put_header(line: &mut Line<'_>, addresses: Addresses, kind: u16, length: usize) {
    put_addresses(line, addresses);
    let length = if kind <= LENGTH_MAX {
        put!(line, "802.3");
        usize::from(kind).min(length - HEADER_BYTES)
    } else {
        put_kind(line, kind);
        length
    };
    put!(line, ", length ", length, ": ");
}

fn put_addresses(line: &mut Line<'_>, addresses: Addresses) {
    put!(line, Ethernet(&addresses.source), " > ", Ethernet(&addresses.dest), ", ");
}

fn put_kind(line: &mut Line<'_>, kind: u16) {
    if line.options.quiet == 0 {
        return ethertype_names::put_with_number(line, kind);
    }
    put!(line, ethertype_names::name(kind).ok_or(list!("Unknown Ethertype (0x", HexWide(kind, 4), ")")));
}
