//! The owners of entries at the time of an event, and from an entry's first event to its last.
use std::collections::HashMap;
use std::rc::Rc;

use record::rows::{Conntrack, NatEventKind};
use record::{Accounting, Owner};

use crate::events::start_times::key;

/// Most entries whose owners are kept, some 40 bytes each; the destroy events of further ones have no owner.
const MAX: usize = 1 << 20;

/// Why an event has no owner: the socket is looked up after the event, and may be closed by then.
const UNKNOWN: &str = "have no owner: the socket had gone when it was looked for, nobody listens there, or the entry \
                       began before we did";

/// The answer to the question who owns an entry.
#[derive(Debug, Clone)]
pub enum OwnerAnswer {
    /// Neither end of the entry is on this host.
    NotHere,
    /// An end is on this host, and no process holds its socket now.
    Unknown,
    /// The processes that hold the socket; never empty.
    Found(Rc<[Owner]>),
}

/// Finds the processes at the local end of an entry.
pub trait FindOwners {
    /// Finds the processes that hold the socket at the local end of an entry that existed at `happened_ns` (nanoseconds
    /// since 1970). May block, to look up many entries at once: events wait in their buffers meanwhile.
    fn find(&mut self, entry: &Conntrack<'_>, happened_ns: u64) -> OwnerAnswer;

    /// True if an end of the entry is on this host, as far as the last lookup says. Reads nothing.
    fn is_here(&self, entry: &Conntrack<'_>) -> bool;

    /// Reports what could not be read. Called once, at the end.
    fn close(&mut self) -> Accounting;
}

/// Keeps the owners of entries from their new event to their destroy event.
pub(crate) struct OwnerTracker<'h> {
    find: Box<dyn FindOwners + 'h>,
    /// True if destroy events are shown: then the owners of new entries are kept for them.
    remembers: bool,
    known: HashMap<u64, Rc<[Owner]>>,
    /// Events of entries with an end on this host.
    here: u64,
    /// Those of them without an owner.
    unknown: u64,
    unremembered: u64,
}

impl<'h> OwnerTracker<'h> {
    pub(crate) fn new(find: Box<dyn FindOwners + 'h>, remembers: bool) -> OwnerTracker<'h> {
        OwnerTracker { find, remembers, known: HashMap::new(), here: 0, unknown: 0, unremembered: 0 }
    }

    /// The owners to show with an event.
    pub(crate) fn of(&mut self, what: NatEventKind, entry: &Conntrack<'_>, happened_ns: u64) -> Option<Rc<[Owner]>> {
        if what == NatEventKind::Destroy {
            // The socket is closed or serves another connection by now: only kept owners are true.
            let known = self.known.remove(&key(entry));
            self.here += u64::from(known.is_some() || self.find.is_here(entry));
            self.unknown += u64::from(known.is_none() && self.find.is_here(entry));
            return known;
        }
        if let (true, Some(known)) = (what != NatEventKind::New, self.known.get(&key(entry))) {
            self.here += 1;
            return Some(Rc::clone(known));
        }
        match self.find.find(entry, happened_ns) {
            OwnerAnswer::Found(owners) => {
                self.here += 1;
                self.remember(entry, &owners);
                Some(owners)
            }
            OwnerAnswer::Unknown => {
                self.here += 1;
                self.unknown += 1;
                None
            }
            OwnerAnswer::NotHere => None,
        }
    }

    fn remember(&mut self, entry: &Conntrack<'_>, owners: &Rc<[Owner]>) {
        if !self.remembers {
            return;
        }
        if self.known.len() >= MAX {
            self.unremembered += 1;
            return;
        }
        self.known.insert(key(entry), Rc::clone(owners));
    }

    /// Adds the counts of events without an owner, and what could not be read, to `stats`.
    pub(crate) fn close(&mut self, stats: &mut Accounting) {
        stats.add(&self.find.close());
        if self.unknown > 0 {
            stats.add_reason(0, format!("{} of {} events with an end here {UNKNOWN}", self.unknown, self.here));
        }
        if self.unremembered > 0 {
            stats.incomplete = true;
            stats.add_reason(self.unremembered, "entries beyond the first 1048576 have no owner when they end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::CtTuple;

    /// Knows the entry with this source port for as often as this; others are not here.
    struct Knows(u16, u32);

    impl FindOwners for Knows {
        fn find(&mut self, entry: &Conntrack<'_>, _: u64) -> OwnerAnswer {
            if !self.is_here(entry) {
                return OwnerAnswer::NotHere;
            }
            let Some(left) = self.1.checked_sub(1) else { return OwnerAnswer::Unknown };
            self.1 = left;
            OwnerAnswer::Found([Owner { pid: 7, fd: 3, process: record::Comm::new(b"x") }].into())
        }

        fn is_here(&self, entry: &Conntrack<'_>) -> bool {
            entry.orig.src_part == self.0
        }

        fn close(&mut self) -> Accounting {
            Accounting::default()
        }
    }

    fn entry(port: u16) -> Conntrack<'static> {
        Conntrack { id: Some(port.into()), orig: CtTuple { src_part: port, ..CtTuple::EMPTY }, ..Conntrack::EMPTY }
    }

    #[test]
    fn what_was_known_at_the_beginning_is_shown_at_the_end() {
        let mut whose = OwnerTracker::new(Box::new(Knows(9, 1)), true);
        let mut pid = |what, port| whose.of(what, &entry(port), 0).map(|owners| owners[0].pid);
        assert_eq!(pid(NatEventKind::New, 9), Some(7));
        assert_eq!(pid(NatEventKind::Update, 9), Some(7), "without looking again");
        assert_eq!(pid(NatEventKind::Destroy, 9), Some(7));
        assert_eq!([pid(NatEventKind::Destroy, 9), pid(NatEventKind::New, 9)], [None; 2]);
        assert_eq!([pid(NatEventKind::New, 8), pid(NatEventKind::Destroy, 8)], [None; 2]);
        let mut stats = Accounting::default();
        whose.close(&mut stats);
        let says = stats.why.iter().any(|why| why.text.starts_with("2 of 5 events with an end here have no owner"));
        assert!(says, "forwarded ones are not counted: {stats:?}");
        assert!(!stats.incomplete && whose.known.is_empty());
    }

    #[test]
    fn nothing_is_remembered_for_ends_that_nobody_tells_of() {
        let mut whose = OwnerTracker::new(Box::new(Knows(9, 5)), false);
        assert!(whose.of(NatEventKind::New, &entry(9), 0).is_some());
        assert!(whose.known.is_empty());
    }
}
