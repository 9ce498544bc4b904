//! The tuple by which connection tracking identifies a packet.

use record::Addr;
use record::rows::{CtTuple, PacketHeaders, Transport, ip_proto};

use crate::headers::read_headers;

/// The key by which a packet's connection is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketTuple {
    /// The tuple of a packet of this connection, in the direction of this packet.
    pub tuple: CtTuple,
    /// True if the packet is an ICMP error about the connection rather than part of it.
    pub is_error: bool,
}

/// Bytes of an ICMP error before the packet that it is about (RFC 792, RFC 4443).
const ERROR_HEADER: usize = 8;

/// The tuple of a packet, computed as in the kernel (`nf_ct_get_tuple` in net/netfilter/nf_conntrack_core.c); for an
/// ICMP error, the tuple of the connection that the error is about. `None` if too few bytes were copied, for fragments
/// other than the first, for GRE, and for ICMP messages that belong to no connection.
pub fn packet_tuple(packet: &PacketHeaders<'_>) -> Option<PacketTuple> {
    if let Some(tuple) = tuple_of(packet) {
        return Some(PacketTuple { tuple, is_error: false });
    }
    let kind = packet.transport.icmp()?.kind;
    let is_error = match packet.proto {
        // Unreachable, source quench, redirect, time exceeded, parameter problem.
        ip_proto::ICMP => matches!(kind, 3 | 4 | 5 | 11 | 12),
        ip_proto::ICMPV6 => kind < 128,
        _ => false,
    };
    let about = read_headers(packet.payload.get(ERROR_HEADER..).filter(|_| is_error)?)?;
    // The error travels in the opposite direction of the packet that it is about.
    let tuple = tuple_of(&about)?.reply_tuple()?;
    Some(PacketTuple { tuple, is_error: true })
}

fn tuple_of(packet: &PacketHeaders<'_>) -> Option<CtTuple> {
    if packet.fragment.is_some_and(|fragment| fragment.offset != 0) {
        return None;
    }
    let tuple = CtTuple { src: packet.src, dst: packet.dst, proto: packet.proto, ..CtTuple::EMPTY };
    match (packet.proto, packet.transport) {
        (ip_proto::ICMP | ip_proto::ICMPV6, Transport::Icmp(icmp)) => {
            let dst_part = u16::from_be_bytes([icmp.kind, icmp.code]);
            let tuple = CtTuple { src_part: icmp.id?, dst_part, ..tuple };
            // An ICMP message for IPv4 is invalid over IPv6, and vice versa.
            let is_v4 = matches!(tuple.src, Addr::V4(_));
            (is_v4 == (packet.proto == ip_proto::ICMP)).then_some(tuple)
        }
        (ip_proto::ICMP | ip_proto::ICMPV6 | ip_proto::GRE, _) => None,
        _ if tuple.has_ports() => {
            // Errors only carry the first eight bytes of a TCP header.
            let ports = packet
                .payload
                .first_chunk()
                .map(|[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])));
            let (src_part, dst_part) = packet.transport.ports().or(ports)?;
            Some(CtTuple { src_part, dst_part, ..tuple })
        }
        _ => Some(tuple),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const A: [u8; 4] = [192, 0, 2, 1];
    const B: [u8; 4] = [203, 0, 113, 7];

    fn v4(proto: u8, src: [u8; 4], dst: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 0, 0, 0, 64, proto, 0, 0];
        packet.extend(src.iter().chain(&dst).chain(payload));
        packet
    }

    fn v6(proto: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, proto, 64];
        packet.extend([[0; 15], [0; 15]].concat());
        packet.extend([1, 2]);
        packet.extend(payload);
        packet
    }

    fn read_parts(packet: &[u8]) -> Option<(u16, u16, bool)> {
        let PacketTuple { tuple, is_error } = packet_tuple(&read_headers(packet).unwrap())?;
        Some((tuple.src_part, tuple.dst_part, is_error))
    }

    #[test]
    fn each_protocol_has_its_parts() {
        let ports = [0x9c, 0x40, 1, 187, 0, 0, 0, 5];
        for (proto, expected) in [(6, Some((40_000, 443, false))), (17, Some((40_000, 443, false)))] {
            assert_eq!(read_parts(&v4(proto, A, B, &ports)), expected, "{proto}");
        }
        assert_eq!(read_parts(&v6(132, &ports)), Some((40_000, 443, false)));
        assert_eq!(read_parts(&v4(50, A, B, &ports)), Some((0, 0, false)), "ESP has no parts");
        assert_eq!(read_parts(&v4(47, A, B, &ports)), None);
        assert_eq!(read_parts(&v4(6, A, B, &ports[..2])), None, "cut");
        assert_eq!(read_parts(&v4(1, A, B, &[8, 0, 0, 0, 0, 77, 0, 1])), Some((77, 0x800, false)));
        assert_eq!(read_parts(&v6(58, &[129, 0, 0, 0, 0, 77, 0, 1])), Some((77, 0x8100, false)));
        assert_eq!(read_parts(&v6(58, &[135, 0, 0, 0, 0, 0, 0, 0])), None, "neighbours are no connection");
        assert_eq!(read_parts(&v6(1, &[8, 0, 0, 0, 0, 77, 0, 1])), None, "ICMP in IPv6");
        let mut later = v4(17, A, B, &ports);
        (later[6], later[7]) = (0, 9);
        assert_eq!(read_parts(&later), None, "a later fragment");
    }

    /// An error travels in the direction of the replies to the packet that it is about.
    #[test]
    fn errors_are_about_a_connection() {
        let about = v4(6, B, A, &[0x9c, 0x40, 1, 187, 0, 0, 0, 5]);
        let error = v4(1, [198, 51, 100, 1], B, &[&[3, 1, 0, 0, 0, 0, 0, 0], &about[..]].concat());
        let found = packet_tuple(&read_headers(&error).unwrap()).unwrap();
        assert!(found.is_error);
        assert_eq!((found.tuple.src, found.tuple.dst), (Addr::V4(A), Addr::V4(B)));
        assert_eq!((found.tuple.src_part, found.tuple.dst_part), (443, 40_000));
        assert_eq!(read_parts(&error[..40]), None, "cut");
        let ping = v6(58, &[128, 0, 0, 0, 0, 77, 0, 1]);
        assert_eq!(read_parts(&v6(58, &[&[1, 0, 0, 0, 0, 0, 0, 0], &ping[..]].concat())), Some((77, 0x8100, true)));
    }
}
