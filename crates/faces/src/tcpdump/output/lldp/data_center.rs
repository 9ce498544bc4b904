//! The data center bridging exchange protocol, as it was before it became part of IEEE 802.1.

use super::super::bytes::{Printed, array, be16, be24, be32, behind, part, u8_at};
use super::super::dump::put_hex_lines;
use super::super::line::Line;
use super::super::pieces::{Hex, HexWide, Written, put, put_last, written};

const FIRST_VERSION: u8 = 1;
const CONTROL: u16 = 1;
const GROUPS: u16 = 2;
const FLOW_CONTROL: u16 = 3;
const APPLICATION: u16 = 4;

/// Prints an entry after its type; returns false if the last of its parts is not decoded.
pub(super) fn put(line: &mut Line<'_>, kind: u8, value: &[u8]) -> Printed<bool> {
    if kind == FIRST_VERSION {
        return Ok(false);
    }
    let (mut rest, mut is_decoded) = (value, true);
    while let Ok(head) = be16(rest, 0) {
        let (kind, len) = (head >> 9, usize::from(head & 0x1ff));
        rest = behind(rest, 2);
        is_decoded = true;
        let Ok(part) = part(rest, 0, len) else { break };
        if kind == 0 || len == 0 {
            break;
        }
        let least = match kind {
            CONTROL => 10,
            GROUPS => 17,
            FLOW_CONTROL => 6,
            APPLICATION => 4,
            _ => 0,
        };
        if len < least {
            break;
        }
        is_decoded = put_part(line, kind, part)?;
        if line.verbose() > 1 || !is_decoded {
            put_hex_lines(line.out, "\n\t    ", part, false);
        }
        rest = behind(rest, len);
    }
    Ok(is_decoded)
}

fn put_part(line: &mut Line<'_>, kind: u16, part: &[u8]) -> Printed<bool> {
    let name = match kind {
        CONTROL => "Control - Protocol Control",
        GROUPS => "Feature - Priority Group",
        FLOW_CONTROL => "Feature - Priority Flow Control",
        APPLICATION => "Feature - Application",
        _ => return Ok(false),
    };
    put!(line, "\n\t    ", name, " (type 0x", Hex(kind), ", length ", part.len(), ")");
    let [version, last] = array(part, 0)?;
    put!(line, "\n\t      Oper_Version: ", version, "\n\t      Max_Version: ", last);
    if kind == CONTROL {
        put!(line, "\n\t      Sequence Number: ", be32(part, 2)?);
        put!(line, "\n\t      Acknowledgement Number: ", be32(part, 6)?);
        return Ok(true);
    }
    let [flags, subtype] = array(part, 2)?;
    put_info(line, flags);
    put!(line, "\n\t      SubType: ", subtype);
    match kind {
        GROUPS => put_groups(line, part)?,
        FLOW_CONTROL => put_flow_control(line, part)?,
        _ => put_applications(line, behind(part, 4))?,
    }
    Ok(true)
}

/// Returns the digits of a byte, which the tool prints in upper case.
fn upper_hex(byte: u8) -> Written<impl Fn(&mut Vec<u8>)> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    written(move |out| out.extend([byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])))
}

fn put_info(line: &mut Line<'_>, flags: u8) {
    put!(line, "\n\t      Info block(0x", upper_hex(flags));
    put!(line, "): Enable bit: ", flags >> 7, ", Willing bit: ", flags >> 6 & 1, ", Error Bit: ", flags >> 5 & 1);
}

fn put_groups(line: &mut Line<'_>, part: &[u8]) -> Printed {
    put!(line, "\n\t      Priority Allocation");
    let groups = be32(part, 4)?;
    for nth in 0..8_u32 {
        put!(line, "\n\t          PgId_", nth, ": ", groups >> (28 - 4 * nth) & 15);
    }
    put!(line, "\n\t      Priority Group Allocation");
    for (nth, share) in array::<8>(part, 8)?.into_iter().enumerate() {
        put!(line, "\n\t          Pg percentage[", nth, "]: ", share);
    }
    put_last!(line, "\n\t      NumTCsSupported: ", u8_at(part, 16)?)
}

fn put_flow_control(line: &mut Line<'_>, part: &[u8]) -> Printed {
    let [bits, classes] = array(part, 4)?;
    put!(line, "\n\t      PFC Config (0x", upper_hex(bits), ")");
    for nth in 0..8_u8 {
        let word = if bits >> nth & 1 != 0 { "Enabled" } else { "Disabled" };
        put!(line, "\n\t          Priority Bit ", nth, ": ", word);
    }
    put_last!(line, "\n\t      NumTCPFCSupported: ", classes)
}

fn put_applications(line: &mut Line<'_>, parts: &[u8]) -> Printed {
    for part in parts.chunks_exact(6) {
        let (protocol, word) = (be16(part, 0)?, be24(part, 2)?);
        put!(line, "\n\t      Application Value\n\t          Application Protocol ID: 0x", HexWide(protocol, 4));
        let kind = if word >> 22 != 0 { "Socket Number" } else { "L2 EtherType" };
        put!(line, "\n\t          SF (0x", Hex(word >> 22), ") Application Protocol ID is ", kind);
        put!(line, "\n\t          OUI: 0x", HexWide(word & 0x3f_ffff, 6));
        put!(line, "\n\t          User Priority Map: 0x", HexWide(u8_at(part, 5)?, 2));
    }
    Ok(())
}
