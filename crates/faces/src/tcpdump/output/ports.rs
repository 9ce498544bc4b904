//! Finds the protocol to print for the ports of UDP and TCP. The tables have one line per protocol, in tcpdump's order:
//! the first entry whose port matches either end is used. The order was determined by running tcpdump 4.99.3 on each
//! pair of ports.

use super::bytes::Printed;
use super::line::Line;
use super::options::PacketType;
use super::{dhcp, dhcp6, dns, geneve, http, ntp, vxlan};

/// Prints `length` bytes of a protocol, of which some were captured. The line so far ends in `A.1 > B.2: `, in TCP in
/// `length N`.
pub(super) type Printer = fn(&mut Line<'_>, payload: &[u8], length: usize) -> Printed;

/// A port in tcpdump's list, with netwren's printer for it.
#[derive(Clone, Copy)]
enum PortEntry {
    Either(u16, Printer),
    /// A protocol that is not decoded here, but that tcpdump checks before the following entries.
    Other(u16),
    /// Like `Other`, but only for the destination port.
    OtherTo(u16),
}
use PortEntry::{Either, Other, OtherTo};

/// Protocols over UDP.
#[rustfmt::skip]
const UDP: &[PortEntry] = &[
    Either(53, dns::print), Either(5353, dns::print_multicast), Other(69), Other(525), Either(67, dhcp::print),
    Either(68, dhcp::print), Other(161), Other(162), Other(500), Other(520), Other(654), Other(4500), Other(7500),
    Other(8500), Either(123, ntp::print), Other(88), Other(521), Other(750), Other(1701), Other(2103), Other(2104),
    OtherTo(3456), Other(7000), Other(7001), Other(7002), Other(7003), Other(7004), Other(7005), Other(7006),
    Other(7007), Other(7008), Other(7009), Either(546, dhcp6::print), Either(547, dhcp6::print), Other(496), Other(514),
    Other(646), Other(698), Other(701), Other(921), Other(1589), Other(1645), Other(1646), Other(1700), Other(1812),
    Other(1813), OtherTo(1985), Other(3503), OtherTo(3784), OtherTo(3785), Other(3799), OtherTo(4567), OtherTo(4784),
    Other(5060), Other(5359), Other(6343), Other(6696), Other(6697), OtherTo(6784), Other(8231), Other(8472),
    Other(12222), Other(12223), Either(4789, vxlan::print), Either(6081, geneve::print),
];

/// Protocols over TCP.
#[rustfmt::skip]
const TCP: &[PortEntry] = &[
    Other(21), Other(22), Other(23), Other(25), Other(43), Other(179), Other(1723), Other(6379), Other(6633),
    Other(6653), Other(10288), Either(80, http::print), Either(8080, http::print), Other(554), Other(8554),
    Either(53, dns::print_over_tcp),
];

/// Returns the printer for every datagram's payload (`-T`).
pub(super) fn udp_of_type(kind: PacketType) -> Printer {
    match kind {
        PacketType::Domain => dns::print,
        PacketType::Vxlan => vxlan::print,
    }
}

/// Returns the printer for every segment's payload; protocols that are not used over TCP are not decoded.
pub(super) fn tcp_of_type(kind: PacketType) -> Option<Printer> {
    (kind == PacketType::Domain).then_some(dns::print_over_tcp as Printer)
}

/// Returns the printer for a datagram's payload, if its ports have one.
#[inline]
pub(super) fn udp(ports: (u16, u16)) -> Option<Printer> {
    of_ports(UDP, ports)
}

/// Returns the printer for a segment's payload.
#[inline]
pub(super) fn tcp(ports: (u16, u16)) -> Option<Printer> {
    of_ports(TCP, ports)
}

fn of_ports(table: &[PortEntry], (sport, dport): (u16, u16)) -> Option<Printer> {
    let is_either = |port: &u16| *port == sport || *port == dport;
    let printer = |entry: &PortEntry| match entry {
        Either(port, print) if is_either(port) => Some(*print),
        _ => None,
    };
    let (at, print) = table.iter().enumerate().find_map(|(at, entry)| Some((at, printer(entry)?)))?;
    // Most packets have no port in the list, so the function returns above.
    let is_other = |entry: &PortEntry| match entry {
        Other(port) => is_either(port),
        OtherTo(port) => *port == dport,
        Either(..) => false,
    };
    (!table.iter().take(at).any(is_other)).then_some(print)
}
