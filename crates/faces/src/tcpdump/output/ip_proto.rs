//! Protocols over IP: their names and printers, one line per protocol.

use super::bytes::{Printed, behind};
use super::line::{Inner, Line};
use super::network::{ICMPV6, Network, SCTP, TCP, UDP};
use super::pieces::{LineBuffer, names, put, put_last};
use super::{gre, icmp, icmp6, igmp, ipsec, sctp, tcp, udp};

/// An Ethernet frame (RFC 8986).
const ETHERNET: u8 = 143;

/// Prints the payload of a packet: `length` bytes, of which `bytes` were captured.
#[inline]
pub(super) fn print(line: &mut Line<'_>, packet: &Network<'_>, proto: u8, bytes: &[u8], length: usize) -> Printed {
    match proto {
        TCP => tcp::print(line, packet, bytes, length),
        UDP => udp::print(line, packet, bytes, length),
        1 if !packet.is_v6() => icmp::print(line, packet, bytes, length),
        2 if !packet.is_v6() => igmp::print(line, bytes, length),
        ICMPV6 if packet.is_v6() => icmp6::print(line, packet, bytes, length),
        ETHERNET if packet.is_v6() => line.inner(Inner::Ethernet, bytes, length).map(|_| ()),
        1 | 2 | ICMPV6 | ETHERNET => {
            put_wrong_version(line, proto);
            Ok(())
        }
        4 => line.inner(Inner::V4, bytes, length).map(|_| ()),
        41 => line.inner(Inner::V6, bytes, length).map(|_| ()),
        47 => gre::print(line, bytes, length),
        50 => ipsec::esp(line, bytes, length),
        51 => authenticated(line, packet, bytes, length),
        SCTP => sctp::print(line, packet, bytes, length),
        59 => put_last!(line, "no next header"),
        108 => ipsec::compressed(line, bytes),
        _ => {
            line.ip_protocol(proto);
            put_last!(line, " ", length)
        }
    }
}

/// Prints one or several authentication headers, and the protocol after them.
fn authenticated(line: &mut Line<'_>, packet: &Network<'_>, mut bytes: &[u8], mut length: usize) -> Printed {
    while let Some((next, header)) = ipsec::ah(line, bytes)? {
        (bytes, length) = (behind(bytes, header), length.saturating_sub(header));
        if next != 51 {
            return print(line, packet, next, bytes, length);
        }
    }
    Ok(())
}

fn put_wrong_version(line: &mut Line<'_>, proto: u8) {
    line.text(match proto {
        1 => "[ICMP requires IPv4]",
        2 => "[IGMP requires IPv4]",
        ICMPV6 => "[ICMPv6 requires IPv6]",
        _ => "[Ethernet requires IPv6]",
    });
    put!(line, " (invalid)");
}

names! {
    /// Returns tcpdump's name for a protocol with `-v`.
    pub(super) fn name(u8):
        0 => "Options", 1 => "ICMP", 2 => "IGMP", 4 => "IPIP", 6 => "TCP", 8 => "EGP", 9 => "IGRP", 17 => "UDP",
        33 => "DCCP", 41 => "IPv6", 43 => "Routing", 44 => "Fragment", 46 => "RSVP", 47 => "GRE", 50 => "ESP",
        51 => "AH", 55 => "Mobile IP", 58 => "ICMPv6", 62 => "Mobile IP (old)", 88 => "EIGRP", 89 => "OSPF",
        103 => "PIM", 108 => "Compressed IP", 112 => "VRRP", 113 => "PGM", 132 => "SCTP", 135 => "Mobility",
        143 => "Ethernet",
}
