//! Captured packets (`capture`), one row per packet.

use super::conntrack::{Conntrack, CtStatus, NatKind, ip_proto};
use super::packet::{PacketHeaders, TcpHeader, Transport, tcp_flag};
use super::packet_entry::{CtDirection, PacketEntry, PacketState, cells};
use super::packet_socket::{HolderWords, PacketSocket};
use crate::table::table;
use crate::{FarTime, Key, Link, LookupId, RowLink, Show, State, Value};
use std::num::NonZeroU32;

/// A packet from an interface or from a capture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapturedPacket<'b> {
    /// When it was received or sent, in ns since 1970; see `unusual_time`.
    pub time_ns: u64,
    /// Set if `time_ns` is only the nearest to its time, or if it has no time. Packets of files only.
    pub unusual_time: Option<UnusualTime>,
    /// Inode of the network namespace; 0 for a packet from a file.
    pub netns_id: u64,
    /// Index of the interface in its namespace or in its file.
    pub ifindex: u32,
    /// Name of the interface; empty if unknown.
    pub iface: &'b [u8],
    /// The type of the frame's first header.
    pub link_type: LinkType,
    /// The packet type that the kernel assigned; `None` if a file does not record it.
    pub packet_type: Option<PktType>,
    /// True if this host sent the packet and the device will fill in its checksum later.
    pub checksum_not_ready: bool,
    /// The clock that produced the time stamp; `None` for a packet from a file.
    pub stamp: Option<StampSource>,
    /// True if the packet contains several TCP segments: it is longer than packets on the wire.
    pub is_super_packet: bool,
    /// Original length in bytes.
    pub len: u32,
    /// The captured bytes, starting with the link-layer header.
    pub frame: &'b [u8],
    /// Contents of its link-layer header.
    pub link: LinkHeader<'b>,
    /// Contents of its network and transport headers; `None` if it is not an IP packet or its network header is
    /// truncated.
    pub packet: Option<PacketHeaders<'b>>,
    /// Contents of an ARP packet.
    pub arp: Option<ArpHeader>,
    /// Description of the rest of the packet; empty unless requested.
    pub info: &'b [u8],
    /// Link-layer addresses as text, sender first; not filled in unless requested.
    pub macs: [[u8; 17]; 2],
    /// The socket that sent the packet, if it is on this host and known; `None` unless owners are requested.
    pub src_socket: Option<&'b PacketSocket>,
    /// The socket that receives the packet, if it is on this host and known.
    pub dst_socket: Option<&'b PacketSocket>,
    /// The packet's conntrack entry; `None` unless requested and known.
    pub entry: Option<&'b PacketEntry<'b>>,
}

/// A captured packet with undecoded headers, as needed to write it to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapturedFrame<'b> {
    /// When it was received or sent, in ns since 1970; see `unusual_time`.
    pub time_ns: u64,
    /// Set if `time_ns` is only the nearest to its time, or if it has no time. Packets of files only.
    pub unusual_time: Option<UnusualTime>,
    /// Inode of the network namespace; 0 for a packet from a file.
    pub netns_id: u64,
    /// Index of the interface in its namespace or in its file.
    pub ifindex: u32,
    /// A number that changes with the index or the name of the interface, unique in the namespace. `None` if unknown.
    pub iface_version: Option<NonZeroU32>,
    /// Original length in bytes.
    pub len: u32,
    /// The type of the frame's first header.
    pub link_type: LinkType,
    /// The packet type that the kernel assigned; `None` if a file does not record it.
    pub packet_type: Option<PktType>,
    /// Name of the interface; empty if unknown.
    pub iface: &'b [u8],
    /// The captured bytes, starting with the link-layer header.
    pub frame: &'b [u8],
}

/// The time of a packet that 64 bits of nanoseconds since 1970 cannot represent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnusualTime {
    /// The file has no time for the packet; `time_ns` is 0.
    Missing,
    /// A time before 1970 or after 2554; `time_ns` is the nearest to it.
    Far(FarTime),
}

impl UnusualTime {
    /// The far time; `None` for a packet without a time.
    pub fn to_far_time(self) -> Option<FarTime> {
        match self {
            UnusualTime::Missing => None,
            UnusualTime::Far(time) => Some(time),
        }
    }
}

/// Captured packets that differ only in their bytes, lengths and time stamps.
#[derive(Clone, Copy, Debug)]
pub struct SimilarFrames<'b> {
    /// The first packet.
    pub first: CapturedFrame<'b>,
    /// The memory that contains all of them.
    pub memory: &'b [u8],
    /// The places of all packets, including the first.
    pub places: &'b [FramePlace],
}

/// Place of one of several packets in their memory, with its own lengths and time stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FramePlace {
    /// Offset of its first byte.
    pub at: usize,
    /// Number of captured bytes.
    pub captured: usize,
    /// Original length in bytes.
    pub len: u32,
    /// When it was received or sent, in ns since 1970.
    pub time_ns: u64,
}

impl CapturedFrame<'_> {
    /// Its place if the memory is the frame itself.
    #[inline]
    pub fn frame_place(&self) -> FramePlace {
        FramePlace { at: 0, captured: self.frame.len(), len: self.len, time_ns: self.time_ns }
    }
}

impl<'b> SimilarFrames<'b> {
    /// The captured bytes of one of them; empty if they are beyond the end of the memory.
    #[inline]
    pub fn bytes(&self, place: &FramePlace) -> &'b [u8] {
        let from_it = self.memory.get(place.at..).unwrap_or_default();
        from_it.get(..place.captured).unwrap_or_default()
    }

    /// Iterates over the packets.
    pub fn iter(&self) -> impl Iterator<Item = CapturedFrame<'b>> + use<'b> {
        let all = *self;
        let one = move |place: &FramePlace| CapturedFrame {
            time_ns: place.time_ns,
            len: place.len,
            frame: all.bytes(place),
            ..all.first
        };
        all.places.iter().map(one)
    }
}

impl<'b> CapturedPacket<'b> {
    /// When it was received or sent.
    #[inline]
    fn time(&self) -> Value<'static> {
        match self.unusual_time {
            None => Value::Time(self.time_ns),
            Some(UnusualTime::Missing) => Value::Null,
            Some(UnusualTime::Far(time)) => Value::FarTime(time),
        }
    }

    /// The packet without its decoded headers.
    #[inline]
    pub fn to_frame(&self) -> CapturedFrame<'b> {
        CapturedFrame {
            time_ns: self.time_ns,
            unusual_time: self.unusual_time,
            netns_id: self.netns_id,
            ifindex: self.ifindex,
            iface_version: None,
            len: self.len,
            link_type: self.link_type,
            packet_type: self.packet_type,
            iface: self.iface,
            frame: self.frame,
        }
    }
}

/// The clock that produced a time stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StampSource {
    /// The host's clock.
    Host,
    /// The network adapter's clock, which may be off by any amount, including the 37 s between TAI and UTC.
    Adapter,
}

impl StampSource {
    fn word(self) -> &'static str {
        match self {
            StampSource::Host => "host",
            StampSource::Adapter => "adapter",
        }
    }
}

/// The words of column `stamp`.
const STAMPS: &[&str] = &["host", "adapter"];

/// The type of a frame's first header: `LINKTYPE_…` (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkType(pub u16);

impl LinkType {
    /// A BSD address family in the byte order of the capturing host.
    pub const NULL: LinkType = LinkType(0);
    /// An Ethernet header.
    pub const ETHERNET: LinkType = LinkType(1);
    /// An IPv4 or IPv6 header.
    pub const RAW: LinkType = LinkType(101);
    /// A BSD address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// The header of Linux "cooked" captures.
    pub const SLL: LinkType = LinkType(113);
    /// The "cooked" header, version 2, which includes the interface index.
    pub const SLL2: LinkType = LinkType(276);
    /// An unknown link type.
    pub const UNKNOWN: LinkType = LinkType(u16::MAX);

    /// The link type that packet sockets deliver for an interface of this hardware type (`ARPHRD_…`,
    /// include/uapi/linux/if_arp.h).
    pub fn of_hardware(hardware: u16) -> LinkType {
        match hardware {
            // Ethernet, and loopback, which has an Ethernet header.
            1 | 772 => LinkType::ETHERNET,
            // IPIP, IP6 in IP6, SIT, raw IP, none (TUN, WireGuard).
            519 | 768 | 769 | 776 | 0xfffe => LinkType::RAW,
            // IEEE 802.11, IEEE 802.11 with radio headers, PPP.
            801 => LinkType(105),
            803 => LinkType(127),
            512 => LinkType(9),
            _ => LinkType::UNKNOWN,
        }
    }
}

/// The packet type that the kernel assigned: `PACKET_…` (include/uapi/linux/if_packet.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PktType {
    /// Addressed to this host.
    Host,
    /// Addressed to every host on the link.
    Broadcast,
    /// Addressed to a multicast group.
    Multicast,
    /// Addressed to another host.
    OtherHost,
    /// Sent by this host.
    Outgoing,
}

impl PktType {
    /// Converts the kernel's number.
    pub fn from_number(number: u8) -> Option<PktType> {
        [Self::Host, Self::Broadcast, Self::Multicast, Self::OtherHost, Self::Outgoing]
            .get(usize::from(number))
            .copied()
    }

    /// True if this host sent it.
    pub fn is_outgoing(self) -> bool {
        self == PktType::Outgoing
    }

    fn word(self) -> &'static str {
        AIMS[self as usize]
    }
}

/// Contents of a link-layer header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkHeader<'b> {
    /// Ethernet destination and source addresses.
    pub addresses: Option<[[u8; 6]; 2]>,
    /// EtherType after the VLAN tags; a length below 1536 (IEEE 802.3); 0 if the header contains neither.
    pub ether_type: u16,
    /// The outer VLAN tag: priority, DEI, VLAN id.
    pub vlan: Option<u16>,
    /// The inner VLAN tag.
    pub inner_vlan: Option<u16>,
    /// The bytes after the header.
    pub payload: &'b [u8],
}

/// An ARP packet for IPv4 (RFC 826).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArpHeader {
    /// 1 is a request, 2 a reply.
    pub operation: u16,
    /// Link-layer address and IPv4 address of the sender.
    pub sender: ([u8; 6], [u8; 4]),
    /// Link-layer address and IPv4 address of the target.
    pub target: ([u8; 6], [u8; 4]),
}

impl ArpHeader {
    /// Parses ARP for IPv4 with 6-byte hardware addresses (RFC 826); `None` for other ARP and for a truncated packet.
    pub fn read(bytes: &[u8]) -> Option<ArpHeader> {
        let packet = bytes.first_chunk::<28>()?;
        let ([_, _, 8, 0, 6, 4, high, low], addresses) = packet.split_first_chunk()? else { return None };
        let (sender_hw, rest) = addresses.split_first_chunk()?;
        let (sender, rest) = rest.split_first_chunk()?;
        let (target_hw, rest) = rest.split_first_chunk()?;
        Some(ArpHeader {
            operation: u16::from_be_bytes([*high, *low]),
            sender: (*sender_hw, *sender),
            target: (*target_hw, *rest.first_chunk()?),
        })
    }
}

/// Bits for fields that cost more than decoding headers.
pub mod capture_need {
    /// The description of the rest of the packet.
    pub const INFO: u64 = 1;
    /// Link-layer addresses as text.
    pub const MACS: u64 = 1 << 1;
    /// Sockets at both ends and the processes that own them: requires reading sockets and owners.
    pub const OWNERS: u64 = 1 << 2;
    /// Containers, pods and units of these processes.
    pub const PLACES: u64 = OWNERS | 1 << 3;
    /// Their command lines.
    pub const CMDLINES: u64 = OWNERS | 1 << 4;
    /// The packet's conntrack entry: one lookup per connection.
    pub const ENTRY: u64 = 1 << 5;
}

const AIMS: &[&str] = &["host", "broadcast", "multicast", "other_host", "outgoing"];
const DIRECTIONS: &[&str] = &["in", "out"];

/// EtherTypes that have a word in field `proto`, and these words.
const LINK_PROTOS: [(u16, &str); 8] = [
    (0x0806, "arp"),
    (0x8035, "rarp"),
    (0x88cc, "lldp"),
    (0x888e, "eapol"),
    (0x8847, "mpls"),
    (0x8863, "pppoe"),
    (0x8864, "pppoe"),
    (0x88f7, "ptp"),
];
/// The word for IEEE 802.3 frames (for example spanning tree) and for EtherTypes without a word.
const LLC: &str = "llc";
const PROTO_NAMES: [&str; ip_proto::NAMES.len() + 8] = {
    let mut names = ["llc"; ip_proto::NAMES.len() + 8];
    let mut at = 0;
    while at < ip_proto::NAMES.len() {
        names[at] = ip_proto::NAMES[at];
        at += 1;
    }
    let (mut from, mut to) = (0, at);
    while from < LINK_PROTOS.len() {
        // pppoe has two EtherTypes.
        if from != 6 {
            names[to] = LINK_PROTOS[from].1;
            to += 1;
        }
        from += 1;
    }
    names
};

impl<'b> CapturedPacket<'b> {
    /// The word for its IP protocol, or else for its EtherType.
    pub fn proto_name(&self) -> &'static str {
        if let Some(packet) = &self.packet {
            return ip_proto::name(packet.proto);
        }
        let kind = self.link.ether_type;
        let known = LINK_PROTOS.iter().find(|(number, _)| *number == kind).map(|(_, word)| *word);
        known.unwrap_or(if (1..1536).contains(&kind) { LLC } else { "other" })
    }

    /// Source and destination port.
    pub fn ports(&self) -> Option<(u16, u16)> {
        self.packet.as_ref()?.transport.ports()
    }

    /// True if a part of the packet was not captured.
    pub fn is_cut(&self) -> bool {
        (self.frame.len() as u64) < u64::from(self.len)
    }
}

#[inline(always)]
fn number<'r>(row: &CapturedPacket<'_>, get: impl Fn(&PacketHeaders<'_>) -> Option<u32>) -> Value<'r> {
    Value::number(row.packet.as_ref().and_then(get))
}

#[inline(always)]
fn of_tcp<'r>(row: &CapturedPacket<'_>, get: impl Fn(&TcpHeader) -> Value<'r>) -> Value<'r> {
    match row.packet.as_ref().map(|packet| &packet.transport) {
        Some(Transport::Tcp(tcp)) => get(tcp),
        _ => Value::Null,
    }
}

fn src<'r>(row: &CapturedPacket<'_>) -> Value<'r> {
    match (&row.packet, &row.arp) {
        (Some(packet), _) => Value::Addr(packet.src),
        (_, Some(arp)) => Value::Addr(crate::Addr::V4(arp.sender.1)),
        _ => Value::Null,
    }
}

fn dst<'r>(row: &CapturedPacket<'_>) -> Value<'r> {
    match (&row.packet, &row.arp) {
        (Some(packet), _) => Value::Addr(packet.dst),
        (_, Some(arp)) => Value::Addr(crate::Addr::V4(arp.target.1)),
        _ => Value::Null,
    }
}

const LINK: Link<CapturedPackets> = Link {
    of: |row| if row.iface.is_empty() { RowLink::Unknown } else { RowLink::Name(row.iface) },
    names: &["iface"],
    numbers: &["ifindex"],
    in_rows: false,
};

fn mac<'r>(row: &'r CapturedPacket<'_>, at: usize) -> Value<'r> {
    if row.link.addresses.is_some() { Value::Bytes(&row.macs[at]) } else { Value::Null }
}

fn direction<'r>(packet_type: PktType) -> Value<'r> {
    Value::Name(DIRECTIONS[usize::from(packet_type.is_outgoing())])
}

fn vlan_id<'r>(tag: Option<u16>) -> Value<'r> {
    Value::number(tag.map(|tag| u32::from(tag & 0xfff)))
}

fn src_socket<'r>(row: &'r CapturedPacket<'_>, part: impl FnOnce(&'r PacketSocket) -> Value<'r>) -> Value<'r> {
    row.src_socket.map_or(Value::Null, part)
}

fn dst_socket<'r>(row: &'r CapturedPacket<'_>, part: impl FnOnce(&'r PacketSocket) -> Value<'r>) -> Value<'r> {
    row.dst_socket.map_or(Value::Null, part)
}

fn src_words<'r>(row: &'r CapturedPacket<'_>, part: fn(&'r HolderWords) -> &'r [u8]) -> Value<'r> {
    src_socket(row, |socket| Value::nonempty(part(&socket.words)))
}

fn dst_words<'r>(row: &'r CapturedPacket<'_>, part: fn(&'r HolderWords) -> &'r [u8]) -> Value<'r> {
    dst_socket(row, |socket| Value::nonempty(part(&socket.words)))
}

fn entry<'r>(row: &CapturedPacket<'r>, cell: fn(&'r Conntrack<'r>) -> Value<'r>) -> Value<'r> {
    cells::entry_value(row.entry, cell)
}

table! {
    /// The table of captured packets (`capture`).
    pub enum CapturedPackets of CapturedPacket = "capture", ENDLESS = true;

    /// Time at which the packet was received or sent; null if the file has no time for it. A filter accepts 10:30
    /// (local time today), -5m and 2026-11-22T10:30:00Z.
    time: Time = own(|row| row.time()), kernel "tp_sec", show Show::Default;
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| match row.netns_id {
        0 => Key::None,
        netns_id => Key::Id(netns_id),
    }), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::number(Some(row.netns_id).filter(|id| *id != 0)));
    /// Interface on which the packet was captured.
    iface: Text = own(|row| Value::nonempty(row.iface)), kernel "sll_ifindex", show Show::Default;
    /// Index of that interface.
    ifindex: Id = own(|row| Value::number(Some(row.ifindex).filter(|index| *index != 0))),
        kernel "sll_ifindex", zero_is_null true;
    /// Direction of the packet: in (received) or out (sent).
    direction: Name(DIRECTIONS) = own(|row| row.packet_type.map_or(Value::Null, direction)),
        kernel "sll_pkttype", show Show::Wide;
    /// Packet type reported by the kernel: host, broadcast, multicast, other_host or outgoing.
    packet_type: Name(AIMS) = own(|row| row.packet_type.map_or(Value::Null, |kind| Value::Name(kind.word()))),
        kernel "sll_pkttype";
    /// Source link-layer (MAC) address.
    src_mac: Text = own(|row| mac(row, 0)), needs capture_need::MACS;
    /// Destination link-layer (MAC) address.
    dst_mac: Text = own(|row| mac(row, 1)), needs capture_need::MACS;
    /// EtherType: 0x800 IPv4, 0x86dd IPv6, 0x806 ARP; below 0x600 a length.
    ether_type: Hex = own(|row| Value::number(Some(row.link.ether_type).filter(|kind| *kind != 0)));
    /// VLAN ID of the outer tag.
    vlan: Id = own(|row| vlan_id(row.link.vlan)), kernel "tp_vlan_tci", show Show::Wide;
    /// VLAN ID of the inner tag.
    inner_vlan: Id = own(|row| vlan_id(row.link.inner_vlan));
    /// IP protocol, or the protocol instead of IP; `other` for a protocol without a name here, `llc` for IEEE 802.3.
    proto: Name(&PROTO_NAMES) = own(|row| Value::Name(row.proto_name())), show Show::Default;
    /// IP protocol number.
    proto_number: Id = own(|row| number(row, |ip| Some(ip.proto.into())));
    /// Source address; for ARP, the sender's address.
    src: Addr = own(src), show Show::Default, link &LINK;
    /// Source port.
    sport: Port = own(|row| Value::number(row.ports().map(|(sport, _)| u32::from(sport)))), show Show::Default;
    /// Destination address; for ARP, the target's address.
    dst: Addr = own(dst), show Show::Default, link &LINK;
    /// Destination port.
    dport: Port = own(|row| Value::number(row.ports().map(|(_, dport)| u32::from(dport)))), show Show::Default;
    /// Length of the packet with its link-layer header; more than the MTU if the packet holds several segments (GRO,
    /// TSO).
    len: Bytes = own(|row| Value::U64(row.len.into())), kernel "tp_len", show Show::Default;
    /// Captured bytes of the packet.
    caplen: Bytes = own(|row| Value::U64(row.frame.len() as u64)), kernel "tp_snaplen", show Show::Wide;
    /// Summary of the remaining headers.
    info: Text = own(|row| Value::nonempty(row.info)), needs capture_need::INFO, show Show::Default;
    /// Flags of the TCP header.
    tcp_flags: Words(tcp_flag::NAMES) = own(|row| of_tcp(row, |tcp| Value::Bits(tcp.flags.into(), tcp_flag::NAMES))),
        show Show::Wide;
    /// Sequence number of the TCP header.
    tcp_seq: Id = own(|row| of_tcp(row, |tcp| Value::U64(tcp.seq.into())));
    /// Acknowledgement number of the TCP header.
    tcp_ack: Id = own(|row| of_tcp(row, |tcp| Value::U64(tcp.ack.into())));
    /// Window of the TCP header, unscaled.
    tcp_window: Id = own(|row| of_tcp(row, |tcp| Value::U64(tcp.window.into())));
    /// Type of an ICMP message.
    icmp_type: Id = own(|row| number(row, |ip| Some(ip.transport.icmp()?.kind.into()))), show Show::Wide;
    /// Code of an ICMP message.
    icmp_code: Id = own(|row| number(row, |ip| Some(ip.transport.icmp()?.code.into()))), show Show::Wide;
    /// Remaining hops (TTL or hop limit).
    ttl: Count = own(|row| number(row, |ip| Some(ip.ttl.into()))), show Show::Wide;
    /// Type of service or traffic class: DSCP and ECN.
    tos: Hex = own(|row| number(row, |ip| Some(ip.tos.into())));
    /// Identification field of an IPv4 packet or an IPv6 fragment.
    ip_id: Id = own(|row| number(row, |ip| Some(ip.id)));
    /// Length of the packet according to its network header.
    ip_len: Bytes = own(|row| number(row, |ip| Some(ip.length)));
    /// Offset of a fragment within the whole packet; null if it is not a fragment.
    fragment_offset: Bytes = own(|row| number(row, |ip| Some(ip.fragment?.offset.into())));
    /// True if the network card fills in the checksum later (offload): the wrong checksum in the packet is expected.
    checksum_not_ready: Bool = own(|row| Value::Bool(row.checksum_not_ready)), kernel "TP_STATUS_CSUMNOTREADY";
    /// Clock of the timestamp: host (this host's) or adapter (the network card's, which may differ).
    stamp: Name(STAMPS) = own(|row| row.stamp.map_or(Value::Null, |stamp| Value::Name(stamp.word()))),
        kernel "TP_STATUS_TS_RAW_HARDWARE";
    /// True if the packet holds several TCP segments, which are sent separately on the wire (GSO).
    super_packet: Bool = own(|row| Value::Bool(row.is_super_packet)), kernel "TP_STATUS_GSO_TCP";
    /// Name of the sending process (the first of several); null if it is not on this host or is unknown.
    src_process: Text = own(|row| src_socket(row, PacketSocket::process)), needs capture_need::OWNERS;
    /// Name of the receiving process (the first of several); null if it is not on this host or is unknown.
    dst_process: Text = own(|row| dst_socket(row, PacketSocket::process)), needs capture_need::OWNERS;
    /// Name of the process on this host; if both ends are here, the sender's. A filter matches either end.
    process: Text = either(
        |row| src_socket(row, PacketSocket::process),
        |row| dst_socket(row, PacketSocket::process),
    ), needs capture_need::OWNERS;
    /// PID of the sending process.
    src_pid: Id = own(|row| src_socket(row, PacketSocket::pid)), needs capture_need::OWNERS;
    /// PID of the receiving process.
    dst_pid: Id = own(|row| dst_socket(row, PacketSocket::pid)), needs capture_need::OWNERS;
    /// All owners of the sending socket: PID, name, file descriptor and start time (ms since boot).
    src_owners: Owners = own(|row| src_socket(row, PacketSocket::owners)), needs capture_need::OWNERS;
    /// All owners of the receiving socket: PID, name, file descriptor and start time (ms since boot).
    dst_owners: Owners = own(|row| dst_socket(row, PacketSocket::owners)), needs capture_need::OWNERS;
    /// PID of that process. A filter matches either end.
    pid: Id = either(
        |row| src_socket(row, PacketSocket::pid),
        |row| dst_socket(row, PacketSocket::pid),
    ), needs capture_need::OWNERS;
    /// User ID of the sending socket.
    src_uid: Id = own(|row| src_socket(row, PacketSocket::uid)), needs capture_need::OWNERS;
    /// User ID of the receiving socket.
    dst_uid: Id = own(|row| dst_socket(row, PacketSocket::uid)), needs capture_need::OWNERS;
    /// User ID of the socket on this host. A filter matches either end.
    uid: Id = either(
        |row| src_socket(row, PacketSocket::uid),
        |row| dst_socket(row, PacketSocket::uid),
    ), needs capture_need::OWNERS;
    /// User name of the sending socket.
    src_user: Text = own(|row| src_words(row, |words| &words.user)), needs capture_need::OWNERS;
    /// User name of the receiving socket.
    dst_user: Text = own(|row| dst_words(row, |words| &words.user)), needs capture_need::OWNERS;
    /// User name of that socket. A filter matches either end.
    user: Text = either(
        |row| src_words(row, |words| &words.user),
        |row| dst_words(row, |words| &words.user),
    ), needs capture_need::OWNERS;
    /// State of the sending socket when it was last read.
    src_state: Name(State::NAMES) = own(|row| src_socket(row, PacketSocket::state)), needs capture_need::OWNERS;
    /// State of the receiving socket when it was last read.
    dst_state: Name(State::NAMES) = own(|row| dst_socket(row, PacketSocket::state)), needs capture_need::OWNERS;
    /// State of the socket on this host when it was last read. A filter matches either end.
    state: Name(State::NAMES) = either(
        |row| src_socket(row, PacketSocket::state),
        |row| dst_socket(row, PacketSocket::state),
    ), needs capture_need::OWNERS;
    /// Container of the sending process: its name, or the start of its ID.
    src_container: Text = own(|row| src_words(row, |words| &words.container)), needs capture_need::PLACES;
    /// Container of the receiving process: its name, or the start of its ID.
    dst_container: Text = own(|row| dst_words(row, |words| &words.container)), needs capture_need::PLACES;
    /// Container of the process on this host. A filter matches either end.
    container: Text = either(
        |row| src_words(row, |words| &words.container),
        |row| dst_words(row, |words| &words.container),
    ), needs capture_need::PLACES;
    /// Kubernetes pod of the sending process, as namespace/name.
    src_pod: Text = own(|row| src_words(row, |words| &words.pod)), needs capture_need::PLACES;
    /// Kubernetes pod of the receiving process, as namespace/name.
    dst_pod: Text = own(|row| dst_words(row, |words| &words.pod)), needs capture_need::PLACES;
    /// Kubernetes pod of that process. A filter matches either end.
    pod: Text = either(
        |row| src_words(row, |words| &words.pod),
        |row| dst_words(row, |words| &words.pod),
    ), needs capture_need::PLACES;
    /// Innermost systemd unit of the sending process.
    src_unit: Text = own(|row| src_words(row, |words| &words.unit)), needs capture_need::PLACES;
    /// Innermost systemd unit of the receiving process.
    dst_unit: Text = own(|row| dst_words(row, |words| &words.unit)), needs capture_need::PLACES;
    /// Innermost systemd unit of that process. A filter matches either end.
    unit: Text = either(
        |row| src_words(row, |words| &words.unit),
        |row| dst_words(row, |words| &words.unit),
    ), needs capture_need::PLACES;
    /// Command line of the sending process, its arguments separated by spaces.
    src_cmdline: Text = own(|row| src_words(row, |words| &words.cmdline)), needs capture_need::CMDLINES;
    /// Command line of the receiving process, its arguments separated by spaces.
    dst_cmdline: Text = own(|row| dst_words(row, |words| &words.cmdline)), needs capture_need::CMDLINES;
    /// Command line of that process. A filter matches either end.
    cmdline: Text = either(
        |row| src_words(row, |words| &words.cmdline),
        |row| dst_words(row, |words| &words.cmdline),
    ), needs capture_need::CMDLINES;
    /// Conntrack state that such a packet would have now: new, established (also if the connection has been answered
    /// since) or related. Null without an entry: not confirmed (its first packet was dropped), invalid, untracked or
    /// already removed.
    ct_state: Name(PacketState::NAMES) = own(|row| cells::state(row.entry)), needs capture_need::ENTRY;
    /// Direction of the packet in its connection: original (of the first packet) or reply.
    ct_direction: Name(CtDirection::NAMES) = own(|row| cells::direction(row.entry)), needs capture_need::ENTRY;
    /// Status bits of the packet's conntrack entry. A filter matches if the named bit is set.
    ct_status: Words(CtStatus::NAMES) = own(|row| cells::status(row.entry)),
        kernel "CTA_STATUS", needs capture_need::ENTRY;
    /// Mark of that entry.
    ct_mark: Hex = own(|row| entry(row, |ct| Value::number(ct.mark))),
        kernel "CTA_MARK", needs capture_need::ENTRY, zero_is_null true;
    /// ID of that entry, as in `nat`.
    ct_id: Id = own(|row| entry(row, |ct| Value::number(ct.id))), kernel "CTA_ID", needs capture_need::ENTRY;
    /// Address translation of the connection: none, snat (of the client's address), dnat (of the service's address) or
    /// both.
    nat: Name(NatKind::NAMES) = own(|row| cells::nat(row.entry)), needs capture_need::ENTRY;
    /// Client that opened the connection: address and port.
    client: Endpoint = own(|row| cells::client(row.entry)), needs capture_need::ENTRY;
    /// Client's address and port after source NAT, as the backend sees them; null if they are not rewritten.
    mapped: Endpoint = own(|row| cells::mapped(row.entry)), needs capture_need::ENTRY;
    /// Address and port that the client connects to (before destination NAT).
    published: Endpoint = own(|row| cells::published(row.entry)), needs capture_need::ENTRY;
    /// Address and port that answer; they differ from `published` after destination NAT.
    backend: Endpoint = own(|row| cells::backend(row.entry)), needs capture_need::ENTRY;
    /// Source address of the connection's original direction.
    orig_src: Addr = own(|row| entry(row, |ct| Value::Addr(ct.orig.src))),
        kernel "CTA_TUPLE_ORIG", needs capture_need::ENTRY;
    /// Source port of the original direction.
    orig_sport: Port = own(|row| entry(row, |ct| Value::number(ct.orig.sport()))), needs capture_need::ENTRY;
    /// Destination address of the original direction.
    orig_dst: Addr = own(|row| entry(row, |ct| Value::Addr(ct.orig.dst))), needs capture_need::ENTRY;
    /// Destination port of the original direction.
    orig_dport: Port = own(|row| entry(row, |ct| Value::number(ct.orig.dport()))), needs capture_need::ENTRY;
    /// Source address of the connection's reply direction.
    reply_src: Addr = own(|row| entry(row, |ct| Value::Addr(ct.reply.src))),
        kernel "CTA_TUPLE_REPLY", needs capture_need::ENTRY;
    /// Source port of the reply direction.
    reply_sport: Port = own(|row| entry(row, |ct| Value::number(ct.reply.sport()))), needs capture_need::ENTRY;
    /// Destination address of the reply direction: after source NAT, the client's rewritten address.
    reply_dst: Addr = own(|row| entry(row, |ct| Value::Addr(ct.reply.dst))), needs capture_need::ENTRY;
    /// Destination port of the reply direction.
    reply_dport: Port = own(|row| entry(row, |ct| Value::number(ct.reply.dport()))), needs capture_need::ENTRY;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Addr, Comm, Lookups, Owner, Proto, Table, field_index};
    use std::rc::Rc;

    fn cell<'r>(row: &'r CapturedPacket<'_>, name: &str) -> Value<'r> {
        CapturedPackets::FIELDS[field_index::<CapturedPackets>(name).unwrap()].cell(row, &Lookups::empty())
    }

    #[test]
    fn every_protocol_has_a_word_of_the_list() {
        for kind in 0..=u16::MAX {
            let link = LinkHeader { ether_type: kind, ..LinkHeader::default() };
            let row = CapturedPacket { link, ..CapturedPacket::default() };
            assert!(PROTO_NAMES.contains(&row.proto_name()), "{kind:x}");
        }
        let unique: std::collections::HashSet<&str> = PROTO_NAMES.into_iter().collect();
        assert_eq!(unique.len(), PROTO_NAMES.len());
    }

    #[test]
    fn a_packet_without_ip_has_no_ports_but_addresses_of_arp() {
        let arp = ArpHeader { operation: 1, sender: ([2; 6], [10, 0, 0, 1]), target: ([0; 6], [10, 0, 0, 2]) };
        let link = LinkHeader { ether_type: 0x806, ..LinkHeader::default() };
        let row = CapturedPacket { arp: Some(arp), link, len: 42, ..CapturedPacket::default() };
        assert_eq!(cell(&row, "proto"), Value::Name("arp"));
        assert_eq!(cell(&row, "dst"), Value::Addr(Addr::V4([10, 0, 0, 2])));
        assert_eq!(cell(&row, "sport"), Value::Null);
        assert_eq!((cell(&row, "len"), cell(&row, "caplen")), (Value::U64(42), Value::U64(0)));
        assert_eq!((cell(&row, "direction"), cell(&row, "vlan")), (Value::Null, Value::Null));
        let sent = CapturedPacket { packet_type: PktType::from_number(4), ..row };
        assert_eq!(
            (cell(&sent, "direction"), cell(&sent, "packet_type")),
            (Value::Name("out"), Value::Name("outgoing"))
        );
        assert!(PktType::from_number(5).is_none());
    }

    #[test]
    fn the_sender_comes_first_where_both_ends_are_here() {
        let socket = |pid, uid| PacketSocket {
            inode: 0,
            proto: Proto::Udp,
            state: State::CLOSE,
            uid,
            owners: [Owner { pid, fd: 3, process: Comm::new(b"x"), started: 0 }].into(),
            words: Rc::default(),
        };
        let (client, server) = (socket(7, None), socket(8, Some(5)));
        let row = CapturedPacket { src_socket: Some(&client), dst_socket: Some(&server), ..CapturedPacket::default() };
        assert_eq!([cell(&row, "pid"), cell(&row, "src_pid"), cell(&row, "dst_pid")], [7, 7, 8].map(Value::U64));
        assert_eq!([cell(&row, "uid"), cell(&row, "dst_uid")], [5, 5].map(Value::U64), "where it is known");
        assert_eq!((cell(&row, "src_uid"), cell(&row, "container")), (Value::Null, Value::Null));
        assert_eq!(cell(&row, "state"), Value::Name("unconn"));
        let received = CapturedPacket { src_socket: None, ..row };
        assert_eq!([cell(&received, "pid"), cell(&received, "src_pid")], [Value::U64(8), Value::Null]);
    }
}
