//! Assigns a conntrack entry to each packet, for logged and for captured packets.
//!
//! The connections of a batch of packets are queried together, before the first of them is handed out (docs/adr/0024):
//! `known` decides which entry belongs to a packet, `asking` queries the kernel, `remote` lets a helper process query
//! it, `wanted` limits the questions, `restarts` separates connections that reuse ports within a batch, and `packets`
//! and `records` add entries to captured packets and to log records.
//!
//! Start reading at [`EntryLookups`].

mod asking;
mod known;
mod packets;
mod records;
pub mod remote;
mod restarts;
mod wanted;

pub use asking::{AnswersHeader, Asking, Questions};
pub use packets::PacketEntries;
pub use records::RecordEntries;

use crate::session::Session;
use conntrack::EntryQueries;
use known::{KnownEntries, LATE_NS, Match};
use packet::packet_tuple;
use record::Accounting;
use record::rows::{CtTuple, EntrySource, PacketEntry, PacketHeaders, PacketState};
use restarts::Restarts;
use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::Hash;
use std::rc::Rc;
use sys::{Blocks, Errno};
use wanted::LOOKUPS_PER_S;

/// Maximum number of namespaces with a query socket; packets of others have no entries, which is reported.
///
/// Bound: namespaces in which connections are looked up, shared out like memory. Beyond: rows of further namespaces
/// have no connection; reported. By: a user who makes namespaces.
const NETNS_MAX: usize = 1024;

/// A tuple in its network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetnsTuple {
    /// The namespace's id.
    pub netns_id: u64,
    /// The packet's own direction.
    pub tuple: CtTuple,
}

/// The values that identify the entry of a packet.
#[derive(Debug, Clone, Copy)]
pub struct SeenPacket {
    of: NetnsTuple,
    /// True if it is an ICMP error about the connection.
    is_error: bool,
    /// Time of arrival, in ns since 1970.
    time_ns: u64,
    /// The path of the packet, a log group or an interface: packets of one path arrive in order.
    path: u32,
    /// True if its ports may belong to a new connection from now on.
    begins_anew: bool,
}

impl SeenPacket {
    /// `None` for a packet that cannot have an entry.
    pub fn of(netns_id: u64, packet: &PacketHeaders<'_>, time_ns: u64, path: u32) -> Option<SeenPacket> {
        let found = packet_tuple(packet)?;
        Some(SeenPacket {
            of: NetnsTuple { netns_id, tuple: found.tuple },
            is_error: found.is_error,
            time_ns,
            path,
            begins_anew: restarts::begins_anew(packet),
        })
    }
}

/// Number of packets without an entry, by reason.
#[derive(Default)]
struct UnknownCounts {
    /// The packet's tuple has no entry.
    missing: u64,
    /// Two entries match.
    several: u64,
    /// The entry began after the packet.
    reused: u64,
    /// The packet was processed too long after its arrival.
    late: u64,
    /// Too many connections were queried at once.
    left_out: u64,
    /// The kernel cannot be queried.
    unasked: u64,
    trouble: Option<String>,
}

/// Messages about packets without their entry, in the words of a command.
pub struct UnknownWords {
    /// The text before the reason why lookups are impossible.
    pub unknown: &'static str,
    /// The text for expected cases without an entry.
    pub missing: &'static str,
    /// The text for packets between two rewrites of one connection.
    pub several: &'static str,
    /// The text for entries that belong to a later connection.
    pub reused: &'static str,
    /// The text before the reason why a lookup was left out or came too late.
    pub without: &'static str,
}

/// Looks up the entries of packets, a batch at a time.
pub struct EntryLookups<'s> {
    questions: Rc<RefCell<Questions>>,
    /// `None` if no queries are possible.
    answers: RefCell<Option<Box<dyn Blocks + 's>>>,
    known: RefCell<KnownEntries>,
    restarts: RefCell<Restarts>,
    counts: RefCell<UnknownCounts>,
}

impl<'s> EntryLookups<'s> {
    /// `answers` answers `questions`, one block per batch; `trouble` is the reason why some queries are impossible.
    pub fn new(
        questions: Rc<RefCell<Questions>>,
        answers: Option<Box<dyn Blocks + 's>>,
        trouble: Option<String>,
    ) -> EntryLookups<'s> {
        let counts = UnknownCounts { trouble, ..UnknownCounts::default() };
        EntryLookups {
            questions,
            answers: answers.into(),
            known: RefCell::default(),
            restarts: RefCell::default(),
            counts: counts.into(),
        }
    }

    /// Notes a packet of the next batch, and requests its connection unless it is known. Returns true if it is known;
    /// the packet then need not wait for the others. `now_ns` is since 1970. If not all connections can be queried,
    /// the capacity is shared equally between the values of `sharer`.
    pub fn note(&self, packet: &SeenPacket, now_ns: u64, sharer: &impl Hash) -> bool {
        self.restarts.borrow_mut().note(packet);
        let is_known = self.known.borrow_mut().knows(&packet.of, now_ns, packet.begins_anew);
        if !is_known {
            self.questions.borrow_mut().wanted.add(packet.of, sharer);
        }
        is_known
    }

    /// Queries the noted connections, before the batch is handed out. `None` if no queries are possible.
    pub fn ask(&self) -> Option<AnswersHeader> {
        self.restarts.borrow_mut().end_batch();
        let mut answers = self.answers.borrow_mut();
        match answers.as_mut()?.next() {
            Ok(block) => block.map(|block| self.known.borrow_mut().learn(block)),
            Err(error) => {
                self.counts.borrow_mut().trouble.get_or_insert(error.to_string());
                *answers = None;
                None
            }
        }
    }

    /// Finds the entry of a noted packet.
    pub fn find(&self, packet: &SeenPacket) -> Option<PacketEntry<'static>> {
        let mut counts = self.counts.borrow_mut();
        if self.restarts.borrow_mut().is_before(packet) {
            counts.reused += 1;
            return None;
        }
        match self.known.borrow().find(packet) {
            Match::Found { entry, direction } => {
                let by_status = |status| PacketState::of_entry(status, direction);
                let state = if packet.is_error { Some(PacketState::Related) } else { entry.status.map(by_status) };
                return Some(PacketEntry { entry: *entry, direction, state, source: EntrySource::Lookup });
            }
            Match::None if self.answers.borrow().is_none() || self.questions.borrow().has_failed => counts.unasked += 1,
            Match::None if self.questions.borrow().left_out.contains(&packet.of) => counts.left_out += 1,
            Match::None => counts.missing += 1,
            Match::Several => counts.several += 1,
            Match::Reused => counts.reused += 1,
            Match::Late => counts.late += 1,
        }
        None
    }

    /// Switches to the session's current namespaces, if they have changed.
    pub fn update_namespaces(&self, session: &Session) {
        let Some(found) = session.namespaces() else { return };
        let mut questions = self.questions.borrow_mut();
        let Questions { asked, namespaces, trouble, .. } = &mut *questions;
        let alive: HashSet<u64> = found.list().iter().map(|namespace| namespace.inode).collect();
        let chosen = found.choose(NETNS_MAX, session.netns_id());
        asked.retain(|inode| chosen.contains(inode));
        let mut opened = namespaces.take().map_or_else(Vec::new, |(opened, _)| opened);
        opened.retain(|queries| chosen.contains(&queries.netns_id()));
        for namespace in found.list().iter().filter(|namespace| chosen.contains(&namespace.inode)) {
            let is_known = asked.contains(&namespace.inode);
            if is_known || opened.iter().any(|queries| queries.netns_id() == namespace.inode) {
                continue;
            }
            match session.in_namespace(namespace.inode, || EntryQueries::open(namespace.inode)) {
                Ok(Ok(queries)) => opened.push(queries),
                // It was removed, and its packets with it.
                Err(error) if error.errno == Errno::NOENT => {}
                Ok(Err(error)) | Err(error) => _ = trouble.get_or_insert_with(|| error.to_string()),
            }
        }
        *namespaces = Some((opened, alive));
    }

    /// Reports the number of packets without an entry, and the reasons.
    pub fn tell(&self, words: &UnknownWords, stats: &mut Accounting) {
        let counts = self.counts.borrow();
        let trouble = self.questions.borrow().trouble.clone().or_else(|| counts.trouble.clone());
        if let Some(error) = trouble {
            stats.incomplete(counts.unasked.max(1), format!("{}: {error}", words.unknown));
        }
        let without = words.without;
        let late = || format!("{without}: looked up more than {} s after the packet", LATE_NS / 1_000_000_000);
        let left_out = || format!("{without}: at most {LOOKUPS_PER_S} connections are looked up per second");
        let reasons: [(u64, &dyn Fn() -> String); 5] = [
            (counts.missing, &|| words.missing.to_owned()),
            (counts.several, &|| words.several.to_owned()),
            (counts.reused, &|| words.reused.to_owned()),
            (counts.late, &late),
            (counts.left_out, &left_out),
        ];
        for (count, text) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            stats.add_reason(count, text());
        }
        let unanswered = self.known.borrow().unanswered();
        if unanswered > 0 {
            stats.incomplete(unanswered, "conntrack lookups without an answer: the netlink buffer was full");
        }
    }
}

/// Opens a query socket in each namespace of the session.
pub fn open_queries(session: &Session, trouble: &mut Option<String>) -> Vec<EntryQueries> {
    let mut queries = Vec::new();
    let chosen = session.namespaces().map(|all| all.choose(NETNS_MAX, session.netns_id()));
    session.in_each_namespace(&mut |netns_id| {
        if chosen.as_ref().is_some_and(|chosen| !chosen.contains(&netns_id)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_answers_are_survived(block in prop::collection::vec(any::<u8>(), 0..200)) {
            KnownEntries::default().learn(&block);
        }
    }
}
