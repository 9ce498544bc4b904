//! What the headers of a packet say: part of the rows of every table of packets.

use crate::Addr;

/// What a packet's headers say, from the network header on (RFC 791, RFC 8200).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHeaders<'p> {
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// Number of the IP protocol; in IPv6 that behind the extension headers, as far as they were captured.
    pub proto: u8,
    /// Bytes of the packet from the network header on, as the header says.
    pub length: u32,
    /// Hops that are left (TTL, hop limit).
    pub ttl: u8,
    /// Type of service (IPv4) or traffic class (IPv6): DSCP and ECN.
    pub tos: u8,
    /// IPv4: identification; IPv6: that of a fragment, else 0.
    pub id: u32,
    /// IPv4: the "don't fragment" bit.
    pub dont_fragment: bool,
    /// Which part of a larger packet this is; `None` for a whole one.
    pub fragment: Option<Fragment>,
    /// The header behind; [`Transport::Other`] where none is known or it was not captured whole.
    pub transport: Transport,
    /// The network header, with its options or extension headers. What tables rarely show is read from it and from
    /// `payload` on demand (`packet_parts.rs`).
    pub header: &'p [u8],
    /// What was captured behind the network header.
    pub payload: &'p [u8],
}

/// Part of a larger packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where it begins in the payload of the whole, in bytes.
    pub offset: u16,
    /// True if parts follow.
    pub more: bool,
}

/// The header behind the network header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp(TcpHeader),
    /// A protocol that begins with two ports: UDP, UDP-Lite, SCTP, DCCP.
    Ports {
        /// Source port.
        sport: u16,
        /// Destination port.
        dport: u16,
    },
    /// ICMP or ICMPv6.
    Icmp(IcmpHeader),
    /// None of these, a fragment that is not the first, or too little captured.
    #[default]
    Other,
}

/// The header of TCP (RFC 9293).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledged number.
    pub ack: u32,
    /// FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// Window as it stands in the header, not scaled.
    pub window: u16,
}

/// The header of ICMP (RFC 792) or ICMPv6 (RFC 4443).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcmpHeader {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Identifier of an echo.
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

    /// The header, if it is that of ICMP or ICMPv6.
    pub fn icmp(&self) -> Option<&IcmpHeader> {
        match self {
            Transport::Icmp(header) => Some(header),
            _ => None,
        }
    }
}
