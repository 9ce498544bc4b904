//! Adds the conntrack entry of each logged packet, before filter and columns see the row. Only for runs that show
//! entries or filter by them.
//!
//! If the kernel sends entries with records, they are decoded. Otherwise they are looked up (docs/adr/0024).

use super::{Asking, EntryLookups, Questions, SeenPacket, UnknownWords, open_queries};
use crate::session::Session;
use conntrack::CtDecoder;
use nflog::Preview;
use record::rows::{
    Conntrack, CtAttrs, CtDirection, EntrySource, LogRecord, LogRecords, PacketEntry, PacketState, log_need,
};
use record::{Accounting, Addr, Annotate, Demand, Each, Misses, Next, Offer};
use runtime::messages::print_message;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The conntrack entries of log records. Shared by the stream and by the preview of its records.
pub struct RecordEntries<'s> {
    /// True if the kernel sends entries with records; in a replay, if it did so then.
    are_sent: Cell<bool>,
    lookups: EntryLookups<'s>,
    misses: Misses<NoEntry>,
}

record::reasons! {
    /// Why records have no entry, if the kernel sends entries.
    enum NoEntry {
        Missing = Note(WORDS.missing),
        Malformed = Note("records with a malformed conntrack entry"),
    }
}

impl<'s> RecordEntries<'s> {
    /// Prepares queries, if the demand includes entries.
    pub fn open(session: &'s Session, demand: &Demand<LogRecords>) -> Option<RecordEntries<'s>> {
        if demand.need & log_need::ENTRY == 0 {
            return None;
        }
        let questions = Rc::new(RefCell::new(Questions::default()));
        let (mut trouble, mut are_sent) = (None, false);
        let asked = Rc::clone(&questions);
        let answers = session.host().stream(&format!("log entries/{}", session.netns_id()), "", || {
            are_sent = nflog::sends_entries()?;
            let queries = if are_sent { Vec::new() } else { open_queries(session, &mut trouble) };
            Ok(Box::new(Asking::new(asked, queries, are_sent)))
        });
        let answers = answers.map_err(|error| _ = trouble.get_or_insert(error.to_string())).ok();
        if let Some(error) = trouble.as_ref().filter(|_| !session.host().is_replay()) {
            // Reported at once, because users read a service's messages while it runs.
            print_message(&format!("{}: {error}", WORDS.unknown));
        }
        let lookups = EntryLookups::new(questions, answers, trouble);
        Some(RecordEntries { are_sent: are_sent.into(), lookups, misses: Misses::default() })
    }

    /// Switches to the session's current namespaces, if they have changed.
    pub fn update_namespaces(&self, session: &Session) {
        if !self.are_sent() {
            self.lookups.update_namespaces(session);
        }
    }

    /// True if the kernel sends entries with records.
    pub fn are_sent(&self) -> bool {
        self.are_sent.get()
    }

    /// The entry for `record`.
    fn find(&self, record: &LogRecord<'_>) -> Option<PacketEntry<'static>> {
        if let Some(sent) = &record.ct_attrs {
            return self.decoded(record, sent);
        }
        let packet = seen(record)?;
        if self.are_sent() {
            self.misses.add(NoEntry::Missing, 1);
            return None;
        }
        self.lookups.find(&packet)
    }

    /// The entry that the kernel sent with the record.
    fn decoded(&self, record: &LogRecord<'_>, sent: &CtAttrs<'_>) -> Option<PacketEntry<'static>> {
        let (direction, state) = (CtDirection::of_info(sent.info), PacketState::of_info(sent.info));
        let family = record.packet.map_or(0, |packet| if matches!(packet.src, Addr::V6(_)) { 10 } else { 2 });
        let mut decoder = CtDecoder::new(record.netns_id);
        let entry = decoder.decode_attrs(family, sent.attrs).map(|entry: Conntrack<'_>| entry.without_borrowed());
        match entry {
            Ok(entry) => Some(PacketEntry { entry, direction, state, source: EntrySource::Packet }),
            Err(_) => {
                self.misses.add(NoEntry::Malformed, 1);
                None
            }
        }
    }

    /// Reports the number of records without an entry, and the reasons.
    fn tell(&self, stats: &mut Accounting) {
        self.misses.report(stats);
        self.lookups.tell(&WORDS, stats);
    }
}

fn seen(record: &LogRecord<'_>) -> Option<SeenPacket> {
    SeenPacket::of(record.netns_id, record.packet.as_ref()?, record.time_ns, record.group.into())
}

/// Messages about records without their entry.
const WORDS: UnknownWords = UnknownWords {
    unknown: "connections of log records cannot be looked up",
    missing: "records of packets without a conntrack entry: not confirmed (the first packet was dropped by a rule), \
              invalid, untracked or removed; or not found: in another zone than 0, or captured between two address \
              translations",
    several: "records whose packet matches two connections: neither is shown",
    reused: "records without their connection: another connection uses its ports by now",
    without: "records without their connection",
};

impl Preview for RecordEntries<'_> {
    fn record(&self, record: &LogRecord<'_>) {
        if self.are_sent() || record.ct_attrs.is_some() {
            return;
        }
        if let Some(packet) = seen(record) {
            let sharer = (record.netns_id, record.group, record.prefix);
            self.lookups.note(&packet, record.received_ns, &sharer);
        }
    }

    fn end(&self) {
        if let Some(header) = self.lookups.ask() {
            self.are_sent.set(header.are_sent);
        }
    }
}

/// Adds the entry to each record. The entries have previewed the records.
impl Annotate<LogRecords> for &RecordEntries<'_> {
    fn explain(&self, offer: &mut Offer) {
        let how = if self.are_sent() { "sent with each record" } else { "looked up after the packet" };
        offer.explain.push(format!("conntrack entries via netlink: {how}"));
    }

    fn row(&mut self, record: &LogRecord<'_>, each: &mut Each<'_, LogRecords>) -> Next {
        let entry = self.find(record);
        each(&LogRecord { entry: entry.as_ref(), ..*record })
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.tell(stats);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conntrack::uapi::cta;
    use netlink::Request;
    use proptest::prelude::*;
    use record::rows::{CtStatus, CtTuple, PacketHeaders, ip_proto};

    /// Entries as from a kernel that sends them with records.
    fn sent() -> RecordEntries<'static> {
        let lookups = EntryLookups::new(Rc::default(), None, None);
        RecordEntries { are_sent: true.into(), lookups, misses: Misses::default() }
    }

    /// The bytes that `__ctnetlink_glue_build` (net/netfilter/nf_conntrack_netlink.c) puts into NFULA_CT for a
    /// connection to a published address: tuples, zone, id, status, timeout, mark. Made by hand, because the kernel
    /// used for tests sends none.
    fn attrs() -> Vec<u8> {
        let tuple = |src: (u8, u16), dst: (u8, u16)| CtTuple {
            src: Addr::V4([10, 0, 0, src.0]),
            dst: Addr::V4([10, 0, 0, dst.0]),
            proto: ip_proto::TCP,
            src_part: src.1,
            dst_part: dst.1,
            zone: None,
        };
        let mut request = Request::for_one(0);
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

    /// If the kernel sends entries, a record without one is not looked up, because its packet has no entry.
    #[test]
    fn what_did_not_come_is_counted() {
        let (entries, attrs) = (sent(), attrs());
        assert_eq!(entries.find(&record(&attrs[..attrs.len() - 4], 2)), None);
        assert_eq!(entries.find(&LogRecord { ct_attrs: None, ..record(&[], 0) }), None);
        let mut stats = Accounting::default();
        entries.tell(&mut stats);
        let said: Vec<_> = stats.why.iter().map(|why| (why.count, why.text.split(':').next().unwrap())).collect();
        let expected = ["records of packets without a conntrack entry", "records with a malformed conntrack entry"];
        assert_eq!(said, expected.map(|text| (1, text)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(attrs in prop::collection::vec(any::<u8>(), 0..200), info: u32) {
            let _ = sent().find(&record(&attrs, info));
        }
    }
}
