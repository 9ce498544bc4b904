//! Entries received from the kernel, and the assignment of packets to them.

use super::asking::{AnswersHeader, each_entry, plain};
use super::{NetnsTuple, SeenPacket};
use foldhash::fast::RandomState;
use record::rows::{Conntrack, CtDirection, CtState, CtStatus, CtTuple};
use std::collections::HashMap;

/// An entry with a reply is not queried again for this time, unless the packet begins a connection. Such an entry has
/// a longer timeout, and ports are rarely reused so soon.
const KNOWN_NS: u64 = 250_000_000;
/// An entry without a reply is not queried again for this time by packets in the original direction, if the protocol
/// has no states. A reply changes the displayed values, and most often its packets also arrive here.
const UNANSWERED_NS: u64 = 20_000_000;
/// Maximum number of entries kept this way; further ones are queried in each batch.
///
/// Bound: connections that a capture or log remembers. Beyond: further connections are looked up again. By: any sender
/// of packets.
const KNOWN_MAX: usize = 16_384;
/// The kernel records an entry's start when its first packet has passed all rules, which is at most this long after
/// its arrival.
const CONFIRMED_NS: u64 = 10_000_000;
/// An entry without a start time is attributed to packets up to this much older than the answer. It is the shortest
/// timeout after which the kernel reuses the ports of a closed connection (`nf_conntrack_tcp_timeout_close`).
pub(super) const LATE_NS: u64 = 10_000_000_000;

/// Uses a fast hash with a per-run seed, because each packet causes several lookups.
type KnownTable = HashMap<NetnsTuple, KnownEntry, RandomState>;

/// Entries by both of their tuples.
#[derive(Default)]
pub(super) struct KnownEntries {
    entries: KnownTable,
    /// Entries with NAT on both ends, by the tuple of packets after one translation. It is not a tuple of the entry,
    /// so the kernel cannot be queried by it.
    between: KnownTable,
    /// Number of questions without an answer.
    unanswered: u64,
    /// Time of the newest answer, and of the last removal of old entries, in ns since 1970.
    newest_ns: u64,
    swept_ns: u64,
}

#[derive(Clone, Copy)]
struct KnownEntry {
    entry: Conntrack<'static>,
    /// Time of the kernel's answer, in ns since 1970.
    told_ns: u64,
}

/// The entry that a packet belongs to.
pub(super) enum Match<'k> {
    /// The packet has no known entry.
    None,
    /// The packet's entry and direction.
    Found { entry: &'k Conntrack<'static>, direction: CtDirection },
    /// One of two entries.
    Several,
    /// Only an entry that began after the packet.
    Reused,
    /// The answer came too long after the packet to be certain.
    Late,
}

impl KnownEntries {
    /// True if the connection need not be queried; otherwise forgets its known entries. `begins_anew`: the packet may
    /// begin a new connection with these ports.
    pub(super) fn knows(&mut self, of: &NetnsTuple, now_ns: u64, begins_anew: bool) -> bool {
        let known = self.of_packet(of);
        let mut all = known.iter().flatten();
        let is_fresh = all.clone().next().is_some() && all.all(|known| known.is_fresh(now_ns, of));
        if is_fresh && !begins_anew {
            return true;
        }
        let tuples = known.map(|known| known.map(|known| known.tuples()));
        tuples.iter().flatten().flatten().for_each(|tuple| _ = self.entries.remove(tuple));
        false
    }

    /// Stores the kernel's answers for the connections of a batch, and removes old ones.
    pub(super) fn learn(&mut self, block: &[u8]) -> AnswersHeader {
        let mut now_ns = self.newest_ns;
        each_entry(block, &mut |_, told_ns| now_ns = now_ns.max(told_ns));
        self.newest_ns = now_ns;
        // This visits all entries, so it is not done in each batch.
        let is_due = now_ns.saturating_sub(self.swept_ns) >= KNOWN_NS / 8;
        for known in [&mut self.entries, &mut self.between] {
            if is_due {
                self.swept_ns = now_ns;
                known.retain(|_, known| now_ns.saturating_sub(known.told_ns) < known.lasts_ns());
            }
            if known.len() > 2 * KNOWN_MAX {
                known.clear();
            }
        }
        each_entry(block, &mut |entry, told_ns| {
            let known = KnownEntry { entry: entry.without_borrowed(), told_ns };
            for tuple in known.tuples() {
                self.entries.insert(tuple, known);
            }
            let between = between(entry);
            for tuple in between.iter().chain(&between.and_then(|tuple| tuple.reply_tuple())) {
                self.between.insert(NetnsTuple { netns_id: entry.netns_id, tuple: *tuple }, known);
            }
        });
        let header = AnswersHeader::parse(block);
        self.unanswered += header.unanswered;
        header
    }

    /// Number of questions without an answer so far.
    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered
    }

    /// Finds the entry of a packet.
    pub(super) fn find(&self, packet: &SeenPacket) -> Match<'_> {
        let of = &packet.of;
        let known = match self.of_packet(of) {
            [Some(one), Some(other)] if one.entry.orig != other.entry.orig => return Match::Several,
            [Some(known), _] | [_, Some(known)] => known,
            [None, None] => return Match::None,
        };
        // The packet may also be between the two translations of another connection.
        if self.between.get(of).is_some_and(|other| other.entry.orig != known.entry.orig) {
            return Match::Several;
        }
        match known.entry.start_ns {
            Some(start_ns) if start_ns > packet.time_ns.saturating_add(CONFIRMED_NS) => return Match::Reused,
            None if known.told_ns > packet.time_ns.saturating_add(LATE_NS) => return Match::Late,
            _ => {}
        }
        let is_original = known.is_original(of);
        let direction = if is_original { CtDirection::Original } else { CtDirection::Reply };
        Match::Found { entry: &known.entry, direction }
    }

    /// The entries for the packet's tuple, and for its inverse.
    fn of_packet(&self, of: &NetnsTuple) -> [Option<&KnownEntry>; 2] {
        let inverse = of.tuple.reply_tuple().map(|tuple| NetnsTuple { tuple, ..*of });
        [self.entries.get(of), inverse.and_then(|inverse| self.entries.get(&inverse))]
    }
}

/// The tuple of a packet of an entry with NAT on both ends, after the destination was translated and before the
/// source.
fn between(entry: &Conntrack<'_>) -> Option<CtTuple> {
    let (orig, reply) = (plain(entry.orig), plain(entry.reply));
    let tuple = CtTuple { dst: reply.src, dst_part: reply.src_part, ..orig };
    (orig.has_ports() && tuple != orig && tuple.reply_tuple() != Some(reply)).then_some(tuple)
}

impl KnownEntry {
    /// True if the entry has seen a reply, and a TCP connection is established: its displayed values rarely change
    /// after that.
    fn is_settled(&self) -> bool {
        const ESTABLISHED: u8 = 3;
        let is_open = !matches!(self.entry.state, Some(CtState::Tcp(state)) if state != ESTABLISHED);
        is_open && self.entry.status.is_some_and(|status| status.contains(CtStatus::SEEN_REPLY))
    }

    /// True if packets with the tuple need not be queried again.
    fn is_fresh(&self, now_ns: u64, of: &NetnsTuple) -> bool {
        let is_answer = || !self.is_settled() && !self.is_original(of);
        now_ns.saturating_sub(self.told_ns) < self.lasts_ns() && !is_answer()
    }

    /// The time during which it is not queried again.
    fn lasts_ns(&self) -> u64 {
        match self.entry.state {
            _ if self.is_settled() => KNOWN_NS,
            None => UNANSWERED_NS,
            Some(_) => 0,
        }
    }

    /// True for packets in the original direction, before or after their addresses are translated.
    fn is_original(&self, of: &NetnsTuple) -> bool {
        let [orig, reply] = [self.entry.orig, self.entry.reply].map(plain);
        of.tuple == orig || of.tuple != reply && of.tuple.reply_tuple() == Some(reply)
    }

    /// The two tuples that it is stored under.
    fn tuples(&self) -> [NetnsTuple; 2] {
        let netns_id = self.entry.netns_id;
        [self.entry.orig, self.entry.reply].map(|tuple| NetnsTuple { netns_id, tuple: plain(tuple) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use netlink::Request;
    use netlink::datagrams::{BATCH_HEADER, BatchHeader, DatagramFrame, FRAME};
    use record::Addr;
    use record::rows::ip_proto;

    const S: u64 = 1_000_000_000;
    const SEEN_REPLY: u32 = CtStatus::SEEN_REPLY;

    fn tuple(src: (u8, u16), dst: (u8, u16)) -> CtTuple {
        let addr = |last| Addr::V4([10, 0, 0, last]);
        let (src_part, dst_part) = (src.1, dst.1);
        CtTuple { src: addr(src.0), dst: addr(dst.0), proto: ip_proto::UDP, src_part, dst_part, zone: None }
    }

    /// A block of answers received at `told_ns`, in namespace 1.
    fn answered_entry(told_ns: u64, entries: &[(CtTuple, CtTuple, u32, Option<u64>)]) -> Vec<u8> {
        let mut block = BatchHeader::default().bytes().to_vec();
        assert_eq!(block.len(), BATCH_HEADER);
        for (orig, reply, status, start_ns) in entries {
            let mut message = Request::for_one(0x100);
            message.append(&[2, 0, 0, 0]);
            conntrack::put_tuple(&mut message, conntrack::uapi::cta::TUPLE_ORIG, orig);
            conntrack::put_tuple(&mut message, conntrack::uapi::cta::TUPLE_REPLY, reply);
            message.attr(conntrack::uapi::cta::STATUS, &status.to_be_bytes());
            if let Some(start_ns) = start_ns {
                message.nested(conntrack::uapi::cta::TIMESTAMP, |inside| {
                    inside.attr(conntrack::uapi::timestamp::START, &start_ns.to_be_bytes());
                });
            }
            let (mut head, bytes) = ([0; FRAME], message.bytes().unwrap());
            DatagramFrame::put(&mut head, 1, told_ns, None, bytes.len());
            block.extend(head);
            block.extend(bytes);
        }
        block
    }

    fn find(known: &KnownEntries, tuple: CtTuple, time_ns: u64) -> Match<'_> {
        known.find(&seen(1, tuple, time_ns))
    }

    fn seen(netns_id: u64, tuple: CtTuple, time_ns: u64) -> SeenPacket {
        let of = NetnsTuple { netns_id, tuple };
        SeenPacket { of, is_error: false, time_ns, path: 0, begins_anew: false }
    }

    fn direction(of: Match<'_>) -> CtDirection {
        let Match::Found { direction, .. } = of else { panic!("no entry") };
        direction
    }

    /// Packets of a connection are assigned to it before and after NAT.
    #[test]
    fn each_of_four_tuples_has_its_direction() {
        let (client, published, backend, outside) = ((1, 4000), (2, 53), (9, 5353), (7, 1024));
        let plain = (tuple(client, published), tuple(published, client));
        let dnat = (tuple(client, published), tuple(backend, client));
        let snat = (tuple(client, published), tuple(published, outside));
        for ((orig, reply), after) in
            [(plain, plain.0), (dnat, tuple(client, backend)), (snat, tuple(outside, published))]
        {
            let mut known = KnownEntries::default();
            known.learn(&answered_entry(S, &[(orig, reply, SEEN_REPLY, None)]));
            for (packet, expected) in [
                (orig, CtDirection::Original),
                (after, CtDirection::Original),
                (reply, CtDirection::Reply),
                (orig.reply_tuple().unwrap(), CtDirection::Reply),
            ] {
                assert_eq!(direction(find(&known, packet, S)), expected, "{packet:?}");
            }
            assert!(matches!(find(&known, tuple(backend, outside), S), Match::None));
            assert!(matches!(known.find(&seen(2, orig, 0)), Match::None));
        }
    }

    /// A tuple that one connection has after destination NAT, and another one before it, is ambiguous.
    #[test]
    fn of_two_connections_none_is_shown() {
        let (client, published, backend) = ((1, 4000), (2, 53), (9, 53));
        let rewritten = (tuple(client, published), tuple(backend, client), SEEN_REPLY, None);
        let direct = (tuple(client, backend), tuple(backend, (1, 1024)), SEEN_REPLY, None);
        let mut known = KnownEntries::default();
        known.learn(&answered_entry(S, &[rewritten, direct]));
        assert!(matches!(find(&known, tuple(client, backend), S), Match::Several));
        assert_eq!(direction(find(&known, tuple(client, published), S)), CtDirection::Original);
    }

    /// The same ambiguity with NAT on both ends of the other connection, for a packet between the two translations.
    #[test]
    fn a_packet_between_two_ends_may_be_of_either() {
        let (client, published, backend) = ((1, 4000), (2, 8081), (9, 53));
        let both = (tuple(client, published), tuple(backend, (7, 49_855)), SEEN_REPLY, None);
        let direct = (tuple(client, backend), tuple(backend, client), SEEN_REPLY, None);
        let mut known = KnownEntries::default();
        known.learn(&answered_entry(S, &[direct]));
        assert_eq!(direction(find(&known, tuple(client, backend), S)), CtDirection::Original);
        known.learn(&answered_entry(S, &[both]));
        for packet in [tuple(client, backend), tuple(backend, client)] {
            assert!(matches!(find(&known, packet, S), Match::Several));
        }
        assert_eq!(direction(find(&known, tuple(client, published), S)), CtDirection::Original);
        assert_eq!(direction(find(&known, tuple((7, 49_855), backend), S)), CtDirection::Original);
        known.learn(&answered_entry(2 * S, &[direct]));
        assert_eq!(direction(find(&known, tuple(client, backend), 2 * S)), CtDirection::Original, "long after");
    }

    #[test]
    fn another_connection_with_the_ports_is_not_shown() {
        let (orig, reply) = (tuple((1, 1), (2, 2)), tuple((2, 2), (1, 1)));
        let mut known = KnownEntries::default();
        known.learn(&answered_entry(20 * S, &[(orig, reply, SEEN_REPLY, Some(5 * S))]));
        assert!(matches!(find(&known, orig, 4 * S), Match::Reused));
        assert!(matches!(find(&known, orig, 5 * S - CONFIRMED_NS / 2), Match::Found { .. }), "its first packet");
        assert!(matches!(find(&known, orig, 6 * S), Match::Found { .. }), "long ago, and it has a start");
        known.learn(&answered_entry(20 * S, &[(orig, reply, SEEN_REPLY, None)]));
        assert!(matches!(find(&known, orig, 9 * S), Match::Late));
        assert!(matches!(find(&known, orig, 11 * S), Match::Found { .. }));
    }

    /// An entry is queried again when it is old or may belong to another connection, and the old answer is forgotten.
    #[test]
    fn what_is_known_gets_old() {
        let (orig, reply) = (tuple((1, 1), (2, 2)), tuple((2, 2), (1, 1)));
        let of = NetnsTuple { netns_id: 1, tuple: reply };
        let mut known = KnownEntries::default();
        let answers = answered_entry(S, &[(orig, reply, SEEN_REPLY, None)]);
        assert!(!known.knows(&of, S, false));
        known.learn(&answers);
        assert!(known.knows(&of, S + KNOWN_NS - 1, false));
        assert!(!known.knows(&of, S + KNOWN_NS, false));
        assert!(matches!(find(&known, orig, S), Match::None), "the kernel may say that it is gone");
        known.learn(&answers);
        assert!(!known.knows(&of, S, true) && matches!(find(&known, orig, S), Match::None));
        known.learn(&answered_entry(S, &[(orig, reply, 0, None)]));
        let there = NetnsTuple { netns_id: 1, tuple: orig };
        assert!(known.knows(&there, S + UNANSWERED_NS - 1, false), "nothing is new");
        assert!(!known.knows(&of, S, false), "its first answer");
        assert!(matches!(find(&known, orig, S), Match::None), "what was known is old by it");
        known.learn(&answered_entry(S, &[(orig, reply, 0, None)]));
        assert!(!known.knows(&there, S + UNANSWERED_NS, false));
    }

    #[test]
    fn a_flood_of_entries_is_forgotten() {
        let mut known = KnownEntries::default();
        for n in 0..4u8 {
            let entries: Vec<_> = (0..KNOWN_MAX as u16)
                .map(|port| (tuple((n, port), (99, 2)), tuple((99, 2), (n, port)), SEEN_REPLY, None))
                .collect();
            known.learn(&answered_entry(S, &entries));
            assert!(known.entries.len() <= 4 * KNOWN_MAX, "{}", known.entries.len());
        }
    }
}
