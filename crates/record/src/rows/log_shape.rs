//! Shapes of log records: the data that records share if they differ only in numbers.

use super::conntrack::ip_proto;
use super::log_record::LogRecord;
use super::packet::Transport;
use crate::{Addr, NUMBERS, NumberKind, RowShape, ShapeColumn};

/// Size of an IPv4 header without options.
const HEADER: usize = 20;
/// Mask of the flags and offset field (RFC 791) that is nonzero only for fragments: it excludes the bits "reserved"
/// and "don't fragment".
const IS_FRAGMENT: u16 = 0x3fff;
/// ICMP types with an identifier and a sequence number: echo reply and echo request.
const ECHOES: [u8; 2] = [0, 8];

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
    pub(super) const TCP_URGENT: usize = 10;
    pub(super) const UDP_LENGTH: usize = 11;
    pub(super) const ICMP_ID: usize = 12;
    pub(super) const ICMP_SEQ: usize = 13;
    /// Nanoseconds within the second.
    pub(super) const NANOS: usize = crate::NANOS;
}

/// Positions of numbers in a packet: index, offset and size in bytes. The numbers after the first seven depend on the
/// protocol.
const OF_IP: [(usize, usize, usize); 5] =
    [(number::SRC, 12, 4), (number::DST, 16, 4), (number::LENGTH, 2, 2), (number::TTL, 8, 1), (number::IP_ID, 4, 2)];
const OF_TCP: [(usize, usize, usize); 6] = [
    (number::SPORT, HEADER, 2),
    (number::DPORT, HEADER + 2, 2),
    (number::TCP_SEQ, HEADER + 4, 4),
    (number::TCP_ACK, HEADER + 8, 4),
    (number::TCP_WINDOW, HEADER + 14, 2),
    (number::TCP_URGENT, HEADER + 18, 2),
];
const OF_UDP: [(usize, usize, usize); 3] =
    [(number::SPORT, HEADER, 2), (number::DPORT, HEADER + 2, 2), (number::UDP_LENGTH, HEADER + 4, 2)];
const OF_ECHO: [(usize, usize, usize); 2] = [(number::ICMP_ID, HEADER + 4, 2), (number::ICMP_SEQ, HEADER + 6, 2)];

impl<'b> LogRecord<'b> {
    /// The record's shape and its numbers. `None` for uncommon records: with anything but a complete TCP, UDP or ICMP
    /// echo header after an unfragmented IPv4 header without options, without a known length, or with a user, a VLAN
    /// or a bridge port. The columns of [`LogRecord::shape_column`] and the text of LOGEMU depend only on the shape,
    /// the numbers, and the names of interfaces and namespaces.
    #[inline]
    pub fn shape(&self) -> Option<RowShape<'b>> {
        let packet = self.packet.as_ref()?;
        let header = packet.header.first_chunk::<HEADER>()?;
        let (Addr::V4(src), Addr::V4(dst)) = (packet.src, packet.dst) else { return None };
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        let is_rare = self.uid.is_some()
            | self.gid.is_some()
            | self.vlan.is_some()
            | packet.known_length().is_none()
            | self.physin_ifindex.is_some()
            | self.physout_ifindex.is_some();
        if header[0] != 0x45 || fragment & IS_FRAGMENT != 0 || is_rare {
            return None;
        }
        let mut numbers = [0; NUMBERS];
        numbers[number::SRC] = u32::from_be_bytes(src);
        numbers[number::DST] = u32::from_be_bytes(dst);
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
                numbers[number::TCP_URGENT] = short(head[18], head[19]);
                [head[12], head[13]]
            }
            Transport::Ports { sport, dport } if packet.proto == ip_proto::UDP => {
                let head = packet.payload.first_chunk::<8>()?;
                numbers[number::SPORT] = (*sport).into();
                numbers[number::DPORT] = (*dport).into();
                numbers[number::UDP_LENGTH] = short(head[4], head[5]);
                [0, 0]
            }
            Transport::Icmp(icmp) if packet.proto == ip_proto::ICMP && ECHOES.contains(&icmp.kind) => {
                let head = packet.payload.first_chunk::<8>()?;
                numbers[number::ICMP_ID] = short(head[4], head[5]);
                numbers[number::ICMP_SEQ] = short(head[6], head[7]);
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
        let bits = u64::from_be_bytes([header[1], header[6], header[7], layer4[0], layer4[1], 0, 0, 0]);
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
        let of_protocol: &[_] = match self.packet.as_ref().map(|packet| packet.proto) {
            Some(ip_proto::TCP) => &OF_TCP,
            Some(ip_proto::UDP) => &OF_UDP,
            Some(ip_proto::ICMP) => &OF_ECHO,
            _ => &[],
        };
        for (number, at, bytes) in OF_IP.iter().chain(of_protocol) {
            let value = numbers[*number].to_be_bytes();
            let (Some(place), Some(value)) = (packet.get_mut(*at..*at + *bytes), value.get(4 - *bytes..)) else {
                return;
            };
            place.copy_from_slice(value);
        }
    }

    /// The kind of the number at an index.
    pub fn number_kind(number: usize) -> NumberKind {
        let largest = match number {
            number::SRC | number::DST => return NumberKind::Address,
            number::NANOS => return NumberKind::Nanoseconds,
            number::TTL => u8::MAX.into(),
            number::TCP_SEQ | number::TCP_ACK => u32::MAX,
            _ => u16::MAX.into(),
        };
        NumberKind::Decimal { largest }
    }
}
