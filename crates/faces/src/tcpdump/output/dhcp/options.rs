//! The options of DHCP, one per line.

use super::super::bytes::{Printed, at_most, be16, be32, behind, part, u8_at};
use super::super::line::{Host4, Line};
use super::super::pieces::{Flags, HexWide, Mac, PacketText, list, put, put_last, when};
use super::names::{self, OptionKind, option};

const PAD: u8 = 0;
const END: u8 = 255;
const NETBIOS_NODE: u8 = 46;
const OVERLOAD: u8 = 52;
const MESSAGE: u8 = 53;
const REQUESTED: u8 = 55;
const CLIENT_ID: u8 = 61;
const USER_CLASS: u8 = 77;
const FULL_NAME: u8 = 81;
const RELAY: u8 = 82;

/// Prints options, which begin with their number.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    let magic = be32(bytes, 0)?;
    put!(line, "\n\t  Vendor-rfc1048 Extensions\n\t    Magic Cookie 0x", HexWide(magic, 8));
    let mut rest = behind(bytes, 4);
    while let Some((&number, more)) = rest.split_first() {
        rest = more;
        if number == END && line.verbose() < 3 {
            return Ok(());
        }
        if number == PAD && line.verbose() < 3 {
            continue;
        }
        let mut len = 0;
        if !matches!(number, PAD | END) {
            len = usize::from(u8_at(rest, 0)?);
            rest = behind(rest, 1);
        }
        let (kind, name) = option(number, len);
        put!(line, "\n\t    ", name, " (", number, "), length ", len, when(len > 0, ": "));
        if number == PAD {
            let more = rest.iter().take_while(|byte| **byte == PAD).count();
            rest = behind(rest, more);
            if more > 0 {
                put!(line, ", occurs ", more + 1);
            }
        }
        let value = part(rest, 0, len)?;
        rest = behind(rest, len);
        let left = put_value(line, number, kind, value)?;
        if left > 0 {
            put!(line, "\n\t  trailing data length ", left);
        }
    }
    Ok(())
}

/// Prints a value; returns the number of bytes after it that do not belong to it.
fn put_value(line: &mut Line<'_>, number: u8, kind: OptionKind, value: &[u8]) -> Printed<usize> {
    if let (MESSAGE, [message]) = (number, value) {
        put!(line, names::message(*message).ok_or(list!("Unknown (", *message, ")")));
        return Ok(0);
    }
    if number == REQUESTED {
        put_requested(line, value);
        return Ok(0);
    }
    let unit = match kind {
        OptionKind::Text => {
            put!(line, "\"", PacketText(value), "\"");
            return Ok(0);
        }
        OptionKind::Special => return put_special(line, number, value),
        OptionKind::Addresses | OptionKind::Longs | OptionKind::SignedLongs => 4,
        OptionKind::AddressPairs => 8,
        OptionKind::Shorts => 2,
        OptionKind::Bytes | OptionKind::Switches => 1,
    };
    for (nth, one) in value.chunks_exact(unit).enumerate() {
        if nth > 0 {
            put!(line, if kind == OptionKind::Bytes { "." } else { "," });
        }
        put_one(line, kind, one)?;
    }
    Ok(value.len() % unit)
}

fn put_one(line: &mut Line<'_>, kind: OptionKind, one: &[u8]) -> Printed {
    match kind {
        OptionKind::Addresses => put!(line, Host4(be32(one, 0)?.to_be_bytes())),
        OptionKind::AddressPairs => {
            put!(line, "(");
            put!(line, Host4(be32(one, 0)?.to_be_bytes()), ":");
            put!(line, Host4(be32(one, 4)?.to_be_bytes()), ")");
        }
        OptionKind::SignedLongs => put!(line, be32(one, 0)? as i32),
        OptionKind::Longs => put!(line, be32(one, 0)?),
        OptionKind::Shorts => put!(line, be16(one, 0)?),
        OptionKind::Switches => match u8_at(one, 0)? {
            0 => put!(line, "N"),
            1 => put!(line, "Y"),
            other => put!(line, other, "?"),
        },
        _ => put!(line, u8_at(one, 0)?),
    }
    Ok(())
}

/// Prints the options that a client requests, four per line.
fn put_requested(line: &mut Line<'_>, value: &[u8]) {
    for (nth, number) in value.iter().enumerate() {
        put!(line, if nth % 4 == 0 { "\n\t      " } else { ", " }, option(*number, 0).1, " (", *number, ")");
    }
}

fn put_special(line: &mut Line<'_>, number: u8, value: &[u8]) -> Printed<usize> {
    let (least, all) = match number {
        NETBIOS_NODE | OVERLOAD | CLIENT_ID => ("1", value.is_empty()),
        FULL_NAME => ("3", value.len() < 3),
        USER_CLASS => ("2", value.len() < 2),
        RELAY => ("", false),
        _ => ("5", value.len() < 5),
    };
    if all {
        put!(line, "[ERROR: length < ", least, " bytes]");
        return Ok(0);
    }
    match number {
        NETBIOS_NODE | OVERLOAD => {
            let kind = u8_at(value, 0)?;
            let name = if number == OVERLOAD { names::overloaded(kind) } else { names::netbios_node(kind) };
            put!(line, name.ok_or(("#", kind)));
            return Ok(value.len() - 1);
        }
        CLIENT_ID => put_client(line, value)?,
        FULL_NAME => put_full_name(line, value)?,
        USER_CLASS => put_classes(line, value)?,
        RELAY => return put_relay(line, value),
        _ => put_routes(line, value)?,
    }
    Ok(0)
}

fn put_client(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (kind, id) = (u8_at(value, 0)?, behind(value, 1));
    if kind == 0 {
        return put_last!(line, "\"", PacketText(id), "\"");
    }
    match names::hardware(kind) {
        Some(name) => put!(line, name, " "),
        None => put!(line, "hardware-type ", kind, ", "),
    }
    put_last!(line, Mac(id))
}

/// Prints a fully qualified domain name (RFC 4702).
fn put_full_name(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (flags, first, second) = (u8_at(value, 0)?, u8_at(value, 1)?, u8_at(value, 2)?);
    if flags & 0xf0 != 0 {
        put!(line, "[ERROR: MBZ nibble 0x", HexWide(flags >> 4, 1), " != 0] ");
    }
    if flags & 0x0f != 0 {
        put!(line, "[", Flags(&[(1, "S"), (2, "O"), (4, "E"), (8, "N")], "", "", flags), "] ");
    }
    if first != 0 || second != 0 {
        put!(line, first, "/", second, " ");
    }
    put_last!(line, "\"", PacketText(behind(value, 3)), "\"")
}

/// Prints user classes (RFC 3004).
fn put_classes(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (mut rest, mut number) = (value, 1_u32);
    while let Some((&len, more)) = rest.split_first() {
        put!(line, "\n\t      instance#", number, ": ");
        let len = usize::from(len);
        if len == 0 {
            return put_last!(line, "[ERROR: suboption length must be non-zero]");
        }
        let Some(class) = more.get(..len) else {
            return put_last!(line, "[ERROR: invalid option]");
        };
        put!(line, "\"", PacketText(class), "\", length ", len);
        (rest, number) = (behind(more, len), number + 1);
    }
    Ok(())
}

/// Prints the options of a relay (RFC 3046).
fn put_relay(line: &mut Line<'_>, value: &[u8]) -> Printed<usize> {
    let mut rest = value;
    while let [kind, len, more @ ..] = rest {
        let name = names::relay_part(*kind);
        put!(line, "\n\t      ", name.unwrap_or("Unknown"), " SubOption ", *kind, ", length ", *len, ": ");
        let Some(text) = more.get(..usize::from(*len)) else {
            put!(line, "length goes past end of option");
            return Ok(0);
        };
        if name.is_some() {
            put!(line, PacketText(text));
        } else {
            super::super::dump::put_hex_lines(line.out, "\n\t\t", text, false);
        }
        rest = behind(more, text.len());
    }
    Ok(rest.len())
}

/// Prints classless routes (RFC 3442).
fn put_routes(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let mut rest = value;
    while let Some((&bits, more)) = rest.split_first() {
        if rest.len() != value.len() {
            put!(line, ",");
        }
        if bits > 32 {
            return put_last!(line, "[ERROR: Mask width (", bits, ") > 32]");
        }
        let octets = usize::from(bits).div_ceil(8);
        if more.len() < octets + 4 {
            return put_last!(line, "[ERROR: Remaining length (", more.len(), ") < ", octets + 4, " bytes]");
        }
        put!(line, "(");
        if bits == 0 {
            put!(line, "default");
        } else {
            for nth in 0..4 {
                let octet = at_most(more, octets).get(nth).copied().unwrap_or(0);
                put!(line, when(nth > 0, "."), octet);
            }
            put!(line, "/", bits);
        }
        put!(line, ":");
        put!(line, Host4(be32(more, octets)?.to_be_bytes()), ")");
        rest = behind(more, octets + 4);
    }
    Ok(())
}
