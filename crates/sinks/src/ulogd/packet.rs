//! The parts of a record that the tool decodes.

use record::Addr;
use record::rows::{ArpHeader, LogRecord, PacketHeaders, Transport, ip_proto};

pub(super) const NFPROTO_ARP: u8 = 3;
pub(super) const NFPROTO_NETDEV: u8 = 5;
pub(super) const ETH_P_IP: u16 = 0x0800;
pub(super) const ETH_P_ARP: u16 = 0x0806;
pub(super) const ETH_P_IPV6: u16 = 0x86dd;
pub(super) const ARPHRD_ETHER: u16 = 1;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;
const ESP: u8 = 50;
const AH: u8 = 51;

/// Returns the headers of the record's packet, if it is an IP packet. In chains of bridge, netdev and inet the
/// EtherType decides; the tool does not decode packets of netdev and arp chains.
#[inline]
pub(super) fn ip<'r, 'b>(row: &'r LogRecord<'b>, bug_compatible: bool) -> Option<&'r PacketHeaders<'b>> {
    let packet = row.packet.as_ref()?;
    match row.family {
        NFPROTO_IPV4 | NFPROTO_IPV6 => {}
        NFPROTO_ARP | NFPROTO_NETDEV if bug_compatible => return None,
        _ if matches!(row.ether_type, ETH_P_IP | ETH_P_IPV6) => {}
        _ if !bug_compatible && matches!(row.payload_after_tags().0, ETH_P_IP | ETH_P_IPV6) => {}
        _ => return None,
    }
    // The tool requires a byte after the IPv4 header.
    let whole = !(bug_compatible && packet.payload.is_empty() && matches!(packet.src, Addr::V4(_)));
    whole.then_some(packet)
}

/// Parses the record's packet as ARP for IPv4 over Ethernet; `None` if it is not.
pub(super) fn arp(row: &LogRecord<'_>, bug_compatible: bool) -> Option<ArpHeader> {
    let (ether_type, packet) = if bug_compatible { (row.ether_type, row.payload) } else { row.payload_after_tags() };
    if ether_type != ETH_P_ARP || bug_compatible && matches!(row.family, NFPROTO_ARP | NFPROTO_NETDEV) {
        return None;
    }
    ArpHeader::read(packet).filter(|_| packet.starts_with(&ARPHRD_ETHER.to_be_bytes()))
}

/// The header after the IP header, if the tool has words for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer4 {
    Tcp,
    Udp,
    Icmp,
    Icmp6,
    Sctp,
    Esp,
    Ah,
    /// A protocol without words, which is written as a number.
    Other,
}

/// How much of the header can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeaderExtent {
    /// Everything that the tool reads.
    Whole,
    /// Less than the tool reads.
    Short,
    /// Nothing: the packet is a later fragment, whose payload has no header.
    LaterFragment,
}

/// Returns the next header, and how much of it can be read. With old bytes, later fragments of IPv4 count as packets,
/// and SCTP over IPv6 and later fragments of IPv6 count as short.
#[inline]
pub(super) fn layer4(ip: &PacketHeaders<'_>, bug_compatible: bool) -> (Layer4, HeaderExtent) {
    let v4 = matches!(ip.src, Addr::V4(_));
    let (layer, needs) = match ip.proto {
        ip_proto::TCP => (Layer4::Tcp, 20),
        ip_proto::UDP => (Layer4::Udp, 8),
        ip_proto::ICMP if v4 => (Layer4::Icmp, 8),
        ip_proto::ICMPV6 if !v4 => (Layer4::Icmp6, 8),
        ip_proto::SCTP => (Layer4::Sctp, 12),
        ESP => (Layer4::Esp, 8),
        AH => (Layer4::Ah, 12),
        _ => (Layer4::Other, 0),
    };
    let later = ip.fragment.is_some_and(|fragment| fragment.offset != 0);
    let captured = if ip.payload.len() < needs { HeaderExtent::Short } else { HeaderExtent::Whole };
    let captured = match (bug_compatible, later) {
        (false, true) => HeaderExtent::LaterFragment,
        (true, true) if !v4 => HeaderExtent::Short,
        (true, _) if layer == Layer4::Sctp && !v4 || matches!(layer, Layer4::Esp | Layer4::Ah) => HeaderExtent::Short,
        _ => captured,
    };
    (layer, captured)
}

/// Returns source and destination port of a whole header.
#[inline]
pub(super) fn ports(ip: &PacketHeaders<'_>) -> (u16, u16) {
    if let Transport::Tcp(tcp) = &ip.transport {
        return (tcp.sport, tcp.dport);
    }
    let Some([s0, s1, d0, d1]) = ip.payload.first_chunk() else { return (0, 0) };
    (u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]))
}

/// Returns bytes of the header after the IP header as a number; 0 if they are missing.
#[inline]
pub(super) fn word(ip: &PacketHeaders<'_>, at: usize) -> u32 {
    let bytes = ip.payload.get(at..).and_then(|rest| rest.first_chunk());
    u32::from_be_bytes(bytes.copied().unwrap_or_default())
}
