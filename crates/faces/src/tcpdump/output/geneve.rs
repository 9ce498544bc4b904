//! Geneve (RFC 8926): `Geneve, Flags [C], vni 0x2a, options [8 bytes]: ` and the packet within.

use super::bytes::{Cut, Printed, be16, be24, behind, part, u8_at};
use super::ethertype_names;
use super::line::{Inner, Line};
use super::pieces::{Hex, HexWide, put, put_last, when};

const HEADER: usize = 8;
const OPTION_HEADER: usize = 4;
const FLAGS: [(u8, &str); 8] =
    [(0x80, "O"), (0x40, "C"), (0x20, "R1"), (0x10, "R2"), (0x08, "R3"), (0x04, "R4"), (0x02, "R5"), (0x01, "R6")];
/// IEEE 802.1, an Ethernet frame within.
const BRIDGING: u16 = 0x6558;

/// Appends a datagram.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "geneve";
    put!(line, "Geneve");
    if length < HEADER {
        return put_last!(line, " [length ", length, " < ", HEADER, "] (invalid)");
    }
    match put_header(line, bytes, length) {
        Ok(Some((kind, header))) => put_payload(line, kind, behind(bytes, header), length - header),
        Ok(None) => Ok(()),
        Err(Cut) => line.end_cut(),
    }
}

/// Returns the type of the packet within and its offset.
fn put_header(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed<Option<(u16, usize)>> {
    part(bytes, 0, HEADER)?;
    let first = u8_at(bytes, 0)?;
    if first >> 6 != 0 {
        put!(line, " ERROR: unknown-version ", first >> 6);
        return Ok(None);
    }
    let (flags, kind) = (u8_at(bytes, 1)?, be16(bytes, 2)?);
    put!(line, ", Flags [", when(flags == 0, "none"));
    FLAGS.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, word)| put!(line, *word));
    put!(line, "]");
    put!(line, ", vni 0x", Hex(be24(bytes, 4)?));
    match u8_at(bytes, 7)? {
        0 => {}
        reserved => put!(line, ", rsvd 0x", Hex(reserved)),
    }
    if line.options.link_header {
        put!(line, ", proto ", ethertype_names::name(kind).unwrap_or("unknown"), " (0x", HexWide(kind, 4), ")");
    }
    let options = usize::from(first & 0x3f) * 4;
    let left = length - HEADER;
    if left < options {
        put!(line, " truncated-geneve - ", options - left, " bytes missing");
        return Ok(None);
    }
    part(bytes, HEADER, options)?;
    if options > 0 {
        put_options(line, behind(bytes, HEADER), options)?;
    }
    put!(line, if line.verbose() > 0 { "\n\t" } else { ": " });
    Ok(Some((kind, HEADER + options)))
}

fn put_payload(line: &mut Line<'_>, kind: u16, inner: &[u8], length: usize) -> Printed {
    let within = if kind == BRIDGING { Inner::Ethernet } else { Inner::EtherType(kind) };
    if !line.inner(within, inner, length)? {
        put!(line, "geneve-proto-0x", Hex(kind));
    }
    Ok(())
}

fn put_options(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    put!(line, ", options [");
    if line.verbose() == 0 {
        return put_last!(line, length, " bytes]");
    }
    let (mut at, mut before) = (0, "");
    while at < length {
        put!(line, before);
        before = ", ";
        let class = be16(bytes, at)?;
        put!(line, "class ", class_word(class), " (0x", Hex(class), ")");
        let kind = u8_at(bytes, at + 2)?;
        put!(line, " type 0x", Hex(kind), when(kind & 0x80 != 0, "(C)"));
        let size = OPTION_HEADER + usize::from(u8_at(bytes, at + 3)? & 0x1f) * 4;
        put!(line, " len ", size);
        if size > length - at {
            put!(line, " [bad length]");
            break;
        }
        if line.verbose() > 1 && size > OPTION_HEADER {
            put!(line, " data");
            for word in (at + OPTION_HEADER..at + size).step_by(4) {
                put!(line, " ", HexWide(super::bytes::be32(bytes, word)?, 8));
            }
        }
        at += size;
    }
    put_last!(line, "]")
}

fn class_word(class: u16) -> &'static str {
    match class {
        0..=0xff => "Standard",
        0x100 => "Linux",
        0x101 => "Open vSwitch",
        0x102 => "Open Virtual Networking (OVN)",
        0x103 => "In-band Network Telemetry (INT)",
        0x104 => "VMware",
        0xffff => "Experimental",
        _ => "Unknown",
    }
}
