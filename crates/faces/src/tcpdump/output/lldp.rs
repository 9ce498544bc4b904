//! The link layer discovery protocol (IEEE 802.1AB): the length of a message and the system's name; with `-v` every
//! entry.

mod data_center;
mod ieee;
mod media;
mod words;

use super::bytes::{Cut, Printed, array, be16, be24, be32, behind, part, u8_at};
use super::dump::put_hex_lines;
use super::line::{Ethernet, Host4, Host6, Line};
use super::pieces::{Flags, HexWide, PacketText, put};
use super::vendor_names::vendor_name;
use words::ManyWords;

const HEADER_BYTES: usize = 2;
const END: u16 = 0;
const CHASSIS: u16 = 1;
const PORT: u16 = 2;
const TIME_TO_LIVE: u16 = 3;
const PORT_DESCRIPTION: u16 = 4;
const SYSTEM_NAME: u16 = 5;
const SYSTEM_DESCRIPTION: u16 = 6;
const CAPABILITIES: u16 = 7;
const MANAGEMENT: u16 = 8;
const PRIVATE: u16 = 127;
/// Organisations with their own entries.
const IEEE_802_1: u32 = 0x00_80c2;
const IEEE_802_3: u32 = 0x00_120f;
const IANA: u32 = 0x00_005e;
const TIA: u32 = 0x00_12bb;
const DCBX: u32 = 0x00_1b21;

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "lldp";
    put!(line, "LLDP, length ", length);
    line.or_cut(|line| put_entries(line, bytes, length));
    Ok(())
}

fn put_entries(line: &mut Line<'_>, mut bytes: &[u8], mut length: usize) -> Printed {
    while length >= HEADER_BYTES {
        let head = be16(bytes, 0)?;
        let (kind, len) = (head >> 9, usize::from(head & 0x1ff));
        (bytes, length) = (behind(bytes, HEADER_BYTES), length - HEADER_BYTES);
        if line.verbose() > 0 {
            put!(line, "\n\t", words::entry(kind).unwrap_or("Unknown"), " TLV (", kind, "), length ", len);
        }
        // The end, or an entry that lacks its value.
        if len == 0 || kind == END {
            return Ok(());
        }
        let entry = part(bytes, 0, len)?;
        if length < len {
            return Err(Cut);
        }
        let mut is_decoded = true;
        if line.verbose() > 0 {
            is_decoded = put_entry(line, kind, entry)?;
        } else if kind == SYSTEM_NAME {
            put!(line, ": ", text(entry));
        }
        if line.verbose() > 1 || line.verbose() > 0 && !is_decoded {
            put_hex_lines(line.out, "\n\t  ", entry, false);
        }
        (bytes, length) = (behind(bytes, len), length - len);
    }
    Ok(())
}

/// Returns text up to a zero byte or the end.
fn text(bytes: &[u8]) -> PacketText<'_> {
    PacketText(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes))
}

/// Prints an entry; returns false if it is not decoded.
fn put_entry(line: &mut Line<'_>, kind: u16, entry: &[u8]) -> Printed<bool> {
    match kind {
        CHASSIS => return put_id(line, &words::CHASSIS, 4, 5, entry),
        PORT => return put_id(line, &words::PORTS, 3, 4, entry),
        TIME_TO_LIVE => put!(line, ": TTL ", be16(entry, 0)?, "s"),
        PORT_DESCRIPTION | SYSTEM_NAME => put!(line, ": ", text(entry)),
        SYSTEM_DESCRIPTION => put!(line, "\n\t  ", text(entry)),
        CAPABILITIES => {
            let (has, enabled) = (be16(entry, 0)?, be16(entry, 2)?);
            for (name, set) in [("System ", has), ("Enabled", enabled)] {
                put!(line, "\n\t  ", name, " Capabilities [", Flags(&words::CAPABILITIES, "none", ", ", set), "] (0x");
                put!(line, HexWide(set, 4), ")");
            }
        }
        MANAGEMENT => put_management(line, entry)?,
        PRIVATE => return put_private(line, entry),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Prints the identifier of a chassis or a port.
fn put_id(line: &mut Line<'_>, names: &[&'static str; 7], ethernet: u8, network: u8, entry: &[u8]) -> Printed<bool> {
    part(entry, 0, 2)?;
    let (kind, id) = (u8_at(entry, 0)?, behind(entry, 1));
    let name = usize::from(kind).checked_sub(1).and_then(|nth| names.get(nth));
    put!(line, "\n\t  Subtype ", *name.unwrap_or(&"Unknown"), " (", kind, "): ");
    if kind == ethernet {
        put!(line, Ethernet(part(id, 0, 6)?));
    } else if kind == network {
        put_network_address(line, "", id)?;
    } else if name.is_some() {
        put!(line, text(id));
    }
    Ok(name.is_some())
}

/// Appends `before` and `AFI IPv4 (1): 192.0.2.1`.
fn put_network_address(line: &mut Line<'_>, before: &str, bytes: &[u8]) -> Printed {
    let family = u8_at(bytes, 0)?;
    let address = behind(bytes, 1);
    let len = match family {
        1 => 4,
        2 => 16,
        6 => 6,
        _ => 0,
    };
    let address = part(address, 0, len)?;
    put!(line, before, "AFI ", words::family(family).unwrap_or("Unknown"), " (", family, ")");
    match family {
        1 => {
            put!(line, ": ");
            put!(line, Host4(array(address, 0)?));
        }
        2 => {
            put!(line, ": ");
            put!(line, Host6(array(address, 0)?));
        }
        6 => put!(line, ": ", Ethernet(address)),
        _ => put!(line, ", no AF printer !"),
    }
    Ok(())
}

fn put_management(line: &mut Line<'_>, entry: &[u8]) -> Printed {
    let len = usize::from(u8_at(entry, 0)?);
    let address = part(entry, 1, len)?;
    u8_at(address, 0)?;
    let start = line.out.len();
    put!(line, "\n\t  Management Address length ", len, ", ");
    if let Err(cut) = put_network_address(line, "", address) {
        line.out.truncate(start);
        return Err(cut);
    }
    let rest = behind(entry, 1 + len);
    let number = part(rest, 0, 5)?;
    let kind = u8_at(number, 0)?;
    let name = match kind {
        2 => "Interface Index",
        3 => "System Port Number",
        _ => "Unknown",
    };
    put!(line, "\n\t  ", name, " Interface Numbering (", kind, "): ", be32(number, 1)?);
    let rest = behind(rest, 5);
    if let Some((&len, more)) = rest.split_first() {
        let object = part(more, 0, len.into())?;
        if len > 0 {
            put!(line, "\n\t  OID length ", len, text(object));
        }
    }
    Ok(())
}

/// Prints an entry of an organisation.
fn put_private(line: &mut Line<'_>, entry: &[u8]) -> Printed<bool> {
    let organisation = be24(entry, 0)?;
    put!(line, ": OUI ", vendor_name(organisation), " (0x", HexWide(organisation, 6), ")");
    let names: &ManyWords = match organisation {
        IEEE_802_1 => words::IEEE_802_1,
        IEEE_802_3 => words::IEEE_802_3,
        IANA => &[(1, "MUD-URL")],
        TIA => words::MEDIA,
        DCBX => words::DATA_CENTER,
        _ => return Ok(false),
    };
    // Values that are too short are neither printed nor shown in hexadecimal.
    if entry.len() < if organisation == IANA { 8 } else { 4 } {
        return Ok(true);
    }
    let (kind, value) = (u8_at(entry, 3)?, behind(entry, 4));
    put!(line, "\n\t  ", words::of(names, kind.into()).unwrap_or("unknown"), " Subtype (", kind, ")");
    match organisation {
        IEEE_802_1 => ieee::put_802_1(line, kind, value),
        IEEE_802_3 => ieee::put_802_3(line, kind, value),
        TIA => media::put(line, kind, value),
        DCBX => data_center::put(line, kind, value),
        _ if kind == 1 => {
            put!(line, "\n\t  MUD-URL=", PacketText(value));
            Ok(true)
        }
        _ => Ok(false),
    }
}
