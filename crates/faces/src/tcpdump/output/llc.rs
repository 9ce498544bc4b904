//! IEEE 802.2: logical link control, and SNAP, one line per protocol.

use super::bytes::{Printed, array, be16, behind};
use super::line::{Ethernet, Inner, Line};
use super::pieces::{HexWide, LineBuffer, names, put, when};
use super::undecoded::{always_print, default_print};
use super::vendor_names::vendor_name;
use super::{ethertype, ethertype_names, stp};

/// The two addresses at the beginning of a frame.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    /// Address of the receiver.
    pub(super) dest: [u8; 6],
    /// Address of the sender.
    pub(super) source: [u8; 6],
}

/// Service access points.
const SNAP: u8 = 0xaa;
const STP: u8 = 0x42;
/// Organisations in SNAP headers.
const CISCO: u32 = 0x00_000c;
const CISCO_BRIDGED: u32 = 0x00_00f8;
const BRIDGED: u32 = 0x00_80c2;
const APPLETALK: u32 = 0x08_0007;
/// Unnumbered information.
const UI: u16 = 0x03;
/// Exchange of identifications, and the first byte of the identifications of IEEE 802.2.
const XID: u16 = 0xaf;
const IEEE: u8 = 0x81;

/// The header of an LLC frame.
#[derive(Clone, Copy)]
pub(super) struct LlcHeader {
    /// Its length.
    pub(super) bytes: usize,
    /// True if the protocol after it is decoded.
    pub(super) is_decoded: bool,
}

impl LlcHeader {
    fn decoded(bytes: usize) -> LlcHeader {
        LlcHeader { bytes, is_decoded: true }
    }
}

/// Prints an LLC frame.
pub(super) fn print(
    line: &mut Line<'_>,
    addresses: Option<Addresses>,
    bytes: &[u8],
    length: usize,
) -> Printed<LlcHeader> {
    line.protocol = "llc";
    if bytes.len() < 3 {
        line.cut();
        always_print(line, bytes);
        return Ok(LlcHeader::decoded(bytes.len()));
    }
    if length < 3 {
        return Ok(LlcHeader::decoded(length));
    }
    let [dest, source, control] = array(bytes, 0)?;
    let is_unnumbered = control & 3 == 3;
    if !is_unnumbered && bytes.len() < 4 {
        line.cut();
        always_print(line, bytes);
        return Ok(LlcHeader::decoded(bytes.len()));
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
            let is_decoded = snap(line, addresses, payload, rest)?;
            if !is_decoded {
                default_print(line, bytes);
            }
            return Ok(LlcHeader { bytes: header + 5, is_decoded });
        }
        (0x06, 0x06, UI) => {
            super::ipv4::print(line, payload, rest)?;
            return Ok(LlcHeader::decoded(header));
        }
        (STP, STP, UI) => {
            stp::print(line, payload, rest)?;
            return Ok(LlcHeader::decoded(header));
        }
        _ => {}
    }
    if !line.options.link_header {
        put_names(line, addresses, dest_point, source_point);
    }
    put_control(line, source, control, is_unnumbered, length);
    if is_unnumbered && control & 0xef == XID && !put_identification(line, payload, rest) || control & 3 == 1 {
        return Ok(LlcHeader::decoded(header));
    }
    default_print(line, bytes);
    Ok(LlcHeader { bytes: header, is_decoded: false })
}

/// Prints a station's identification; returns false if nothing of the frame is shown as bytes.
fn put_identification(line: &mut Line<'_>, payload: &[u8], length: usize) -> bool {
    match *payload {
        [] => {
            if length > 0 {
                line.cut();
            }
            false
        }
        [IEEE, a, b, ..] => {
            put!(line, ": ", HexWide(a, 2), " ", HexWide(b, 2));
            false
        }
        [IEEE, ..] => {
            line.cut();
            always_print(line, payload);
            false
        }
        _ => true,
    }
}

fn put_points(line: &mut Line<'_>, dest: u8, source: u8, control: u16, is_unnumbered: bool) {
    let point = |line: &mut Line<'_>, words: &str, point: u8, bit: &str, none: &str| {
        put!(line, words, point_name(point & !1).unwrap_or("Unknown"), " (0x", HexWide(point & !1, 2), ") ");
        put!(line, if point & 1 != 0 { bit } else { none });
    };
    point(line, "LLC, dsap ", dest, "Group", "Individual");
    point(line, ", ssap ", source, "Response", "Command");
    put!(line, ", ctrl 0x", HexWide(control, if is_unnumbered { 2 } else { 4 }), ": ");
}

fn put_names(line: &mut Line<'_>, addresses: Option<Addresses>, dest: u8, source: u8) {
    let unknown = |line: &mut Line<'_>, words: &str, point: u8| match point_name(point) {
        Some(name) => put!(line, name),
        None => put!(line, words, HexWide(point, 2)),
    };
    if let Some(addresses) = addresses {
        put!(line, Ethernet(&addresses.source), when(source != dest, " "));
    }
    if source != dest {
        unknown(line, "Unknown SSAP 0x", source);
    }
    if addresses.is_some() || source != dest {
        put!(line, " > ");
    }
    if let Some(addresses) = addresses {
        put!(line, Ethernet(&addresses.dest), " ");
    }
    unknown(line, "Unknown DSAP 0x", dest);
    put!(line, " ");
}

fn put_control(line: &mut Line<'_>, source: u8, control: u16, is_unnumbered: bool, length: usize) {
    let poll = if is_unnumbered { control & 0x10 != 0 } else { control & 0x100 != 0 };
    if is_unnumbered {
        put!(line, "Unnumbered, ");
        let command = (control & 0xef) as u8;
        put!(line, command_name(command).ok_or(HexWide(command, 2)));
    } else if control & 3 == 1 {
        put!(line, "Supervisory, ");
        put!(line, ["Receiver Ready", "Receiver not Ready", "Reject", "?"][usize::from(control >> 2 & 3)]);
        put!(line, ", rcv seq ", control >> 9);
    } else {
        put!(line, "Information, send seq ", control >> 1 & 0x7f, ", rcv seq ", control >> 9);
    }
    put!(line, ", Flags [");
    line.text(match (source & 1 != 0, poll) {
        (false, false) => "Command",
        (true, false) => "Response",
        (false, true) => "Poll",
        (true, true) => "Final",
    });
    put!(line, "], length ", length);
}

/// Prints a SNAP header, an organisation and its number of a protocol, and the payload.
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
        put_organisation(line, organisation, kind, length);
    }
    let known = match organisation {
        0 | CISCO_BRIDGED => ethertype::print(line, kind, behind(bytes, 5), length.saturating_sub(5))?,
        BRIDGED if matches!(kind, 1 | 7) => {
            line.inner(Inner::Ethernet, behind(bytes, 5), length.saturating_sub(5))?;
            true
        }
        CISCO | BRIDGED if matches!((organisation, kind), (CISCO, 0x010b) | (BRIDGED, 0x000e)) => {
            stp::print(line, behind(bytes, 5), length.saturating_sub(5))?;
            true
        }
        _ => false,
    };
    if !known && !line.options.link_header {
        match addresses {
            Some(addresses) => put!(line, Ethernet(&addresses.source), " > ", Ethernet(&addresses.dest), " SNAP, "),
            None => put!(line, "SNAP, "),
        }
        if organisation == 0 {
            ethertype_names::put_with_number(line, kind);
            put!(line, ", length ", length.saturating_sub(5), ": ");
        } else {
            put_organisation(line, organisation, kind, length);
        }
    }
    Ok(known)
}

/// Appends `oui Ethernet (0x000000), ethertype IPv4 (0x0800), length 31: `.
fn put_organisation(line: &mut Line<'_>, organisation: u32, kind: u16, length: usize) {
    let name = vendor_name(organisation);
    put!(line, "oui ", name, " (0x", HexWide(organisation, 6), "), ");
    if organisation == 0 {
        ethertype_names::put_with_number(line, kind);
    } else {
        let name = protocol_name(organisation, kind).unwrap_or("Unknown");
        put!(line, "pid ", name, " (0x", HexWide(kind, 4), ")");
    }
    put!(line, ", length ", length.saturating_sub(5), ": ");
}

/// Returns the name of an organisation's protocol number.
fn protocol_name(organisation: u32, kind: u16) -> Option<&'static str> {
    Some(match (organisation, kind) {
        (CISCO_BRIDGED | APPLETALK, kind) => return ethertype_names::name(kind),
        (CISCO, 0x010b) => "PVST",
        (CISCO, 0x010c) => "VLAN Bridge",
        (CISCO, 0x0111) => "UDLD",
        (CISCO, 0x2000) => "CDP",
        (CISCO, 0x2003) => "VTP",
        (CISCO, 0x2004) => "DTP",
        (BRIDGED, 0x0001) => "Ethernet + FCS",
        (BRIDGED, 0x0002) => "802.4 + FCS",
        (BRIDGED, 0x0003) => "Token Ring + FCS",
        (BRIDGED, 0x0004) => "FDDI + FCS",
        (BRIDGED, 0x0005) => "802.6 + FCS",
        (BRIDGED, 0x0007) => "Ethernet w/o FCS",
        (BRIDGED, 0x0008) => "802.4 w/o FCS",
        (BRIDGED, 0x0009) => "Token Ring w/o FCS",
        (BRIDGED, 0x000a) => "FDDI w/o FCS",
        (BRIDGED, 0x000b) => "802.6 w/o FCS",
        (BRIDGED, 0x000e) => "BPDU",
        _ => return None,
    })
}

names! {
    fn point_name(u8):
        0x00 => "Null", 0x02 => "802.1B I", 0x04 => "SNA", 0x06 => "IP", 0x0e => "ProWay NM", 0x42 => "STP",
        0x4e => "RS511", 0x7e => "ISO8208", 0x8e => "ProWay", 0xaa => "SNAP", 0xe0 => "IPX", 0xf0 => "NetBeui",
        0xfe => "OSI",
}

names! {
    fn command_name(u8):
        0x03 => "ui", 0xe3 => "test", 0xaf => "xid", 0x6f => "sabme", 0x43 => "disc", 0x63 => "ua", 0x87 => "frmr",
        0x0f => "dm",
}
