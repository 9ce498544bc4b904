//! The entry of connection tracking that each logged packet belongs to: a stream over the stream of records, which puts
//! the entry into the row before filter and columns see it. Only for runs that show entries, or filter by them.
//!
//! Where the kernel sends entries with records, they are decoded. Elsewhere the connections of a batch of records are
//! asked for together, before the first of them is handed out (docs/adr/0024).

mod asking;
mod known;
mod restarts;
mod wanted;

use crate::messages::say;
use crate::session::Session;
use asking::{Asking, Questions};
use conntrack::{CtDecoder, EntryQueries};
use known::{KnownEntries, Match};
use nflog::Preview;
use packet::packet_tuple;
use record::rows::{
    Conntrack, CtAttrs, CtDirection, CtTuple, EntrySource, LogRecord, LogRecords, LoggedEntry, PacketState, log_need,
};
use record::{Accounting, Addr, Demand, Each, Offer, SourceError, Stream, StreamState};
use restarts::Restarts;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use sys::{Blocks, clock};
use wanted::LookupBudget;

/// Namespaces that are asked in; those beyond have no entries, which is said.
const NETNS_MAX: usize = 1024;

/// A tuple in its network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct NetnsTuple {
    netns_id: u64,
    tuple: CtTuple,
}

/// The entries that are known. Shared by the stream and by what looks at its records first.
pub(super) struct Entries<'s> {
    /// True if the kernel sends entries with records; in a replay, if it did.
    are_sent: Cell<bool>,
    questions: Rc<RefCell<Questions>>,
    /// `None` if nothing can be asked.
    answers: RefCell<Option<Box<dyn Blocks + 's>>>,
    known: RefCell<KnownEntries>,
    restarts: RefCell<Restarts>,
    counts: RefCell<UnknownCounts>,
}

/// Records whose entry is not told, by reason.
#[derive(Default)]
struct UnknownCounts {
    /// No entry has the packet's tuple.
    missing: u64,
    /// Two entries have it.
    several: u64,
    /// The entry is younger than the packet.
    reused: u64,
    /// The record was looked at too long after the packet.
    late: u64,
    /// Too many connections at once.
    left_out: u64,
    /// The kernel sent what made no sense.
    malformed: u64,
    trouble: Option<String>,
}

impl<'s> Entries<'s> {
    /// Gets ready to ask, if the demand asks for entries.
    pub(super) fn open(session: &'s Session, demand: &Demand<LogRecords>) -> Option<Entries<'s>> {
        if demand.need & log_need::ENTRY == 0 {
            return None;
        }
        let questions = Rc::new(RefCell::new(Questions::default()));
        let (mut counts, mut are_sent) = (UnknownCounts::default(), false);
        let asked = Rc::clone(&questions);
        let trouble = &mut counts.trouble;
        let answers = session.host().stream(&format!("log entries/{}", session.netns_id()), "", || {
            are_sent = nflog::sends_entries()?;
            let queries = if are_sent { Vec::new() } else { open_queries(session, trouble) };
            asked.borrow_mut().asked = queries.iter().map(EntryQueries::netns_id).collect();
            let budget = LookupBudget::new(clock::monotonic_ns());
            Ok(Box::new(Asking { questions: asked, queries, budget, block: Vec::new(), are_sent }))
        });
        let answers = answers.map_err(|error| _ = counts.trouble.get_or_insert(error.to_string())).ok();
        if let Some(error) = counts.trouble.as_ref().filter(|_| !session.host().is_replay()) {
            // A service is read while it runs.
            say(&format!("{UNKNOWN}: {error}"));
        }
        Some(Entries {
            are_sent: are_sent.into(),
            questions,
            answers: answers.into(),
            known: RefCell::default(),
            restarts: RefCell::default(),
            counts: counts.into(),
        })
    }

    /// The session knows of other namespaces than before: from now on it is these that are asked.
    pub(super) fn find_namespaces(&self, session: &Session) {
        let (Some(found), false) = (session.namespaces(), self.are_sent()) else { return };
        let mut questions = self.questions.borrow_mut();
        let Questions { asked, namespaces, trouble, .. } = &mut *questions;
        let alive: HashSet<u64> = found.list().iter().map(|namespace| namespace.inode).collect();
        asked.retain(|inode| alive.contains(inode));
        let mut opened = namespaces.take().map_or_else(Vec::new, |(opened, _)| opened);
        opened.retain(|queries| alive.contains(&queries.netns_id()));
        for namespace in found.list() {
            let is_known = asked.contains(&namespace.inode);
            if is_known || opened.iter().any(|queries| queries.netns_id() == namespace.inode) {
                continue;
            }
            if asked.len() + opened.len() < NETNS_MAX {
                session.in_namespace(namespace.inode, &mut || match EntryQueries::open(namespace.inode) {
                    Ok(queries) => opened.push(queries),
                    Err(error) => _ = trouble.get_or_insert_with(|| error.to_string()),
                });
            }
        }
        *namespaces = Some((opened, alive));
    }

    /// True if the kernel sends entries with records.
    pub(super) fn are_sent(&self) -> bool {
        self.are_sent.get()
    }

    /// The entry of `record`.
    fn find(&self, record: &LogRecord<'_>) -> Option<LoggedEntry<'static>> {
        if let Some(sent) = &record.ct_attrs {
            return self.decoded(record, sent);
        }
        let packet = record.packet.as_ref().and_then(packet_tuple)?;
        let of = NetnsTuple { netns_id: record.netns_id, tuple: packet.tuple };
        let mut counts = self.counts.borrow_mut();
        if self.are_sent() {
            counts.missing += 1;
            return None;
        }
        if self.restarts.borrow_mut().is_before(&of, record) {
            counts.reused += 1;
            return None;
        }
        match self.known.borrow().find(&of, record) {
            Match::Found { entry, direction } => {
                let by_status = |status| PacketState::of_entry(status, direction);
                let state = if packet.is_error { Some(PacketState::Related) } else { entry.status.map(by_status) };
                return Some(LoggedEntry { entry: *entry, direction, state, source: EntrySource::Lookup });
            }
            Match::None if self.questions.borrow().left_out.contains(&of) => counts.left_out += 1,
            Match::None => counts.missing += 1,
            Match::Several => counts.several += 1,
            Match::Reused => counts.reused += 1,
            Match::Late => counts.late += 1,
        }
        None
    }

    /// The entry that the kernel sent with the record.
    fn decoded(&self, record: &LogRecord<'_>, sent: &CtAttrs<'_>) -> Option<LoggedEntry<'static>> {
        let (direction, state) = (CtDirection::of_info(sent.info), PacketState::of_info(sent.info));
        let family = record.packet.map_or(0, |packet| if matches!(packet.src, Addr::V6(_)) { 10 } else { 2 });
        let mut decoder = CtDecoder::new(record.netns_id);
        let entry = decoder.decode_attrs(family, sent.attrs).map(|entry: Conntrack<'_>| entry.without_borrowed());
        match entry {
            Ok(entry) => Some(LoggedEntry { entry, direction, state, source: EntrySource::Packet }),
            Err(_) => {
                self.counts.borrow_mut().malformed += 1;
                None
            }
        }
    }

    /// Says of how many records the entry is not told, and why.
    fn tell(&self, stats: &mut Accounting) {
        let counts = self.counts.borrow();
        let trouble = self.questions.borrow().trouble.clone().or_else(|| counts.trouble.clone());
        if let Some(error) = trouble {
            stats.incomplete = true;
            stats.add_reason(1, format!("{UNKNOWN}: {error}"));
        }
        for (count, text) in [
            (counts.missing, MISSING),
            (counts.several, "records whose packet belongs to one of two connections: neither is shown"),
            (counts.reused, "records without their connection: its ports are another one's by now"),
            (counts.late, "records without their connection: it was looked for more than 10 s after the packet"),
            (counts.left_out, "records without their connection: at most 50,000 connections a second are looked up"),
            (counts.malformed, "records with an entry of connection tracking that makes no sense"),
        ] {
            if count > 0 {
                stats.add_reason(count, text);
            }
        }
        let unanswered = self.known.borrow().unanswered();
        if unanswered > 0 {
            stats.incomplete = true;
            stats.add_reason(unanswered, "questions for connections had no answer: the netlink buffer was full");
        }
    }
}

/// Before the reason.
const UNKNOWN: &str = "connections of log records cannot be looked up";
/// Why there is nothing, where nothing is amiss.
const MISSING: &str = "records of packets without an entry of connection tracking: not confirmed (a first packet that \
                       a rule dropped), invalid, untracked, gone; or not found: another zone than 0, a packet on its \
                       way between two rewritten ends";

/// A socket in each namespace that is read.
fn open_queries(session: &Session, trouble: &mut Option<String>) -> Vec<EntryQueries> {
    let mut queries = Vec::new();
    session.in_each_namespace(&mut |netns_id| {
        if queries.len() >= NETNS_MAX {
            trouble.get_or_insert_with(|| format!("more than {NETNS_MAX} network namespaces"));
            return;
        }
        match EntryQueries::open(netns_id) {
            Ok(opened) => queries.push(opened),
            Err(error) => _ = trouble.get_or_insert_with(|| error.to_string()),
        }
    });
    queries
}

impl Preview for Entries<'_> {
    fn record(&self, record: &LogRecord<'_>) {
        if self.are_sent() || record.ct_attrs.is_some() {
            return;
        }
        let Some(packet) = record.packet.as_ref().and_then(packet_tuple) else { return };
        let of = NetnsTuple { netns_id: record.netns_id, tuple: packet.tuple };
        self.restarts.borrow_mut().note(&of, record);
        if !self.known.borrow_mut().knows(&of, record.received_ns, restarts::begins_anew(record)) {
            self.questions.borrow_mut().wanted.add(record, of);
        }
    }

    fn end(&self) {
        self.restarts.borrow_mut().end_batch();
        let mut answers = self.answers.borrow_mut();
        let Some(blocks) = &mut *answers else { return };
        match blocks.next() {
            Ok(Some(block)) => {
                let header = self.known.borrow_mut().learn(block);
                self.are_sent.set(header.are_sent);
            }
            Ok(None) => {}
            Err(error) => {
                self.counts.borrow_mut().trouble.get_or_insert(error.to_string());
                *answers = None;
            }
        }
    }
}

/// Records with their entries.
pub(super) struct EntryRecords<'s, 'r> {
    records: &'r mut dyn Stream<LogRecords>,
    entries: &'r Entries<'s>,
}

impl<'s, 'r> EntryRecords<'s, 'r> {
    /// Records of `records` with the entries of `entries`, which has seen them first.
    pub(super) fn new(records: &'r mut dyn Stream<LogRecords>, entries: &'r Entries<'s>) -> EntryRecords<'s, 'r> {
        EntryRecords { records, entries }
    }
}

impl Stream<LogRecords> for EntryRecords<'_, '_> {
    fn offer(&self, demand: &Demand<LogRecords>) -> Offer {
        let mut offer = self.records.offer(demand);
        let how = if self.entries.are_sent() { "sent with each record" } else { "asked for after their packets" };
        offer.explain.push(format!("entries of connection tracking by netlink: {how}"));
        offer
    }

    fn next(
        &mut self,
        demand: &Demand<LogRecords>,
        each: &mut Each<'_, LogRecords>,
    ) -> Result<StreamState, SourceError> {
        let entries = self.entries;
        self.records.next(demand, &mut |record| {
            let entry = entries.find(record);
            each(&LogRecord { entry: entry.as_ref(), ..*record })
        })
    }

    fn close(&mut self) -> Accounting {
        let mut stats = self.records.close();
        self.entries.tell(&mut stats);
        stats
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conntrack::uapi::cta;
    use netlink::Request;
    use proptest::prelude::*;
    use record::rows::{CtStatus, PacketHeaders, ip_proto};

    /// As a kernel that sends entries with records has it.
    fn sent() -> Entries<'static> {
        Entries {
            are_sent: true.into(),
            questions: Rc::default(),
            answers: None.into(),
            known: RefCell::default(),
            restarts: RefCell::default(),
            counts: RefCell::default(),
        }
    }

    /// What `__ctnetlink_glue_build` (net/netfilter/nf_conntrack_netlink.c) puts into NFULA_CT of a connection to a
    /// published address: tuples, zone, id, status, timeout, mark. Made by hand: the kernel here sends none.
    fn attrs() -> Vec<u8> {
        let tuple = |src: (u8, u16), dst: (u8, u16)| CtTuple {
            src: Addr::V4([10, 0, 0, src.0]),
            dst: Addr::V4([10, 0, 0, dst.0]),
            proto: ip_proto::TCP,
            src_part: src.1,
            dst_part: dst.1,
            zone: None,
        };
        let mut request = Request::one(0);
        conntrack::put_tuple(&mut request, cta::TUPLE_ORIG, &tuple((1, 4000), (2, 8080)));
        conntrack::put_tuple(&mut request, cta::TUPLE_REPLY, &tuple((9, 80), (1, 4000)));
        request.attr(cta::ZONE, &[0, 7]).attr(cta::ID, &[1, 2, 3, 4]).attr(cta::STATUS, &0x1a2u32.to_be_bytes());
        request.attr(cta::TIMEOUT, &[0, 0, 0, 60]).attr(cta::MARK, &[0, 0, 0, 42]);
        request.bytes().unwrap()[16..].to_vec()
    }

    fn record(attrs: &[u8], info: u32) -> LogRecord<'_> {
        let packet = Some(PacketHeaders { proto: 50, ..PacketHeaders::default() });
        LogRecord { packet, ct_attrs: Some(CtAttrs { attrs, info }), netns_id: 5, ..LogRecord::default() }
    }

    #[test]
    fn an_entry_that_came_with_a_record_is_shown() {
        let (entries, attrs) = (sent(), attrs());
        let found = entries.find(&record(&attrs, 4)).unwrap();
        let told = (found.direction, found.state, found.source);
        assert_eq!(told, (CtDirection::Reply, Some(PacketState::Related), EntrySource::Packet));
        let Conntrack { netns_id, family, status, mark, zone, id, orig, reply, .. } = found.entry;
        assert_eq!((netns_id, family, mark, zone, id), (5, 2, Some(42), Some(7), Some(0x0102_0304)));
        assert_eq!((orig.dst_part, reply.src_part, status), (8080, 80, Some(CtStatus(0x1a2))));
        assert_eq!(found.entry.nat().unwrap().name(), "dnat");
    }

    /// Where the kernel sends entries, a record without one is not looked up: its packet has none.
    #[test]
    fn what_did_not_come_is_counted() {
        let (entries, attrs) = (sent(), attrs());
        assert_eq!(entries.find(&record(&attrs[..attrs.len() - 4], 2)), None);
        assert_eq!(entries.find(&LogRecord { ct_attrs: None, ..record(&[], 0) }), None);
        let mut stats = Accounting::default();
        entries.tell(&mut stats);
        let said: Vec<_> = stats.why.iter().map(|why| (why.count, why.text.split(':').next().unwrap())).collect();
        let expected = [
            "records of packets without an entry of connection tracking",
            "records with an entry of connection tracking that makes no sense",
        ];
        assert_eq!(said, expected.map(|text| (1, text)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(attrs in prop::collection::vec(any::<u8>(), 0..200), info: u32) {
            let _ = sent().find(&record(&attrs, info));
            known::KnownEntries::default().learn(&attrs);
        }
    }
}
