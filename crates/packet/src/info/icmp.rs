//! Describes ICMP and ICMPv6 messages, and the packet that an error is about.

use super::{payload_bytes, put_number, put_word};
use crate::bytes::{array, be16};
use crate::headers::read_headers;
use record::rows::{IcmpHeader, PacketHeaders, ip_proto};
use record::text::{put_addr, put_u64, put_v6};

/// Type, code if it matters, and their description.
type Word = (u8, Option<u8>, &'static str);

/// RFC 792, 1256, 1812.
const V4: &[Word] = &[
    (0, None, "echo reply"),
    (3, Some(0), "net unreachable"),
    (3, Some(1), "host unreachable"),
    (3, Some(2), "protocol unreachable"),
    (3, Some(3), "port unreachable"),
    (3, Some(4), "needs fragmentation"),
    (3, Some(13), "administratively prohibited"),
    (3, None, "unreachable"),
    (5, None, "redirect"),
    (8, None, "echo request"),
    (9, None, "router advertisement"),
    (10, None, "router solicitation"),
    (11, Some(1), "reassembly time exceeded"),
    (11, None, "time exceeded"),
    (12, None, "parameter problem"),
    (13, None, "timestamp request"),
    (14, None, "timestamp reply"),
];
/// RFC 4443, 4861, 2710, 3810.
const V6: &[Word] = &[
    (1, Some(0), "no route"),
    (1, Some(1), "administratively prohibited"),
    (1, Some(3), "address unreachable"),
    (1, Some(4), "port unreachable"),
    (1, None, "unreachable"),
    (2, None, "packet too big"),
    (3, None, "time exceeded"),
    (4, None, "parameter problem"),
    (128, None, "echo request"),
    (129, None, "echo reply"),
    (130, None, "multicast listener query"),
    (131, None, "multicast listener report"),
    (132, None, "multicast listener done"),
    (133, None, "router solicitation"),
    (134, None, "router advertisement"),
    (135, None, "neighbour solicitation"),
    (136, None, "neighbour advertisement"),
    (137, None, "redirect"),
    (143, None, "multicast listener report v2"),
];

/// `echo request id 5 seq 1 len 56`, `port unreachable for udp 10.0.0.1:40000 to 10.0.0.2:53`
pub(super) fn put(packet: &PacketHeaders<'_>, icmp: &IcmpHeader, out: &mut Vec<u8>) {
    let is_v6 = packet.proto == ip_proto::ICMPV6;
    let words = if is_v6 { V6 } else { V4 };
    let is_it = |word: &&Word| word.0 == icmp.kind && word.1.is_none_or(|code| code == icmp.code);
    match words.iter().find(is_it) {
        Some((.., word)) => put_word(out, word.as_bytes()),
        None => {
            put_number(out, b"type", icmp.kind.into());
            put_number(out, b"code", icmp.code.into());
        }
    }
    if let Some(id) = icmp.id {
        put_number(out, b"id", id.into());
        put_number(out, b"seq", be16(packet.payload, 6).unwrap_or(0).into());
        return put_number(out, b"len", u64::from(payload_bytes(packet)).saturating_sub(8));
    }
    match (is_v6, icmp.kind) {
        (true, 135 | 136) => {
            if let Some(address) = array(packet.payload, 8) {
                out.extend_from_slice(b" of ");
                put_v6(out, address);
            }
        }
        (false, 3 | 5 | 11 | 12) | (true, 1..=4) => put_quoted(packet.payload.get(8..).unwrap_or_default(), out),
        _ => {}
    }
    let mtu = match (is_v6, icmp.kind, icmp.code) {
        (false, 3, 4) => be16(packet.payload, 6).map(u32::from),
        (true, 2, _) => array(packet.payload, 4).map(u32::from_be_bytes),
        _ => None,
    };
    if let Some(mtu) = mtu {
        put_number(out, b"mtu", mtu.into());
    }
}

/// The packet that an error is about.
fn put_quoted(quoted: &[u8], out: &mut Vec<u8>) {
    let Some(inner) = read_headers(quoted) else { return };
    out.extend_from_slice(b" for ");
    out.extend_from_slice(ip_proto::name(inner.proto).as_bytes());
    // TCP errors must quote only the first eight bytes of the header: ports and sequence number.
    let has_ports = matches!(inner.proto, ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP);
    let ports = inner.payload.get(..4).filter(|_| has_ports).filter(|_| inner.fragment.is_none_or(|f| f.offset == 0));
    for (word, addr, port_at) in [(&b" "[..], inner.src, 0), (b" to ", inner.dst, 2)] {
        out.extend_from_slice(word);
        put_addr(out, addr);
        if let Some(port) = ports.and_then(|ports| be16(ports, port_at)) {
            out.extend_from_slice(b" port ");
            put_u64(out, port.into());
        }
    }
}
