//! Link types, each of which has a header at the beginning of a packet.

use super::bytes::{Printed, array, behind, u8_at};
use super::frame::CapturedBytes;
use super::line::{Inner, Line};
use super::options::InterfaceName;
use super::pieces::{put, put_last};
use super::undecoded::default_print;
use super::{cooked, ethernet, ethertype, ipv4, ipv6};
use record::rows::LinkType;

/// BSD's numbers of the address families, some of which differ between systems.
const AF_INET: u32 = 2;
const AF_INET6: [u32; 3] = [24, 28, 30];

/// True if packets of this link type can be printed.
pub(super) fn knows(link_type: LinkType) -> bool {
    use LinkType as T;
    // 12 and 14: raw IP in the numbering of other systems. 228, 229: IPv4, IPv6.
    matches!(link_type, T::ETHERNET | T::RAW | T::NULL | T::LOOP | T::SLL | T::SLL2)
        || matches!(link_type.0, 12 | 14 | 228 | 229)
}

/// Prints a packet, beginning with its link-layer header.
pub(super) fn print(line: &mut Line<'_>, frame: &CapturedBytes<'_>, interface: InterfaceName<'_>) -> Printed {
    let length = frame.len as usize;
    match frame.link_type {
        LinkType::ETHERNET => ethernet::print(line, frame.bytes, length).map(|header| line.link_header = header),
        LinkType::SLL => cooked::sll(line, frame.bytes, length),
        LinkType::SLL2 => cooked::sll2(line, frame.bytes, length, interface),
        LinkType::NULL | LinkType::LOOP => null(line, frame, length),
        _ => raw(line, frame.bytes, length),
    }
}

/// Prints the contents of a tunnel; returns false if they are not decoded.
pub(super) fn inner(line: &mut Line<'_>, kind: Inner, bytes: &[u8], length: usize) -> Printed<bool> {
    match kind {
        Inner::Ethernet => ethernet::print(line, bytes, length).map(|_| ())?,
        Inner::V4 => ipv4::print(line, bytes, length)?,
        Inner::V6 => ipv6::print(line, bytes, length)?,
        Inner::EtherType(kind) => return ethertype::print(line, kind, bytes, length),
    }
    Ok(true)
}

fn raw(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "raw";
    if line.options.link_header {
        put!(line, "ip: ");
    }
    ip_of_any_version(line, bytes, length)
}

/// Prints IPv4 or IPv6, according to the first four bits.
pub(super) fn ip_of_any_version(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    if length < 1 {
        return put_last!(line, "truncated-ip ", length);
    }
    match u8_at(bytes, 0)? >> 4 {
        4 => ipv4::print(line, bytes, length),
        6 => ipv6::print(line, bytes, length),
        version => put_last!(line, "unknown ip ", version),
    }
}

/// Prints BSD loopback: four bytes with the address family, in the byte order of the host that captured.
fn null(line: &mut Line<'_>, frame: &CapturedBytes<'_>, length: usize) -> Printed {
    line.protocol = "null";
    let family = array(frame.bytes, 0)?;
    let family = match frame.link_type {
        LinkType::LOOP => u32::from_be_bytes(family),
        // A number above 16 bits is in the other byte order.
        _ => match u32::from_le_bytes(family) {
            swapped if swapped & 0xffff_0000 != 0 => swapped.swap_bytes(),
            family => family,
        },
    };
    let (bytes, rest) = (behind(frame.bytes, 4), length.saturating_sub(4));
    if line.options.link_header {
        null_header(line, family, rest);
    }
    match family {
        AF_INET => ipv4::print(line, bytes, rest)?,
        family if AF_INET6.contains(&family) => ipv6::print(line, bytes, rest)?,
        _ => {
            if !line.options.link_header {
                null_header(line, family, rest);
            }
            default_print(line, bytes);
        }
    }
    line.link_header = 4;
    Ok(())
}

fn null_header(line: &mut Line<'_>, family: u32, rest: usize) {
    let name = match family {
        AF_INET => Some("IPv4"),
        family if AF_INET6.contains(&family) => Some("IPv6"),
        _ => None,
    };
    if line.options.quiet > 0 {
        put!(line, name.ok_or(("Unknown AF ", family)));
    } else {
        put!(line, "AF ", name.unwrap_or("Unknown"), " (", family, ")");
    }
    put!(line, ", length ", rest + 4, ": ");
}
