//! Values of options of DHCPv6, except options and names within them.

use super::super::bytes::{Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::super::line::{Host6, Line};
use super::super::pieces::{HexBytes, HexWide, PacketText, put, put_last, when};
use super::names;

/// Most bytes that are shown of identifiers that may hold anything.
const SHOWN_BYTES: usize = 10;

/// Prints the name of an option, or its number.
pub(super) fn put_option_name(line: &mut Line<'_>, number: u16) {
    put!(line, names::option(number).ok_or(("opt_", number)));
}

/// True if a value has the length, or the minimum length, that its option requires.
pub(super) fn is_long_enough(number: u16, len: usize) -> bool {
    match number {
        1 | 2 | 13 => len >= 2,
        3 | 25 => len >= 12,
        4 | 37 | 56 => len >= 4,
        5 => len >= 24,
        6 | 43 => len % 2 == 0,
        7 | 19 => len == 1,
        8 => len == 2,
        11 => len >= 11,
        22 | 23 | 27 | 28 | 31 | 34 | 40 | 48 => len % 16 == 0,
        26 => len >= 25,
        32 | 46 => len == 4,
        41 | 42 | 112 => len >= 5,
        44 => len >= 17,
        47 => len >= 16,
        64 => len >= 3,
        _ => true,
    }
}

/// Prints values without options or names in them.
pub(super) fn put_plain(line: &mut Line<'_>, number: u16, value: &[u8]) -> Printed {
    let shown = |from: usize| HexBytes(at_most(behind(value, from), SHOWN_BYTES));
    match number {
        7 => put!(line, " ", u8_at(value, 0)?),
        8 => put!(line, " ", be16(value, 0)?),
        32 | 46 => put!(line, " ", be32(value, 0)?),
        13 => {
            let code = be16(value, 0)?;
            match names::state(code) {
                Some(name) => put!(line, " ", name),
                None if code > 255 => put!(line, " INVALID code"),
                None => put!(line, " code", code),
            }
        }
        18 | 38 => put!(line, " ", shown(0), "..."),
        19 => match u8_at(value, 0)? {
            5 => put!(line, " for renew"),
            11 => put!(line, " for inf-req"),
            other => put!(line, " for ???(", HexWide(other, 2), ")"),
        },
        22 | 23 | 27 | 28 | 31 | 34 | 40 | 48 => {
            for at in (0..value.len()).step_by(16) {
                put_address(line, value, at)?;
            }
        }
        37 => put!(line, " ", be32(value, 0)?, " ", shown(4), "..."),
        41 | 42 | 112 => put!(line, " ", PacketText(value.split(|byte| *byte == 0).next().unwrap_or(value))),
        47 => {
            put_address(line, value, 0)?;
            put!(line, " ", shown(16), "...");
        }
        64 => put_gateway(line, value)?,
        _ => {}
    }
    Ok(())
}

/// Prints a blank and an address.
pub(super) fn put_address(line: &mut Line<'_>, value: &[u8], at: usize) -> Printed {
    put_last!(line, " ", Host6(array(value, at)?))
}

/// Prints the identifier of a client or a server.
pub(super) fn put_identifier(line: &mut Line<'_>, value: &[u8]) -> Printed {
    match be16(value, 0)? {
        1 if value.len() >= 8 => {
            let (kind, time) = (be16(value, 2)?, be32(value, 4)?);
            put!(line, " hwaddr/time type ", kind, " time ", time, " ", HexBytes(behind(value, 8)));
        }
        2 if value.len() >= 10 => put!(line, " vid ", HexBytes(part(value, 2, 8)?)),
        3 if value.len() >= 4 => put!(line, " hwaddr type ", be16(value, 2)?, " ", HexBytes(behind(value, 4))),
        1..=3 => put!(line, " ?"),
        kind => put!(line, " type ", kind),
    }
    Ok(())
}

const DELAYED: u8 = 2;
const RECONFIGURE: u8 = 3;

/// Prints the authentication of a message.
pub(super) fn put_authentication(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let [protocol, algorithm, method] = array(value, 0)?;
    match protocol {
        DELAYED => put!(line, " proto: delayed"),
        RECONFIGURE => put!(line, " proto: reconfigure"),
        other => put!(line, " proto: ", other),
    }
    match algorithm {
        1 => put!(line, ", alg: HMAC-MD5"),
        other => put!(line, ", alg: ", other),
    }
    match method {
        0 => put!(line, ", RDM: mono"),
        other => put!(line, ", RDM: ", other),
    }
    put!(line, ", RD:");
    for nth in 0..4 {
        put!(line, " ", HexWide(be16(value, 3 + nth * 2)?, 4));
    }
    let rest = behind(value, 11);
    match (protocol, rest.len()) {
        (DELAYED, 0) => Ok(()),
        (DELAYED, 20..) => {
            let realm = rest.len() - 20;
            put!(line, when(realm > 0, ", realm: "), HexBytes(at_most(rest, realm)));
            put!(line, ", key ID: ", HexWide(be32(rest, realm)?, 8), ", HMAC-MD5:");
            put_words(line, behind(rest, realm + 4))
        }
        (RECONFIGURE, 17) => {
            match u8_at(rest, 0)? {
                1 => put!(line, " reconfig-key"),
                2 => put!(line, " type: HMAC-MD5"),
                _ => put!(line, " type: ??"),
            }
            put!(line, " value:");
            put_words(line, behind(rest, 1))
        }
        _ => put_last!(line, " ??"),
    }
}

/// Prints four numbers of 32 bits.
fn put_words(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    for nth in 0..4 {
        put!(line, " ", HexWide(be32(bytes, nth * 4)?, 8));
    }
    Ok(())
}

/// Prints the name of a tunnel endpoint (RFC 6334).
fn put_gateway(line: &mut Line<'_>, value: &[u8]) -> Printed {
    put!(line, " ");
    let (mut at, mut left) = (0, value.len());
    while left > 0 && u8_at(value, at)? != 0 {
        let len = usize::from(u8_at(value, at)?);
        at += 1;
        if len >= left - 1 {
            put!(line, " ?");
            break;
        }
        let label = part(value, at, len)?;
        put!(line, PacketText(label.split(|byte| *byte == 0).next().unwrap_or(label)));
        at += len;
        left -= len + 1;
        if u8_at(value, at)? != 0 {
            put!(line, ".");
        }
    }
    Ok(())
}
