//! The packet that an error is about: its destination.

use super::super::bytes::{Cut, Printed, array, be16, u8_at};
use super::super::line::Line;
use super::super::network::{TCP, UDP};

const HEADER_BYTES: usize = 40;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// The bits of a fragment's offset.
const OFFSET: u16 = 0xfff8;

/// Prints why a packet did not arrive. `code` must be a known code.
pub(super) fn put_unreachable(line: &mut Line<'_>, code: u8, quoted: &[u8]) -> Printed {
    line.put(match code {
        0 => ", unreachable route",
        1 => ",  unreachable prohibited",
        2 => ", beyond scope",
        3 => ", unreachable address",
        _ => ", unreachable port",
    });
    let dest = array(quoted, 24);
    match code {
        2 => {
            let (source, dest) = (array(quoted, 8)?, dest?);
            line.byte(b' ');
            line.v6(dest);
            line.put(", source address ");
            line.v6(source);
        }
        4 => {
            let (proto, port) = upper_layer(quoted).ok_or(Cut)?;
            let dest = dest?;
            line.put(", ");
            line.v6(dest);
            line.put(if proto == TCP { " tcp port " } else { " udp port " });
            line.port(proto, port);
        }
        _ => {
            let dest = dest?;
            line.byte(b' ');
            line.v6(dest);
        }
    }
    Ok(())
}

/// Returns TCP or UDP after the headers, and the destination port of the packet.
fn upper_layer(quoted: &[u8]) -> Option<(u8, u16)> {
    let (mut next, mut at, mut len) = (u8_at(quoted, 6).ok()?, 0, HEADER_BYTES);
    while at < quoted.len() {
        at += len;
        let length = || u8_at(quoted, at + 1).ok().map(usize::from);
        len = match next {
            UDP | TCP => return Some((next, be16(quoted, at + 2).ok()?)),
            HOP_BY_HOP | DESTINATION | ROUTING => (length()? + 1) * 8,
            // A fragment that is not the first has no ports.
            FRAGMENT if be16(quoted, at + 2).ok()? & OFFSET != 0 => return None,
            FRAGMENT => 8,
            AUTHENTICATION => (length()? + 2) * 4,
            _ => return None,
        };
        next = u8_at(quoted, at).ok()?;
    }
    None
}
