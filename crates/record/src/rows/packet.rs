//! Packet headers, part of the rows of all packet tables.

use crate::Addr;

/// The headers of a packet, starting with the network header (RFC 791, RFC 8200).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHeaders<'p> {
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// IP protocol number. For IPv6, the one after the captured extension headers.
    pub proto: u8,
    /// Bytes of the packet from the network header on, as the header says; see [`PacketHeaders::known_length`].
    pub length: u32,
    /// Remaining hops (TTL, hop limit).
    pub ttl: u8,
    /// Type of service (IPv4) or traffic class (IPv6): DSCP and ECN.
    pub tos: u8,
    /// IPv4: identification; IPv6: identification of a fragment, otherwise 0.
    pub id: u32,
    /// IPv4: the "don't fragment" bit.
    pub dont_fragment: bool,
    /// The fragment that this packet is; `None` for an unfragmented packet.
    pub fragment: Option<Fragment>,
    /// The transport header; [`Transport::Other`] if the protocol is unknown or the header was not captured
    /// completely.
    pub transport: Transport,
    /// The network header including options or extension headers. Values that tables rarely show are read from it and
    /// from `payload` on demand (`packet_parts.rs`).
    pub header: &'p [u8],
    /// The captured bytes after the network header.
    pub payload: &'p [u8],
}

impl PacketHeaders<'_> {
    /// The length in the header; `None` if the header has none because the packet is longer than the field can say: a
    /// jumbogram (RFC 2675), or a packet that the kernel assembled from segments.
    #[inline]
    pub fn known_length(&self) -> Option<u32> {
        const IPV6: u32 = 40;
        const HOP_BY_HOP: u8 = 0;
        let lacks = match self.src {
            Addr::V4(_) => self.length == 0,
            Addr::V6(_) => {
                self.length == IPV6 && matches!(self.header.get(6), Some(&HOP_BY_HOP | &super::ip_proto::TCP))
            }
        };
        if lacks { None } else { Some(self.length) }
    }
}

/// A fragment of a larger packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset of the fragment in the payload of the whole packet, in bytes.
    pub offset: u16,
    /// True if more fragments follow.
    pub more: bool,
}

/// The header after the network header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp(TcpHeader),
    /// A protocol whose header starts with two ports: UDP, UDP-Lite, SCTP, DCCP.
    Ports {
        /// Source port.
        sport: u16,
        /// Destination port.
        dport: u16,
    },
    /// ICMP or ICMPv6.
    Icmp(IcmpHeader),
    /// Another protocol, a fragment other than the first, or a truncated header.
    #[default]
    Other,
}

/// A TCP header (RFC 9293).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bits of [`tcp_flag`].
    pub flags: u8,
    /// Window from the header, unscaled.
    pub window: u16,
}

impl TcpHeader {
    /// True for the first packet of a connection: an earlier one may have had the same ports.
    pub fn begins_connection(&self) -> bool {
        self.flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN
    }
}

/// Flags in the TCP header (RFC 9293).
pub mod tcp_flag {
    /// The sender has no more data.
    pub const FIN: u8 = 1;
    /// The sequence number is the first one.
    pub const SYN: u8 = 1 << 1;
    /// The connection is aborted.
    pub const RST: u8 = 1 << 2;
    /// The sender waits for an answer.
    pub const PSH: u8 = 1 << 3;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 1 << 4;
    /// The urgent pointer is valid.
    pub const URG: u8 = 1 << 5;
    /// The sender has seen congestion.
    pub const ECE: u8 = 1 << 6;
    /// The sender has reduced its window because of congestion.
    pub const CWR: u8 = 1 << 7;

    /// The names, lowest bit first.
    pub const NAMES: &[&str] = &["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
}

/// An ICMP (RFC 792) or ICMPv6 (RFC 4443) header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcmpHeader {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Identifier of an echo request or reply.
    pub id: Option<u16>,
}

impl Transport {
    /// Source and destination port.
    pub fn ports(&self) -> Option<(u16, u16)> {
        match *self {
            Transport::Tcp(TcpHeader { sport, dport, .. }) | Transport::Ports { sport, dport } => Some((sport, dport)),
            _ => None,
        }
    }

    /// The header, if it is ICMP or ICMPv6.
    pub fn icmp(&self) -> Option<&IcmpHeader> {
        match self {
            Transport::Icmp(header) => Some(header),
            _ => None,
        }
    }
}
