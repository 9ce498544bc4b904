//! The packet that an error is about: its destination.

use super::super::bytes::{Cut, Printed, array};
use super::super::line::{Host6, Line, Port};
use super::super::network::{TCP, UDP};
use super::super::pieces::{LineBuffer, put};
use packet::read_quoted_v6;

/// Prints why a packet did not arrive. `code` must be a known code.
pub(super) fn put_unreachable(line: &mut Line<'_>, code: u8, quoted: &[u8]) -> Printed {
    line.text(match code {
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
            put!(line, " ", Host6(dest), ", source address ", Host6(source));
        }
        4 => {
            let (proto, port) = upper_layer(quoted).ok_or(Cut)?;
            let dest = dest?;
            put!(line, ", ", Host6(dest), if proto == TCP { " tcp port " } else { " udp port " }, Port(proto, port));
        }
        _ => {
            let dest = dest?;
            put!(line, " ", Host6(dest));
        }
    }
    Ok(())
}

/// Returns TCP or UDP after the headers, and the destination port of the packet.
fn upper_layer(quoted: &[u8]) -> Option<(u8, u16)> {
    let headers = read_quoted_v6(quoted).filter(|headers| matches!(headers.proto, TCP | UDP))?;
    headers.transport.ports().map(|(_, dport)| (headers.proto, dport))
}
