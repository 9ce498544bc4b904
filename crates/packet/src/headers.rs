//! Decodes IPv4 and IPv6 headers, and the TCP, UDP, SCTP, DCCP or ICMP header after them.
//!
//! A capture may end anywhere: headers beyond its end are `None`. Nothing is copied, and no checksum is verified.

use crate::bytes::array;
use record::Addr;
use record::rows::{Fragment, IcmpHeader, PacketHeaders, TcpHeader, Transport, ip_proto};

/// Decodes a packet that starts with its IPv4 or IPv6 header; `None` if it is neither, or that header is incomplete.
#[inline]
pub fn read_headers(packet: &[u8]) -> Option<PacketHeaders<'_>> {
    let mut headers = None;
    read_headers_into(packet, &mut headers);
    headers
}

/// Like [`read_headers`], written in place: moving a value right after writing it in parts stalls the CPU.
#[inline]
pub fn read_headers_into<'p>(packet: &'p [u8], into: &mut Option<PacketHeaders<'p>>) {
    read_network_into(packet, into);
    if let Some(headers) = into {
        read_rest(packet, headers, EXTENSIONS_MAX);
    }
}

/// Decodes what follows the network header, after at most `most` extension headers.
#[inline]
fn read_rest<'p>(packet: &'p [u8], headers: &mut PacketHeaders<'p>, most: usize) {
    if let Addr::V6(_) = headers.src {
        skip_extensions(headers, most);
        headers.header = packet.get(..packet.len() - headers.payload.len()).unwrap_or_default();
    }
    if headers.fragment.is_none_or(|fragment| fragment.offset == 0) {
        read_transport_into(headers.proto, headers.payload, &mut headers.transport);
    }
}

/// Decodes IPv6 and transport headers, regardless of the version and of the number of extension headers.
pub fn read_quoted_v6(packet: &[u8]) -> Option<PacketHeaders<'_>> {
    let mut headers = None;
    v6(packet, &mut headers);
    read_rest(packet, headers.as_mut()?, usize::MAX);
    headers
}

/// Decodes only the IPv4 or IPv6 header, in place: `proto` and `payload` are what follows it, in IPv6 also an extension
/// header.
#[inline]
pub fn read_network_into<'p>(packet: &'p [u8], into: &mut Option<PacketHeaders<'p>>) {
    *into = None;
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => v4(packet, into),
        Some(6) => v6(packet, into),
        _ => {}
    }
}

#[inline]
fn v4<'p>(packet: &'p [u8], into: &mut Option<PacketHeaders<'p>>) {
    let Some(head) = packet.first_chunk::<20>() else { return };
    let header_bytes = usize::from(head[0] & 0xf) * 4;
    if header_bytes < head.len() {
        return;
    }
    let parts = u16::from_be_bytes([head[6], head[7]]);
    let (offset, more) = ((parts & 0x1fff) * 8, parts & 0x2000 != 0);
    let (header, payload) = packet.split_at_checked(header_bytes).unwrap_or((packet, &[]));
    *into = Some(PacketHeaders {
        src: Addr::V4([head[12], head[13], head[14], head[15]]),
        dst: Addr::V4([head[16], head[17], head[18], head[19]]),
        proto: head[9],
        length: u16::from_be_bytes([head[2], head[3]]).into(),
        ttl: head[8],
        tos: head[1],
        id: u16::from_be_bytes([head[4], head[5]]).into(),
        dont_fragment: parts & 0x4000 != 0,
        fragment: (offset != 0 || more).then_some(Fragment { offset, more }),
        transport: Transport::Other,
        header,
        payload,
    });
}

fn v6<'p>(packet: &'p [u8], into: &mut Option<PacketHeaders<'p>>) {
    const HEADER_BYTES: usize = 40;
    let Some(head) = packet.first_chunk::<HEADER_BYTES>() else { return };
    let [.., length_high, length_low, next, ttl] = *head.first_chunk::<8>().unwrap_or(&[0; 8]);
    let addr = |at: usize| Addr::V6(array(head, at).unwrap_or_default());
    *into = Some(PacketHeaders {
        src: addr(8),
        dst: addr(24),
        proto: next,
        length: HEADER_BYTES as u32 + u32::from(u16::from_be_bytes([length_high, length_low])),
        ttl,
        tos: head[0] << 4 | head[1] >> 4,
        id: 0,
        dont_fragment: false,
        fragment: None,
        transport: Transport::Other,
        header: head,
        payload: packet.get(HEADER_BYTES..).unwrap_or_default(),
    });
}

/// As many as a sensible packet has.
///
/// Bound: IPv6 extension headers of a packet. Beyond: ports are not decoded. By: any sender of packets.
const EXTENSIONS_MAX: usize = 8;

/// Skips at most `most` extension headers of IPv6 (RFC 8200, section 4). Stops at an incomplete one: then `proto` is
/// its number.
fn skip_extensions(headers: &mut PacketHeaders<'_>, most: usize) {
    for _ in 0..most {
        let Some([next, length, high, low]) = array(headers.payload, 0) else { return };
        let bytes = match headers.proto {
            extension::HOP_BY_HOP | extension::ROUTING | extension::DESTINATION => usize::from(length) * 8 + 8,
            extension::AUTHENTICATION => usize::from(length) * 4 + 8,
            extension::FRAGMENT => {
                let (parts, Some(id)) = (u16::from_be_bytes([high, low]), array(headers.payload, 4)) else { return };
                headers.id = u32::from_be_bytes(id);
                headers.fragment = Some(Fragment { offset: parts & 0xfff8, more: parts & 1 != 0 });
                8
            }
            _ => return,
        };
        let Some(rest) = headers.payload.get(bytes..) else { return };
        (headers.proto, headers.payload) = (next, rest);
        if headers.fragment.is_some_and(|fragment| fragment.offset != 0) {
            return;
        }
    }
}

/// True for the number of an extension header that is skipped.
pub(crate) fn is_extension(proto: u8) -> bool {
    use extension::{AUTHENTICATION, DESTINATION, FRAGMENT, HOP_BY_HOP, ROUTING};
    matches!(proto, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION)
}

/// IPv6 extension headers (IANA protocol numbers).
mod extension {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const AUTHENTICATION: u8 = 51;
    pub(super) const DESTINATION: u8 = 60;
}

/// Decodes the header after the network header, if its protocol is known.
#[inline]
pub fn read_transport(proto: u8, bytes: &[u8]) -> Transport {
    let mut transport = Transport::Other;
    read_transport_into(proto, bytes, &mut transport);
    transport
}

#[inline]
fn read_transport_into(proto: u8, bytes: &[u8], into: &mut Transport) {
    match proto {
        ip_proto::TCP => match bytes.first_chunk() {
            Some(head) => *into = tcp(head),
            None => ports(bytes, into),
        },
        ip_proto::UDP | ip_proto::UDPLITE | ip_proto::SCTP | ip_proto::DCCP => ports(bytes, into),
        ip_proto::ICMP => icmp(bytes, &[0, 8, 13, 14, 15, 16, 17, 18], into),
        ip_proto::ICMPV6 => icmp(bytes, &[128, 129], into),
        _ => {}
    }
}

#[inline]
fn ports(bytes: &[u8], into: &mut Transport) {
    if let Some([s0, s1, d0, d1]) = bytes.first_chunk() {
        let (sport, dport) = (u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]));
        *into = Transport::Ports { sport, dport };
    }
}

/// The first bytes of a TCP header, up to its window.
#[inline]
fn tcp(head: &[u8; 16]) -> Transport {
    Transport::Tcp(TcpHeader {
        sport: u16::from_be_bytes([head[0], head[1]]),
        dport: u16::from_be_bytes([head[2], head[3]]),
        seq: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
        ack: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
        flags: head[13],
        window: u16::from_be_bytes([head[14], head[15]]),
    })
}

/// The types in `with_id` carry an identifier.
fn icmp(bytes: &[u8], with_id: &[u8], into: &mut Transport) {
    if let Some([kind, code]) = array(bytes, 0) {
        let id = if with_id.contains(&kind) { array(bytes, 4).map(u16::from_be_bytes) } else { None };
        *into = Transport::Icmp(IcmpHeader { kind, code, id });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// IPv4, 203.0.113.7:40000 → 192.0.2.1:443, SYN.
    const SYN4: [u8; 40] = [
        0x45, 0x10, 0, 60, 0x12, 0x34, 0x40, 0, 57, 6, 0, 0, 203, 0, 113, 7, 192, 0, 2, 1, // IPv4
        0x9c, 0x40, 1, 187, 0, 0, 0, 5, 0, 0, 0, 9, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, // TCP
    ];

    fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x6a, 0xb0, 0, 0, 0, payload.len() as u8, next, 64];
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend(payload);
        packet
    }

    #[test]
    fn a_syn_is_read() {
        let read = read_headers(&SYN4).unwrap();
        assert_eq!((read.src, read.dst), (Addr::V4([203, 0, 113, 7]), Addr::V4([192, 0, 2, 1])));
        assert_eq!((read.proto, read.length, read.ttl, read.tos, read.id), (6, 60, 57, 0x10, 0x1234));
        assert_eq!((read.dont_fragment, read.fragment), (true, None));
        assert_eq!((read.header, read.payload), SYN4.split_at(20));
        let tcp = TcpHeader { sport: 40_000, dport: 443, seq: 5, ack: 9, flags: 2, window: 64_240 };
        assert_eq!(read.transport, Transport::Tcp(tcp));
    }

    #[test]
    fn what_was_not_captured_is_none() {
        assert_eq!(read_headers(&SYN4[..19]), None);
        assert_eq!(read_headers(&SYN4[..30]).unwrap().transport, Transport::Ports { sport: 40_000, dport: 443 });
        assert_eq!(read_headers(&SYN4[..23]).unwrap().transport, Transport::Other);
        assert_eq!(read_headers(&[]), None);
        assert_eq!(read_headers(&[0x11; 60]), None);
        let mut short = SYN4;
        short[0] = 0x44;
        assert_eq!(read_headers(&short), None, "a header length below 20");
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let mut packet = SYN4;
        (packet[6], packet[7]) = (0x20, 3);
        let read = read_headers(&packet).unwrap();
        assert_eq!(read.fragment, Some(Fragment { offset: 24, more: true }));
        assert_eq!(read.transport, Transport::Other);
        let mut fragment = vec![17, 0, 0, 8 | 1, 0, 0, 0, 7];
        fragment.extend([0, 53, 0, 54, 0, 8, 0, 0]);
        let packet = v6(44, &fragment);
        let read = read_headers(&packet).unwrap();
        assert_eq!((read.proto, read.id, read.transport), (17, 7, Transport::Other));
        assert_eq!(read.fragment, Some(Fragment { offset: 8, more: true }));
    }

    #[test]
    fn extension_headers_are_skipped() {
        let mut payload = vec![43, 0, 0, 0, 0, 0, 0, 0];
        payload.extend([17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend([0x14, 0xe9, 0, 53, 0, 8, 0, 0]);
        let packet = v6(0, &payload);
        let read = read_headers(&packet).unwrap();
        assert_eq!((read.proto, read.tos, read.length), (17, 0xab, 72));
        assert_eq!(read.transport, Transport::Ports { sport: 5353, dport: 53 });
        assert_eq!((read.header, read.payload), packet.split_at(64));
        let cut = v6(0, &payload[..10]);
        assert_eq!(read_headers(&cut).unwrap().proto, 43, "the header that is not whole");
    }

    #[test]
    fn echoes_have_an_identifier() {
        let packet = v6(58, &[128, 0, 0, 0, 1, 2, 0, 1]);
        assert_eq!(
            read_headers(&packet).unwrap().transport,
            Transport::Icmp(IcmpHeader { kind: 128, code: 0, id: Some(258) })
        );
        let packet = v6(58, &[135, 0, 0, 0, 1, 2, 0, 1]);
        assert_eq!(
            read_headers(&packet).unwrap().transport,
            Transport::Icmp(IcmpHeader { kind: 135, code: 0, id: None })
        );
    }

    const EXTENSIONS: [u8; 5] = [0, 43, 44, 51, 60];

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 4u8..7) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 0xf;
            }
            crate::fuzz_headers(&bytes);
        }

        #[test]
        fn any_extension_headers_are_survived(
            headers in prop::collection::vec((prop::sample::select(&EXTENSIONS[..]), 0u8..3, any::<u16>()), 0..20),
            rest in prop::collection::vec(any::<u8>(), 0..40),
            last in any::<u8>(),
        ) {
            let (mut next, mut payload) = (last, rest);
            for (kind, len, bits) in headers {
                let bytes = if kind == 44 { 8 } else { usize::from(len) * 8 + 8 };
                let mut header = vec![0; bytes];
                header[..4].copy_from_slice(&[next, len, (bits >> 12) as u8 & 8, bits as u8 & 9]);
                (next, payload) = (kind, [header, payload].concat());
            }
            crate::fuzz_headers(&v6(next, &payload));
        }
    }
}
