//! Linux "cooked" headers, which captures of `any` have instead of the link-layer header.

use super::bytes::{Printed, be16, be32, behind, part, u8_at};
use super::ethernet::{LENGTH_MAX, TAGS, put_tag};
use super::line::{Ethernet, Line};
use super::options::InterfaceName;
use super::pieces::{HexWide, PacketText, put};
use super::undecoded::default_print;
use super::{ethertype, ethertype_names, llc};

/// Numbers below the EtherTypes: Novell's IEEE 802.3, IEEE 802.2 (include/uapi/linux/if_ether.h).
const NOVELL: u16 = 1;
const LLC: u16 = 4;
const SLL_BYTES: usize = 16;
const SLL2_BYTES: usize = 20;

/// The fields of a header.
struct CookedHeader<'c> {
    packet_type: u8,
    kind: u16,
    /// The sender's address, if it is an Ethernet address.
    address: Option<&'c [u8]>,
    /// The number of the interface.
    interface: Option<u32>,
}

/// Prints a packet with a header of the first version: 16 bytes.
pub(super) fn sll(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "sll";
    part(bytes, 0, SLL_BYTES)?;
    let cooked = CookedHeader {
        // The high byte is 0 in all known values.
        packet_type: u8::try_from(be16(bytes, 0)?).unwrap_or(u8::MAX),
        kind: be16(bytes, 14)?,
        address: if be16(bytes, 4)? == 6 { bytes.get(6..12) } else { None },
        interface: None,
    };
    if line.options.link_header {
        put_header(line, &cooked, length);
    }
    payload(line, &cooked, bytes, SLL_BYTES, length)
}

/// Prints a packet with a header of the second version, which contains the number of the interface: 20 bytes.
pub(super) fn sll2(line: &mut Line<'_>, bytes: &[u8], length: usize, interface: InterfaceName<'_>) -> Printed {
    line.protocol = "sll2";
    part(bytes, 0, SLL2_BYTES)?;
    let number = be32(bytes, 4)?;
    let cooked = CookedHeader {
        packet_type: u8_at(bytes, 10)?,
        kind: be16(bytes, 0)?,
        address: if u8_at(bytes, 11)? == 6 { bytes.get(12..18) } else { None },
        interface: Some(number),
    };
    let name = interface(number).unwrap_or("?");
    put!(line, PacketText(name.as_bytes()));
    pad(line, name.len(), 5);
    put!(line, " ");
    let packet_type = packet_type_name(cooked.packet_type);
    put!(line, packet_type);
    pad(line, packet_type.len(), 3);
    put!(line, " ");
    if line.options.link_header {
        put_header(line, &cooked, length);
    }
    payload(line, &cooked, bytes, SLL2_BYTES, length)
}

fn pad(line: &mut Line<'_>, from: usize, to: usize) {
    for _ in from..to {
        put!(line, " ");
    }
}

/// Returns the word for the destination of a packet.
fn packet_type_name(packet_type: u8) -> &'static str {
    match packet_type {
        0 => "In",
        1 => "B",
        2 => "M",
        3 => "P",
        4 => "Out",
        _ => "?",
    }
}

fn put_header(line: &mut Line<'_>, cooked: &CookedHeader<'_>, length: usize) {
    if let Some(number) = cooked.interface {
        put!(line, "ifindex ", number, " ");
    } else {
        let packet_type = packet_type_name(cooked.packet_type);
        pad(line, packet_type.len(), 3);
        put!(line, packet_type, " ");
    }
    if let Some(address) = cooked.address {
        put!(line, Ethernet(address), " ");
    }
    if line.options.quiet > 0 {
        return;
    }
    match cooked.kind {
        NOVELL => put!(line, "802.3"),
        LLC => put!(line, "802.2"),
        kind if kind <= LENGTH_MAX => put!(line, "ethertype Unknown (0x", HexWide(kind, 4), ")"),
        kind => ethertype_names::put_with_number(line, kind),
    }
    put!(line, ", length ", length, ": ");
}

fn payload(line: &mut Line<'_>, cooked: &CookedHeader<'_>, bytes: &[u8], header: usize, length: usize) -> Printed {
    let (mut kind, mut header, start) = (cooked.kind, header, header);
    loop {
        let (inner, rest) = (behind(bytes, header), length.saturating_sub(header));
        if kind == LLC {
            let llc = llc::print(line, None, inner, rest)?;
            header += if llc.is_decoded { llc.bytes } else { 0 };
        } else if TAGS.contains(&kind) && inner.len() < 4 {
            line.protocol = "vlan";
            line.cut();
            header += inner.len();
        } else if TAGS.contains(&kind) {
            kind = tag(line, inner)?;
            header += 4;
            continue;
        } else if !ethertype::print(line, kind, inner, rest)? {
            if !line.options.link_header && kind > LENGTH_MAX {
                // The length does not include the tags.
                put_header(line, cooked, length.saturating_sub(header - start));
            }
            default_print(line, inner);
        }
        line.link_header = header;
        return Ok(());
    }
}

/// Prints a VLAN tag; returns the type after it.
fn tag(line: &mut Line<'_>, bytes: &[u8]) -> Printed<u16> {
    if line.options.link_header {
        put_tag(line, be16(bytes, 0)?);
    }
    let kind = match be16(bytes, 2)? {
        kind if kind <= LENGTH_MAX => LLC,
        kind => kind,
    };
    if line.options.quiet == 0 {
        put!(line, "ethertype ", ethertype_names::name(kind).unwrap_or("Unknown"), ", ");
    }
    Ok(kind)
}
