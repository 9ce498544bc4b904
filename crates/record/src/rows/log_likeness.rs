//! Similarity of log records.

use super::log_record::LogRecord;
use super::packet::Transport;
use crate::{Likeness, Varying};

impl LogRecord<'_> {
    /// The values that determine the cells in columns that are [`Varying::Never`]: the rule as far as the record
    /// identifies it, interfaces, protocol and flags. Also the presence of the optional parts, for columns that are
    /// [`Varying::InValue`]. The second is included because interfaces may be renamed.
    #[inline]
    pub fn likeness(&self) -> Option<Likeness<'_>> {
        let second = self.time_ns / 1_000_000_000;
        let (mut parts, mut proto, mut flags) = (0, 0, 0);
        let packet = self.packet.as_ref();
        if let Some(packet) = packet {
            proto = packet.proto;
            parts = match &packet.transport {
                Transport::Tcp(tcp) => {
                    flags = tcp.flags;
                    1
                }
                Transport::Ports { .. } => 2,
                Transport::Icmp(icmp) => 3 + u64::from(icmp.id.is_some()),
                Transport::Other => 5,
            };
        }
        let is_fragment = packet.is_some_and(|packet| packet.fragment.is_some());
        let are_set = [
            self.in_ifindex.is_some(),
            self.out_ifindex.is_some(),
            self.mark.is_some(),
            self.uid.is_some(),
            self.gid.is_some(),
            self.seq.is_some(),
            is_fragment,
        ];
        let parts = are_set.iter().fold(parts, |parts, is_set| parts << 1 | u64::from(*is_set));
        let ifindexes = u64::from(self.in_ifindex.unwrap_or(0)) << 32 | u64::from(self.out_ifindex.unwrap_or(0));
        let [group_high, group_low] = self.group.to_be_bytes();
        let [ether_high, ether_low] = self.ether_type.to_be_bytes();
        let small = [group_high, group_low, self.family, self.hook, ether_high, ether_low, proto, flags];
        Some(Likeness {
            numbers: [self.netns_id, ifindexes, u64::from_be_bytes(small), second << 16 | parts],
            text: self.prefix,
        })
    }

    /// How the cells of a column vary among similar records; `Freely` for columns without a special case.
    pub fn varying(column: &str) -> Varying {
        match column {
            "netns" | "netns_id" | "group" | "prefix" | "hook" | "direction" | "family" | "iif" | "iifindex"
            | "oif" | "oifindex" | "proto" | "proto_number" | "tcp_flags" | "ether_type" => Varying::Never,
            "src" | "sport" | "dst" | "dport" | "len" | "tcp_seq" | "tcp_ack" | "tcp_window" | "icmp_type"
            | "icmp_code" | "icmp_id" | "ttl" | "tos" | "ip_id" | "fragment_offset" | "mark" | "uid" | "gid"
            | "payload_bytes" | "seq" => Varying::InValue,
            "user" => Varying::OnlyWith("uid"),
            _ => Varying::Freely,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rows::{Fragment, IcmpHeader, LogRecords, PacketHeaders, TcpHeader};
    use crate::{Addr, Lookups, Table, Value};
    use proptest::prelude::*;

    /// Records of a few kinds, so that many of them are similar.
    fn record(bits: u32, number: u8, prefix: &'static [u8]) -> LogRecord<'static> {
        let number = number % 3;
        let set = |bit: u32| (bits >> bit & 1 == 1).then_some(u32::from(number));
        let transport = match bits >> 20 & 3 {
            0 => Transport::Tcp(TcpHeader { sport: bits as u16, dport: 1, flags: number, ..TcpHeader::default() }),
            1 => Transport::Ports { sport: 7, dport: bits as u16 },
            2 => Transport::Icmp(IcmpHeader { kind: number, code: 0, id: set(18).map(|id| id as u16) }),
            _ => Transport::Other,
        };
        let fragment = set(15).map(|offset| Fragment { offset: offset as u16, more: true });
        let src = Addr::V4([192, 0, 2, number]);
        let packet = PacketHeaders { src, proto: number, fragment, transport, ttl: number, ..PacketHeaders::default() };
        LogRecord {
            time_ns: u64::from(bits),
            netns_id: u64::from(set(12).unwrap_or(0)),
            group: u16::from(bits >> 11 & 1 == 1),
            family: if set(16).is_some() { 2 } else { 10 },
            hook: number,
            prefix,
            in_ifindex: set(1),
            out_ifindex: set(2),
            physin_ifindex: set(3),
            ether_type: set(4).unwrap_or(0) as u16,
            mark: set(5),
            uid: set(6),
            gid: set(7),
            vlan: set(8).map(|id| id as u16),
            seq: set(9),
            packet: set(10).map(|_| packet),
            ..LogRecord::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]
        /// For any two similar records, each column varies only as `varying` allows.
        #[test]
        fn records_of_one_likeness_differ_only_where_columns_vary(
            bits: u32, change in 0u32..32, other: u8, number: u8, same: bool, same_prefix: bool,
        ) {
            let first = record(bits, number, b"in: ");
            let prefix: &[u8] = if same_prefix { b"in: " } else { b"" };
            let second = record(bits ^ 1 << change, if same { number } else { other }, prefix);
            if first.likeness() != second.likeness() {
                return Ok(());
            }
            for field in LogRecords::FIELDS {
                let [one, two] = [&first, &second].map(|row| field.cell(row, &Lookups::none()));
                let shown = |cell: Value<'_>| format!("{cell:?}");
                match LogRecord::varying(field.name) {
                    Varying::Never => prop_assert_eq!(shown(one), shown(two), "{}", field.name),
                    Varying::InValue => prop_assert_eq!(one.is_null(), two.is_null(), "{}", field.name),
                    Varying::OnlyWith(other) => {
                        let other = LogRecords::FIELDS.iter().find(|field| field.name == other).unwrap();
                        prop_assert!(!matches!(LogRecord::varying(other.name), Varying::Freely | Varying::OnlyWith(_)));
                        for (cell, row) in [(one, &first), (two, &second)] {
                            prop_assert!(cell.is_null() || !other.cell(row, &Lookups::none()).is_null());
                        }
                    }
                    Varying::Freely => {}
                }
            }
        }
    }
}
