//! EtherTypes: their names and printers, one line per protocol.

use super::bytes::Printed;
use super::line::Line;
use super::{arp, ipv4, ipv6, lldp};

/// Prints the protocol of an EtherType; returns false if it is not decoded.
pub(super) fn print(line: &mut Line<'_>, kind: u16, bytes: &[u8], length: usize) -> Printed<bool> {
    match kind {
        0x0800 => ipv4::print(line, bytes, length)?,
        0x86dd => ipv6::print(line, bytes, length)?,
        0x0806 | 0x8035 => arp::print(line, bytes, length)?,
        0x88cc => lldp::print(line, bytes, length)?,
        _ => return Ok(false),
    }
    Ok(true)
}
