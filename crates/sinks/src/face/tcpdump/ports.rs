//! Which protocol the ports of UDP and TCP lead to. One line a protocol, in tcpdump's order: the first whose port is
//! either end's prints.

use super::bytes::Printed;
use super::line::Line;
use super::options::PacketType;
use super::{dhcp, dhcp6, dns, geneve, http, ntp, vxlan};

/// Prints `length` bytes of a protocol, of which some were captured. The line stands behind `A.1 > B.2: `, of TCP
/// behind `length N`.
pub(super) type Printer = fn(&mut Line<'_>, payload: &[u8], length: usize) -> Printed;

/// Over UDP.
const UDP: &[(u16, Printer)] = &[
    (53, dns::print),
    (67, dhcp::print),
    (68, dhcp::print),
    (123, ntp::print),
    (5353, dns::print_multicast),
    (546, dhcp6::print),
    (547, dhcp6::print),
    (4789, vxlan::print),
    (6081, geneve::print),
];

/// Over TCP.
const TCP: &[(u16, Printer)] = &[(53, dns::print_over_tcp), (80, http::print), (8080, http::print)];

/// The printer of every datagram's payload (`-T`).
pub(super) fn udp_of_type(kind: PacketType) -> Printer {
    match kind {
        PacketType::Domain => dns::print,
        PacketType::Vxlan => vxlan::print,
    }
}

/// The printer of every segment's payload; those that TCP does not carry are not decoded.
pub(super) fn tcp_of_type(kind: PacketType) -> Option<Printer> {
    (kind == PacketType::Domain).then_some(dns::print_over_tcp as Printer)
}

/// The printer of a datagram's payload, if its ports lead to one.
#[inline]
pub(super) fn udp(sport: u16, dport: u16, _payload: &[u8]) -> Option<Printer> {
    of_ports(UDP, sport, dport)
}

/// The printer of a segment's payload.
#[inline]
pub(super) fn tcp(sport: u16, dport: u16, _payload: &[u8]) -> Option<Printer> {
    of_ports(TCP, sport, dport)
}

#[inline]
fn of_ports(table: &[(u16, Printer)], sport: u16, dport: u16) -> Option<Printer> {
    table.iter().find(|(port, _)| *port == sport || *port == dport).map(|(_, print)| *print)
}
