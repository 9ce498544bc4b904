//! The entry of connection tracking that each packet belongs to, for packets that rules log and for captured ones.
//!
//! The connections of a batch of packets are asked for together, before the first of them is handed out
//! (docs/adr/0024): `known` decides which entry is a packet's, `asking` asks the kernel, `remote` has another process
//! ask it, `wanted` bounds the questions, `restarts` keeps ports apart that get another connection within a batch.
//!
//! Start reading at [`EntryLookups`].

mod asking;
mod known;
mod remote;
mod restarts;
mod wanted;

pub(crate) use asking::{AnswersHeader, Asking, Questions};
pub(crate) use remote::{RemoteAnswers, answer_all, receive, send};

use crate::session::Session;
use conntrack::EntryQueries;
use known::{KnownEntries, Match};
use packet::packet_tuple;
use record::Accounting;
use record::rows::{CtTuple, EntrySource, PacketEntry, PacketHeaders, PacketState};
use restarts::Restarts;
use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::Hash;
use std::rc::Rc;
use sys::Blocks;

/// Namespaces that are asked in; those beyond have no entries, which is said.
const NETNS_MAX: usize = 1024;

/// A tuple in its network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NetnsTuple {
    pub(crate) netns_id: u64,
    pub(crate) tuple: CtTuple,
}

/// What the entry of a packet is found by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenPacket {
    of: NetnsTuple,
    /// True if it is an ICMP error about the connection.
    is_error: bool,
    /// When it came, ns since 1970.
    time_ns: u64,
    /// Packets of one path come in their order: a log group, an interface.
    path: u32,
    /// True if its ports may be another connection's from now on.
    begins_anew: bool,
}

impl SeenPacket {
    /// `None` for a packet that no entry can be found by.
    pub(crate) fn of(netns_id: u64, packet: &PacketHeaders<'_>, time_ns: u64, path: u32) -> Option<SeenPacket> {
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

/// Packets whose entry is not told, by reason.
#[derive(Default)]
struct UnknownCounts {
    /// No entry has the packet's tuple.
    missing: u64,
    /// Two entries have it.
    several: u64,
    /// The entry is younger than the packet.
    reused: u64,
    /// The packet was looked at too long after it came.
    late: u64,
    /// Too many connections at once.
    left_out: u64,
    /// Nothing can be asked.
    unasked: u64,
    trouble: Option<String>,
}

/// Sentences about packets without their entry, in the words of a command.
pub(crate) struct UnknownWords {
    /// Before the reason why nothing can be looked up.
    pub(crate) unknown: &'static str,
    /// Where nothing is amiss.
    pub(crate) missing: &'static str,
    pub(crate) several: &'static str,
    pub(crate) reused: &'static str,
    pub(crate) late: &'static str,
    pub(crate) left_out: &'static str,
}

/// Looks up the entries of packets, a batch at a time.
pub(crate) struct EntryLookups<'s> {
    questions: Rc<RefCell<Questions>>,
    /// `None` if nothing can be asked.
    answers: RefCell<Option<Box<dyn Blocks + 's>>>,
    known: RefCell<KnownEntries>,
    restarts: RefCell<Restarts>,
    counts: RefCell<UnknownCounts>,
}

impl<'s> EntryLookups<'s> {
    /// `answers` answers `questions`, a block for each batch; `trouble` is why not all of it can be asked.
    pub(crate) fn new(
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

    /// Notes a packet of the next batch, whose connection is asked for unless it is known. True if it is known: then
    /// the packet need not wait for the others. `now_ns`: since 1970. Connections that cannot all be asked for are
    /// shared equally between `sharer`s.
    pub(crate) fn note(&self, packet: &SeenPacket, now_ns: u64, sharer: &impl Hash) -> bool {
        self.restarts.borrow_mut().note(packet);
        let is_known = self.known.borrow_mut().knows(&packet.of, now_ns, packet.begins_anew);
        if !is_known {
            self.questions.borrow_mut().wanted.add(packet.of, sharer);
        }
        is_known
    }

    /// Asks for what was noted: the batch is handed out next. `None` if nothing can be asked.
    pub(crate) fn ask(&self) -> Option<AnswersHeader> {
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

    /// The entry of a packet that was noted.
    pub(crate) fn find(&self, packet: &SeenPacket) -> Option<PacketEntry<'static>> {
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
            Match::None if self.answers.borrow().is_none() => counts.unasked += 1,
            Match::None if self.questions.borrow().left_out.contains(&packet.of) => counts.left_out += 1,
            Match::None => counts.missing += 1,
            Match::Several => counts.several += 1,
            Match::Reused => counts.reused += 1,
            Match::Late => counts.late += 1,
        }
        None
    }

    /// The session knows of other namespaces than before: from now on it is these that are asked.
    pub(crate) fn find_namespaces(&self, session: &Session) {
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
            session.in_namespace(namespace.inode, &mut || match EntryQueries::open(namespace.inode) {
                Ok(queries) => opened.push(queries),
                Err(error) => _ = trouble.get_or_insert_with(|| error.to_string()),
            });
        }
        *namespaces = Some((opened, alive));
    }

    /// Says of how many packets the entry is not told, and why.
    pub(crate) fn tell(&self, words: &UnknownWords, stats: &mut Accounting) {
        let counts = self.counts.borrow();
        let trouble = self.questions.borrow().trouble.clone().or_else(|| counts.trouble.clone());
        if let Some(error) = trouble {
            stats.incomplete = true;
            stats.add_reason(counts.unasked.max(1), format!("{}: {error}", words.unknown));
        }
        for (count, text) in [
            (counts.missing, words.missing),
            (counts.several, words.several),
            (counts.reused, words.reused),
            (counts.late, words.late),
            (counts.left_out, words.left_out),
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

/// A socket in each namespace that is read.
pub(crate) fn open_queries(session: &Session, trouble: &mut Option<String>) -> Vec<EntryQueries> {
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
