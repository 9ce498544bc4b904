//! ARP and RARP (RFC 826, RFC 903).

use super::bytes::{Printed, be16, part, u8_at};
use super::line::{Ethernet, Host4, Line};
use super::pieces::{HexWide, list, names, put, put_last, when};
use super::undecoded::always_print;

const IPV4: u16 = 0x0800;
const TRAILERS: u16 = 0x1000;

/// Prints an ARP packet.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "arp";
    let arp = Arp::read(bytes)?;
    if !line.options.link_header {
        put!(line, "ARP, ");
    }
    if line.verbose() > 0 || !arp.is_usual() {
        put_lengths(line, &arp);
    }
    // Unusual header fields are printed with `-v`.
    if line.verbose() > 0 || arp.is_usual() {
        put_operation(line, &arp);
        if !matches!(arp.operation, 1..=4 | 8 | 9) {
            always_print(line, bytes);
            return Ok(());
        }
    }
    put_last!(line, ", length ", length)
}

struct Arp<'a> {
    hardware: u16,
    protocol: u16,
    operation: u16,
    hardware_bytes: usize,
    protocol_bytes: usize,
    /// Hardware and protocol address of the sender, then of the target.
    addresses: [&'a [u8]; 4],
}

impl<'a> Arp<'a> {
    fn read(bytes: &'a [u8]) -> Printed<Arp<'a>> {
        let (hardware_bytes, protocol_bytes) = (usize::from(u8_at(bytes, 4)?), usize::from(u8_at(bytes, 5)?));
        let (mut addresses, mut at) = ([&[][..]; 4], 8);
        for (address, len) in addresses.iter_mut().zip([hardware_bytes, protocol_bytes].iter().cycle()) {
            *address = part(bytes, at, *len)?;
            at += len;
        }
        let arp = Arp {
            hardware: be16(bytes, 0)?,
            protocol: be16(bytes, 2)?,
            operation: be16(bytes, 6)?,
            hardware_bytes,
            protocol_bytes,
            addresses,
        };
        Ok(arp)
    }

    /// True for IPv4, or its trailers, over hardware that has addresses.
    fn is_usual(&self) -> bool {
        matches!(self.protocol, IPV4 | TRAILERS) && self.protocol_bytes == 4 && self.hardware_bytes != 0
    }
}

fn put_lengths(line: &mut Line<'_>, arp: &Arp<'_>) {
    put!(line, hardware_name(arp.hardware).ok_or(list!("Unknown Hardware (", arp.hardware, ")")));
    let protocol = super::ethertype_names::name(arp.protocol);
    put!(line, " (len ", arp.hardware_bytes, "), ");
    put!(line, protocol.ok_or(list!("Unknown Protocol (0x", HexWide(arp.protocol, 4), ")")));
    put!(line, " (len ", arp.protocol_bytes, ")", when(line.verbose() > 0, ", "));
}

names! {
    fn hardware_name(u16): 1 => "Ethernet", 6 => "TokenRing", 7 => "ArcNet", 15 => "FrameRelay", 23 => "Strip",
        24 => "IEEE 1394", 32 => "InfiniBand"
}

fn put_operation(line: &mut Line<'_>, arp: &Arp<'_>) {
    let (is_ipv4, hardware) = (matches!(arp.protocol, IPV4 | TRAILERS), arp.addresses[2]);
    let [from, _, to, _] =
        arp.addresses.map(|address| if address.is_empty() { Err("<empty>") } else { Ok(Ethernet(address)) });
    let [_, sender, _, target] = arp.addresses.map(|address| match address.try_into() {
        _ if !is_ipv4 => Err("<wrong proto type>"),
        Err(_) => Err("<wrong len>"),
        Ok(address) => Ok(Host4(address)),
    });
    match arp.operation {
        1 if hardware.iter().any(|byte| *byte != 0) => {
            put!(line, "Request who-has ", target, " (", to, ") tell ", sender);
        }
        1 => put!(line, "Request who-has ", target, " tell ", sender),
        2 => put!(line, "Reply ", sender, " is-at ", from),
        3 => put!(line, "Reverse Request who-is ", to, " tell ", from),
        4 => put!(line, "Reverse Reply ", to, " at ", target),
        8 => put!(line, "Inverse Request who-is ", to, " tell ", from),
        9 => put!(line, "Inverse Reply ", from, " at ", sender),
        10 => put!(line, "NACK Reply "),
        operation => put!(line, "Unknown (", operation, ") "),
    }
}
