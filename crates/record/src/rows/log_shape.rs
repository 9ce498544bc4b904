//! Shapes of log records: the data that records share if they differ only in numbers.

use super::conntrack::ip_proto;
use super::log_record::LogRecord;
use super::packet::{PacketHeaders, Transport};
use crate::{Addr, NUMBERS, NumberKind, RowShape, ShapeColumn, V6_ADDRESSES, put_v6_at, v6_at, v6_index};

/// Size of an IPv4 header without options, and of an IPv6 header without extension headers.
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
/// Mask of the flags and offset field (RFC 791) that is nonzero only for fragments: it excludes the bits "reserved"
/// and "don't fragment".
const IS_FRAGMENT: u16 = 0x3fff;
/// ICMP types with an identifier and a sequence number: echo reply and echo request.
const ECHOES: [u8; 2] = [0, 8];
/// Likewise for ICMPv6.
const ECHOES_V6: [u8; 2] = [129, 128];

/// Indexes of a record's numbers.
mod number {
    pub(super) const SRC: usize = 0;
    pub(super) const DST: usize = 1;
    pub(super) const SPORT: usize = 2;
    pub(super) const DPORT: usize = 3;
    pub(super) const LENGTH: usize = 4;
    pub(super) const TTL: usize = 5;
    pub(super) const IP_ID: usize = 6;
    pub(super) const TCP_SEQ: usize = 7;
    pub(super) const TCP_ACK: usize = 8;
    pub(super) const TCP_WINDOW: usize = 9;
    /// The urgent pointer of TCP, the length of UDP, or the sequence number of an ICMP echo: no column shows them.
    pub(super) const L4_REST: usize = 10;
    /// The flow label of IPv6; no column shows it.
    pub(super) const FLOW_LABEL: usize = 11;
    pub(super) const ICMP_ID: usize = 12;
    /// Nanoseconds within the second.
    pub(super) const NANOS: usize = crate::NANOS;
}

/// Positions of numbers in an IPv4 packet: index, offset and size in bytes.
const OF_V4: [(usize, usize, usize); 5] =
    [(number::SRC, 12, 4), (number::DST, 16, 4), (number::LENGTH, 2, 2), (number::TTL, 8, 1), (number::IP_ID, 4, 2)];
/// Positions of numbers after the network header.
const OF_TCP: [(usize, usize, usize); 6] = [
    (number::SPORT, 0, 2),
    (number::DPORT, 2, 2),
    (number::TCP_SEQ, 4, 4),
    (number::TCP_ACK, 8, 4),
    (number::TCP_WINDOW, 14, 2),
    (number::L4_REST, 18, 2),
];
const OF_UDP: [(usize, usize, usize); 3] = [(number::SPORT, 0, 2), (number::DPORT, 2, 2), (number::L4_REST, 4, 2)];
const OF_ECHO: [(usize, usize, usize); 2] = [(number::ICMP_ID, 4, 2), (number::L4_REST, 6, 2)];

impl<'b> LogRecord<'b> {
    /// The record's shape and its numbers. `None` for uncommon records: with anything but a complete TCP, UDP or ICMP
    /// echo header after an unfragmented IP header without options or extension headers, without a known length, or
    /// with a user, a VLAN or a bridge port. The columns of [`LogRecord::shape_column`] and the text of LOGEMU depend
    /// only on the shape, the numbers, and the names of interfaces and namespaces.
    #[inline]
    pub fn shape(&self) -> Option<RowShape<'b>> {
        let packet = self.packet.as_ref()?;
        let is_rare = self.uid.is_some()
            | self.gid.is_some()
            | self.vlan.is_some()
            | packet.known_length().is_none()
            | self.physin_ifindex.is_some()
            | self.physout_ifindex.is_some();
        if is_rare {
            return None;
        }
        let mut numbers = [0; NUMBERS];
        let network = put_network(packet, &mut numbers)?;
        numbers[number::LENGTH] = packet.length;
        numbers[number::TTL] = packet.ttl.into();
        numbers[number::IP_ID] = packet.id;
        let short = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
        let layer4 = match &packet.transport {
            Transport::Tcp(tcp) => {
                let head = packet.payload.first_chunk::<20>()?;
                numbers[number::SPORT] = tcp.sport.into();
                numbers[number::DPORT] = tcp.dport.into();
                numbers[number::TCP_SEQ] = tcp.seq;
                numbers[number::TCP_ACK] = tcp.ack;
                numbers[number::TCP_WINDOW] = tcp.window.into();
                numbers[number::L4_REST] = short(head[18], head[19]);
                [head[12], head[13]]
            }
            Transport::Ports { sport, dport } if packet.proto == ip_proto::UDP => {
                let head = packet.payload.first_chunk::<8>()?;
                numbers[number::SPORT] = (*sport).into();
                numbers[number::DPORT] = (*dport).into();
                numbers[number::L4_REST] = short(head[4], head[5]);
                [0, 0]
            }
            Transport::Icmp(icmp) if is_echo(packet.proto, icmp.kind) => {
                let head = packet.payload.first_chunk::<8>()?;
                numbers[number::ICMP_ID] = short(head[4], head[5]);
                numbers[number::L4_REST] = short(head[6], head[7]);
                [icmp.kind, icmp.code]
            }
            _ => return None,
        };
        let second = self.time_ns / 1_000_000_000;
        numbers[number::NANOS] = (self.time_ns - second * 1_000_000_000) as u32;
        let ifindexes = u64::from(self.in_ifindex.unwrap_or(0)) << 32 | u64::from(self.out_ifindex.unwrap_or(0));
        let [group_high, group_low] = self.group.to_be_bytes();
        let [ether_high, ether_low] = self.ether_type.to_be_bytes();
        let are_set = u8::from(self.in_ifindex.is_some())
            | u8::from(self.out_ifindex.is_some()) << 1
            | u8::from(self.mark.is_some()) << 2;
        let (family, hook) = (self.family, self.hook);
        let kinds = [group_high, group_low, ether_high, ether_low, family, hook, are_set, packet.proto];
        let kinds = u64::from_be_bytes(kinds);
        let [version, tos, high, low] = network;
        let bits = u64::from_be_bytes([tos, high, low, layer4[0], layer4[1], version, 0, 0]);
        let mark = self.mark.unwrap_or(0).into();
        Some(RowShape {
            second,
            shared: [self.netns_id, ifindexes, kinds, bits, mark],
            texts: [self.prefix, self.hw_header],
            numbers,
        })
    }

    /// The content of a column in records of one shape.
    pub fn shape_column(column: &str) -> ShapeColumn {
        ShapeColumn::Number(match column {
            "time" => number::NANOS,
            "src" => number::SRC,
            "dst" => number::DST,
            "sport" => number::SPORT,
            "dport" => number::DPORT,
            "len" => number::LENGTH,
            "ttl" => number::TTL,
            "ip_id" => number::IP_ID,
            "tcp_seq" => number::TCP_SEQ,
            "tcp_ack" => number::TCP_ACK,
            "tcp_window" => number::TCP_WINDOW,
            "icmp_id" => number::ICMP_ID,
            "netns" | "netns_id" | "group" | "prefix" | "hook" | "direction" | "family" | "iif" | "iifindex"
            | "oif" | "oifindex" | "physin" | "physout" | "proto" | "proto_number" | "tcp_flags" | "icmp_type"
            | "icmp_code" | "tos" | "fragment_offset" | "mark" | "uid" | "user" | "gid" | "vlan" | "ether_type" => {
                return ShapeColumn::Shared;
            }
            _ => return ShapeColumn::Other,
        })
    }

    /// Stores numbers in the packet of a record that has a shape.
    pub fn put_numbers(&self, numbers: &[u32; NUMBERS], packet: &mut [u8]) {
        let Some(headers) = &self.packet else { return };
        let of_protocol: &[_] = match headers.proto {
            ip_proto::TCP => &OF_TCP,
            ip_proto::UDP => &OF_UDP,
            ip_proto::ICMP | ip_proto::ICMPV6 => &OF_ECHO,
            _ => &[],
        };
        let header_bytes = match headers.src {
            Addr::V4(_) => {
                put_each(numbers, &OF_V4, packet);
                V4_HEADER
            }
            Addr::V6(_) => {
                if let Some(header) = packet.first_chunk_mut() {
                    put_v6_header(numbers, header);
                }
                V6_HEADER
            }
        };
        put_each(numbers, of_protocol, packet.get_mut(header_bytes..).unwrap_or_default());
    }

    /// The kind of the number at an index.
    pub fn number_kind(number: usize) -> NumberKind {
        let (smallest, largest) = match number {
            number::SRC | number::DST => return NumberKind::Address,
            V6_ADDRESSES.. => return NumberKind::AddressV6,
            number::NANOS => return NumberKind::Nanoseconds,
            // The header of an IPv6 packet has its length without the header; 0 means that it is unknown.
            number::LENGTH => (V6_HEADER as u32 + 1, u16::MAX.into()),
            number::TTL => (0, u8::MAX.into()),
            number::FLOW_LABEL => (0, FLOW_LABEL_MAX),
            number::TCP_SEQ | number::TCP_ACK => (0, u32::MAX),
            _ => (0, u16::MAX.into()),
        };
        NumberKind::Decimal { smallest, largest }
    }
}

/// The largest flow label: 20 bits.
const FLOW_LABEL_MAX: u32 = 0xf_ffff;

fn is_echo(proto: u8, kind: u8) -> bool {
    match proto {
        ip_proto::ICMP => ECHOES.contains(&kind),
        ip_proto::ICMPV6 => ECHOES_V6.contains(&kind),
        _ => false,
    }
}

/// Stores the addresses and the flow label. Returns what packets of a shape share: IP version, type
/// of service, and the IPv4 field of flags and offset. `None` for a fragment, and for a header with options or
/// extension headers.
#[inline]
fn put_network(packet: &PacketHeaders<'_>, numbers: &mut [u32; NUMBERS]) -> Option<[u8; 4]> {
    match (packet.src, packet.dst) {
        (Addr::V4(src), Addr::V4(dst)) => {
            let header = packet.header.first_chunk::<V4_HEADER>()?;
            numbers[number::SRC] = u32::from_be_bytes(src);
            numbers[number::DST] = u32::from_be_bytes(dst);
            let fragment = u16::from_be_bytes([header[6], header[7]]);
            let is_common = header[0] == 0x45 && fragment & IS_FRAGMENT == 0;
            is_common.then_some([4, header[1], header[6], header[7]])
        }
        (Addr::V6(src), Addr::V6(dst)) => {
            put_v6_at(numbers, v6_index(number::SRC), src);
            put_v6_at(numbers, v6_index(number::DST), dst);
            numbers[number::FLOW_LABEL] = packet.flow_label()?;
            (packet.header.len() == V6_HEADER).then_some([6, packet.tos, 0, 0])
        }
        _ => None,
    }
}

/// Stores numbers at their positions.
fn put_each(numbers: &[u32; NUMBERS], positions: &[(usize, usize, usize)], packet: &mut [u8]) {
    for (number, at, bytes) in positions {
        let value = numbers[*number].to_be_bytes();
        let (Some(place), Some(value)) = (packet.get_mut(*at..*at + *bytes), value.get(4 - *bytes..)) else {
            return;
        };
        place.copy_from_slice(value);
    }
}

/// Stores the numbers of an IPv6 header.
fn put_v6_header(numbers: &[u32; NUMBERS], header: &mut [u8; V6_HEADER]) {
    let [_, label @ ..] = (numbers[number::FLOW_LABEL] & FLOW_LABEL_MAX).to_be_bytes();
    (header[1], header[2], header[3]) = (header[1] & 0xf0 | label[0], label[1], label[2]);
    let length = numbers[number::LENGTH].saturating_sub(V6_HEADER as u32) as u16;
    [header[4], header[5]] = length.to_be_bytes();
    header[7] = numbers[number::TTL] as u8;
    header[8..24].copy_from_slice(&v6_at(numbers, v6_index(number::SRC)));
    header[24..].copy_from_slice(&v6_at(numbers, v6_index(number::DST)));
}
