//! Keys of log records for folding and limiting, and a copy of a record.

use super::super::gate::RateBy;
use super::Keyed;
use record::Owner;
use record::rows::{LogRecord, LogRecords, LoggingRule, PacketEntry, PacketHeaders, Transport};
use record::text::{put_addr, put_log_text};

/// Number of bytes kept of a packet: its headers.
///
/// Bound: bytes of a packet that a folded row keeps. Beyond: the rest is not shown. By: any sender of packets.
const PAYLOAD_MAX: usize = 256;
/// Number of bytes kept of a link-layer header, and of an address.
const HW_MAX: usize = 64;
/// Maximum length of a rule's text to keep.
const RULE_MAX: usize = 1024;

/// A log record that owns its data.
pub(crate) struct KeptLog {
    row: LogRecord<'static>,
    packet: Option<PacketHeaders<'static>>,
    /// Prefix, link-layer header, link-layer address and packet, concatenated.
    bytes: Vec<u8>,
    /// The end offset of each.
    ends: [usize; 4],
    /// Lengths of the network header and of the captured bytes after it.
    header: (usize, usize),
    rule: Option<KeptRule>,
    owners: Vec<Owner>,
    /// Boxed, because it is large and few runs use it.
    entry: Option<Box<PacketEntry<'static>>>,
}

/// A rule that owns its texts; texts longer than [`RULE_MAX`] are left out.
struct KeptRule {
    handle: Option<u64>,
    verdict: Option<&'static str>,
    /// Table, chain, comment and text.
    texts: [Option<Box<str>>; 4],
}

impl KeptRule {
    fn of(rule: &LoggingRule<'_>) -> KeptRule {
        let texts = [rule.table, rule.chain, rule.comment, rule.text];
        let texts = texts.map(|text| text.filter(|text| text.len() <= RULE_MAX).map(Box::from));
        KeptRule { handle: rule.handle, verdict: rule.verdict, texts }
    }

    fn rule(&self) -> LoggingRule<'_> {
        let [table, chain, comment, text] = self.texts.each_ref().map(Option::as_deref);
        LoggingRule { table, chain, handle: self.handle, verdict: self.verdict, comment, text }
    }
}

/// Appends the values that log records of one rule and sender share regardless of source port, numbers and length:
/// group, prefix, hook, interfaces, addresses, protocol, and destination port or ICMP type and code. Other tables of
/// packets would add the fields that identify their events.
fn put_key(row: &LogRecord<'_>, key: &mut Vec<u8>) {
    key.extend_from_slice(&row.group.to_le_bytes());
    key.extend_from_slice(&[row.family, row.hook]);
    key.extend_from_slice(&row.netns_id.to_le_bytes());
    for index in [row.in_ifindex, row.out_ifindex] {
        key.extend_from_slice(&index.unwrap_or(0).to_le_bytes());
    }
    key.push(row.prefix.len() as u8);
    key.extend_from_slice(row.prefix);
    let Some(packet) = &row.packet else {
        // Not an IP packet: use its sender and type.
        key.extend_from_slice(&row.ether_type.to_le_bytes());
        return key.extend_from_slice(row.hw_addr.get(..HW_MAX.min(row.hw_addr.len())).unwrap_or_default());
    };
    key.push(packet.proto);
    key.extend_from_slice(packet.src.octets());
    key.extend_from_slice(packet.dst.octets());
    let service = match packet.transport {
        Transport::Tcp(tcp) => [1, tcp.dport],
        Transport::Ports { dport, .. } => [2, dport],
        Transport::Icmp(icmp) => [3, u16::from_be_bytes([icmp.kind, icmp.code])],
        Transport::Other => [0, 0],
    };
    service.iter().for_each(|part| key.extend_from_slice(&part.to_le_bytes()));
}

impl Keyed for LogRecords {
    type Kept = KeptLog;

    fn put_fold_key(row: &LogRecord<'_>, key: &mut Vec<u8>) {
        put_key(row, key);
    }

    fn put_rate_key(row: &LogRecord<'_>, by: RateBy, key: &mut Vec<u8>) {
        let packet = row.packet.as_ref();
        // Rules and addresses in other namespaces are different ones.
        key.extend_from_slice(&row.netns_id.to_le_bytes());
        match (by, packet) {
            (RateBy::Src, Some(packet)) => key.extend_from_slice(packet.src.octets()),
            (RateBy::Dst, Some(packet)) => key.extend_from_slice(packet.dst.octets()),
            _ => {
                key.extend_from_slice(&row.group.to_le_bytes());
                key.extend_from_slice(row.prefix);
            }
        }
    }

    fn put_rate_words(row: &LogRecord<'_>, by: RateBy, out: &mut Vec<u8>) {
        match (by, row.packet.as_ref()) {
            (RateBy::Src, Some(packet)) => put_addr(out, packet.src),
            (RateBy::Dst, Some(packet)) => put_addr(out, packet.dst),
            _ => {
                out.extend_from_slice(format!("group {} prefix \"", row.group).as_bytes());
                put_log_text(out, row.prefix);
                out.push(b'"');
            }
        }
    }

    fn keep(row: &LogRecord<'_>, spare: Option<KeptLog>) -> KeptLog {
        let mut bytes = spare.map_or_else(Vec::new, |spare| spare.bytes);
        bytes.clear();
        let parts =
            [(row.prefix, HW_MAX * 4), (row.hw_header, HW_MAX), (row.hw_addr, HW_MAX), (row.payload, PAYLOAD_MAX)];
        let ends = parts.map(|(part, most)| {
            bytes.extend_from_slice(part.get(..most.min(part.len())).unwrap_or_default());
            bytes.len()
        });
        let header = row.packet.map_or((0, 0), |packet| (packet.header.len(), packet.payload.len()));
        let packet = row.packet.map(|packet| without_bytes(&packet));
        KeptLog {
            row: fixed(row),
            packet,
            bytes,
            ends,
            header,
            rule: row.rule.map(KeptRule::of),
            owners: row.owners.to_vec(),
            entry: row.entry.map(|entry| Box::new(entry.without_borrowed())),
        }
    }

    fn with_kept(kept: &KeptLog, time_ns: Option<u64>, then: &mut dyn FnMut(&LogRecord<'_>)) {
        let [prefix, hw_header, hw_addr, payload] = kept.ends;
        let part = |from: usize, to: usize| kept.bytes.get(from..to).unwrap_or_default();
        let payload = part(hw_addr, payload);
        let (header, rest) = payload.split_at(kept.header.0.min(payload.len()));
        let rest = rest.get(..kept.header.1.min(rest.len())).unwrap_or_default();
        let rule = kept.rule.as_ref().map(KeptRule::rule);
        then(&LogRecord {
            rule: rule.as_ref(),
            owners: &kept.owners,
            entry: kept.entry.as_deref(),
            time_ns: time_ns.unwrap_or(kept.row.time_ns),
            prefix: part(0, prefix),
            hw_header: part(prefix, hw_header),
            hw_addr: part(hw_header, hw_addr),
            payload,
            packet: kept.packet.map(|packet| PacketHeaders { header, payload: rest, ..packet }),
            ..kept.row
        });
    }
}

/// The headers without the bytes that they were parsed from.
fn without_bytes(packet: &PacketHeaders<'_>) -> PacketHeaders<'static> {
    PacketHeaders {
        src: packet.src,
        dst: packet.dst,
        proto: packet.proto,
        length: packet.length,
        ttl: packet.ttl,
        tos: packet.tos,
        id: packet.id,
        dont_fragment: packet.dont_fragment,
        fragment: packet.fragment,
        transport: packet.transport,
        header: &[],
        payload: &[],
    }
}

/// The fields of the record that do not borrow.
fn fixed(row: &LogRecord<'_>) -> LogRecord<'static> {
    LogRecord {
        time_ns: row.time_ns,
        received_ns: row.received_ns,
        since_ns: row.since_ns,
        netns_id: row.netns_id,
        group: row.group,
        family: row.family,
        hook: row.hook,
        prefix: &[],
        in_ifindex: row.in_ifindex,
        out_ifindex: row.out_ifindex,
        physin_ifindex: row.physin_ifindex,
        physout_ifindex: row.physout_ifindex,
        ether_type: row.ether_type,
        hw_header: &[],
        hw_addr: &[],
        hw_type: row.hw_type,
        mark: row.mark,
        uid: row.uid,
        gid: row.gid,
        vlan: row.vlan,
        seq: row.seq,
        payload: &[],
        packet: None,
        rule: None,
        owners: &[],
        owners_seen_ns: row.owners_seen_ns,
        ct_attrs: None,
        entry: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Addr;
    use record::rows::TcpHeader;

    fn key(row: &LogRecord<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        LogRecords::put_fold_key(row, &mut key);
        key
    }

    #[test]
    fn records_fold_but_for_time_source_port_and_numbers() {
        let tcp = TcpHeader { sport: 1, dport: 22, seq: 5, ..TcpHeader::default() };
        let packet = PacketHeaders { proto: 6, transport: Transport::Tcp(tcp), ..PacketHeaders::default() };
        let row = LogRecord { prefix: b"in: ", packet: Some(packet), ..LogRecord::default() };
        let with = |packet: PacketHeaders<'static>| LogRecord { packet: Some(packet), ..row };
        let other_tcp = TcpHeader { sport: 9, seq: 77, flags: 2, ..tcp };
        let other = PacketHeaders { transport: Transport::Tcp(other_tcp), id: 7, ttl: 3, length: 99, ..packet };
        let same = LogRecord { time_ns: 5, seq: Some(8), mark: Some(1), ..with(other) };
        assert_eq!(key(&row), key(&same));
        let dport = TcpHeader { dport: 23, ..tcp };
        for different in [
            LogRecord { prefix: b"out: ", ..row },
            LogRecord { group: 2, ..row },
            LogRecord { hook: 3, ..row },
            LogRecord { in_ifindex: Some(2), ..row },
            LogRecord { out_ifindex: Some(2), ..row },
            LogRecord { packet: None, ..row },
            with(PacketHeaders { src: Addr::V4([1, 2, 3, 4]), ..packet }),
            with(PacketHeaders { dst: Addr::V4([1, 2, 3, 4]), ..packet }),
            with(PacketHeaders { proto: 17, ..packet }),
            with(PacketHeaders { transport: Transport::Tcp(dport), ..packet }),
        ] {
            assert_ne!(key(&row), key(&different), "{different:?}");
        }
    }

    #[test]
    fn a_rate_is_of_one_namespace() {
        let packet = PacketHeaders { src: Addr::V4([1, 2, 3, 4]), ..PacketHeaders::default() };
        let row = LogRecord { prefix: b"in: ", packet: Some(packet), netns_id: 5, ..LogRecord::default() };
        let key = |row: &LogRecord<'_>, by| {
            let mut key = Vec::new();
            LogRecords::put_rate_key(row, by, &mut key);
            key
        };
        for by in [RateBy::Rule, RateBy::Src, RateBy::Dst] {
            assert_eq!(key(&row, by), key(&LogRecord { seq: Some(1), ..row }, by));
            assert_ne!(key(&row, by), key(&LogRecord { netns_id: 6, ..row }, by), "{by:?}");
        }
    }

    #[test]
    fn a_kept_record_is_as_it_was_but_for_its_time() {
        let payload: Vec<u8> = (0..200).collect();
        let (header, rest) = payload.split_at(20);
        let packet = PacketHeaders { header, payload: rest.get(..100).unwrap_or_default(), ..PacketHeaders::default() };
        let rule = LoggingRule { chain: Some("input"), handle: Some(4), ..LoggingRule::default() };
        let row = LogRecord {
            time_ns: 1,
            prefix: b"in: ",
            hw_header: &[1; 14],
            hw_addr: &[2; 6],
            payload: &payload,
            packet: Some(packet),
            mark: Some(7),
            rule: Some(&rule),
            ..LogRecord::default()
        };
        let mut kept = LogRecords::keep(&row, None);
        for _ in 0..2 {
            LogRecords::with_kept(&kept, None, &mut |again| assert_eq!(format!("{again:?}"), format!("{row:?}")));
            LogRecords::with_kept(&kept, Some(9), &mut |again| assert_eq!(again.time_ns, 9));
            kept = LogRecords::keep(&row, Some(kept));
        }
        let large = LogRecord { payload: &[0; 2000], ..row };
        LogRecords::with_kept(&LogRecords::keep(&large, None), None, &mut |cut| assert_eq!(cut.payload.len(), 256));
    }
}
