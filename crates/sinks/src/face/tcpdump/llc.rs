//! IEEE 802.2: logical link control, and SNAP. One line a protocol.

use super::bytes::{Printed, array, be16, behind, u8_at};
use super::line::Line;
use super::undecoded::{always_print, default_print};
use super::{ethertype, ethertype_names};

/// The two addresses of a frame: what it begins with.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    /// Who it is for.
    pub(super) dest: [u8; 6],
    /// Who sent it.
    pub(super) source: [u8; 6],
}

/// Service access points.
const SNAP: u8 = 0xaa;
/// Unnumbered information.
const UI: u16 = 0x03;

/// Prints an LLC frame; returns the bytes of its header.
pub(super) fn print(line: &mut Line<'_>, addresses: Option<Addresses>, bytes: &[u8], length: usize) -> Printed<usize> {
    line.protocol = "llc";
    if bytes.len() < 3 {
        line.cut();
        always_print(line, bytes);
        return Ok(bytes.len());
    }
    if length < 3 {
        return Ok(length);
    }
    let [dest, source, control] = array(bytes, 0)?;
    let is_unnumbered = control & 3 == 3;
    if !is_unnumbered && bytes.len() < 4 {
        line.cut();
        always_print(line, bytes);
        return Ok(bytes.len());
    }
    let (control, header) =
        if is_unnumbered { (u16::from(control), 3) } else { (u16::from_le_bytes(array(bytes, 2)?), 4) };
    let (dest_point, source_point) = (dest & !1, source & !1);
    if line.options.link_header {
        put_points(line, dest, source, control, is_unnumbered);
    }
    let (payload, rest) = (behind(bytes, header), length.saturating_sub(header));
    match (dest_point, source_point, control) {
        (SNAP, SNAP, UI) => {
            if !snap(line, addresses, payload, rest)? {
                default_print(line, bytes);
            }
            return Ok(header + 5);
        }
        (0x06, 0x06, UI) => {
            super::ipv4::print(line, payload, rest)?;
            return Ok(header);
        }
        _ => {}
    }
    if !line.options.link_header {
        put_names(line, addresses, dest_point, source_point);
    }
    put_control(line, source, control, is_unnumbered, length);
    // XID: its three bytes are told, the rest is not shown.
    if is_unnumbered && control & 0xef == 0xaf && payload.first() == Some(&0x81) {
        line.put(": ");
        line.hex_padded(u8_at(payload, 1)?, 2);
        line.byte(b' ');
        line.hex_padded(u8_at(payload, 2)?, 2);
        return Ok(header);
    }
    default_print(line, bytes);
    Ok(header)
}

fn put_points(line: &mut Line<'_>, dest: u8, source: u8, control: u16, is_unnumbered: bool) {
    let point = |line: &mut Line<'_>, words: &str, point: u8, bit: &str, none: &str| {
        line.put(words);
        line.put(point_name(point & !1).unwrap_or("Unknown"));
        line.put(" (0x");
        line.hex_padded(point & !1, 2);
        line.put(") ");
        line.put(if point & 1 != 0 { bit } else { none });
    };
    point(line, "LLC, dsap ", dest, "Group", "Individual");
    point(line, ", ssap ", source, "Response", "Command");
    line.put(", ctrl 0x");
    line.hex_padded(control, if is_unnumbered { 2 } else { 4 });
    line.put(": ");
}

fn put_names(line: &mut Line<'_>, addresses: Option<Addresses>, dest: u8, source: u8) {
    let unknown = |line: &mut Line<'_>, words: &str, point: u8| match point_name(point) {
        Some(name) => line.put(name),
        None => {
            line.put(words);
            line.hex_padded(point, 2);
        }
    };
    if let Some(addresses) = addresses {
        line.mac(&addresses.source);
        if source != dest {
            line.byte(b' ');
        }
    }
    if source != dest {
        unknown(line, "Unknown SSAP 0x", source);
    }
    if addresses.is_some() || source != dest {
        line.put(" > ");
    }
    if let Some(addresses) = addresses {
        line.mac(&addresses.dest);
        line.byte(b' ');
    }
    unknown(line, "Unknown DSAP 0x", dest);
    line.byte(b' ');
}

fn put_control(line: &mut Line<'_>, source: u8, control: u16, is_unnumbered: bool, length: usize) {
    let poll = if is_unnumbered { control & 0x10 != 0 } else { control & 0x100 != 0 };
    if is_unnumbered {
        line.put("Unnumbered, ");
        let command = (control & 0xef) as u8;
        match command_name(command) {
            Some(name) => line.put(name),
            None => line.hex_padded(command, 2),
        }
    } else if control & 3 == 1 {
        line.put("Supervisory, ");
        line.put(["Receiver Ready", "Receiver not Ready", "Reject", "?"][usize::from(control >> 2 & 3)]);
        line.item(", rcv seq ", control >> 9);
    } else {
        line.item("Information, send seq ", control >> 1 & 0x7f);
        line.item(", rcv seq ", control >> 9);
    }
    line.put(", Flags [");
    line.put(match (source & 1 != 0, poll) {
        (false, false) => "Command",
        (true, false) => "Response",
        (false, true) => "Poll",
        (true, true) => "Final",
    });
    line.put("], length ");
    line.len(length);
}

/// SNAP: an organisation and its number of a protocol.
fn snap(line: &mut Line<'_>, addresses: Option<Addresses>, bytes: &[u8], length: usize) -> Printed<bool> {
    line.protocol = "snap";
    if bytes.len() < 5 {
        line.cut();
        return Ok(true);
    }
    let [a, b, c] = array(bytes, 0)?;
    let organisation = u32::from_be_bytes([0, a, b, c]);
    let kind = be16(bytes, 3)?;
    if line.options.link_header {
        line.put("oui ");
        line.put(match organisation {
            0 => "Ethernet",
            0x00_000c => "Cisco",
            0x00_00f8 => "Cisco bridged",
            0x00_80c2 => "RFC2684",
            0x08_0007 => "Appletalk",
            _ => "Unknown",
        });
        line.put(" (0x");
        line.hex_padded(organisation, 6);
        line.put("), ");
        if organisation == 0 {
            ethertype_names::put_with_number(line, kind);
        } else {
            line.put("pid Unknown (0x");
            line.hex_padded(kind, 4);
            line.byte(b')');
        }
        line.put(", length ");
        line.len(length.saturating_sub(5));
        line.put(": ");
    }
    let _ = addresses;
    match organisation {
        0 | 0x00_00f8 => ethertype::print(line, kind, behind(bytes, 5), length.saturating_sub(5)),
        _ => Ok(false),
    }
}

fn point_name(point: u8) -> Option<&'static str> {
    Some(match point {
        0x00 => "Null",
        0x02 => "802.1B I",
        0x03 => "802.1B G",
        0x06 => "IP",
        0x0e => "ProWay NM",
        0x42 => "STP",
        0x8e => "ProWay ASM",
        0x98 => "ARP",
        0xaa => "SNAP",
        0xbc => "Banyan Vines",
        0xe0 => "NetWare",
        0xf0 => "NetBeui",
        0xfe => "ISONS",
        0xff => "Global",
        _ => return None,
    })
}

fn command_name(command: u8) -> Option<&'static str> {
    Some(match command {
        0x03 => "ui",
        0xe3 => "test",
        0xaf => "xid",
        0x6f => "sabme",
        0x43 => "disc",
        0x63 => "ua",
        0x87 => "frmr",
        0x0f => "dm",
        _ => return None,
    })
}
