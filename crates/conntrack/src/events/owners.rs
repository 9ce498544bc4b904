//! OwnerTracker an entry is, at the time of an event, and what was known of it when it began.
use std::collections::HashMap;
use std::rc::Rc;

use record::rows::{Conntrack, NatEventKind};
use record::{Accounting, Owner};

use crate::events::start_times::key;

/// Entries remembered at most, some 40 bytes each; the ends of later ones have no owner.
const MAX: usize = 1 << 20;

/// Why there is no owner: what is looked up after an event can have gone before.
const UNKNOWN: &str = "have no owner: the socket had gone when it was looked for, nobody listens there, or the entry \
                       began before we did";

/// What a search for the processes at an entry's local end came to.
#[derive(Debug, Clone)]
pub enum OwnerAnswer {
    /// Neither end is here.
    NotHere,
    /// An end is here, and nobody holds its socket now.
    Unknown,
    /// Who holds the socket; never empty.
    Found(Rc<[Owner]>),
}

/// Who knows the sockets.
pub trait FindOwners {
    /// Who holds the socket at the local end of an entry that was there at `happened_ns` (since 1970). It may wait to
    /// answer for many entries at once: what is heard meanwhile waits in its buffers.
    fn find(&mut self, entry: &Conntrack<'_>, happened_ns: u64) -> OwnerAnswer;

    /// Whether an end of the entry is here, as far as is known without looking.
    fn is_here(&self, entry: &Conntrack<'_>) -> bool;

    /// What could not be read. Called once, at the end.
    fn close(&mut self) -> Accounting;
}

/// The owners of entries, from their beginning to their end.
pub(crate) struct OwnerTracker<'h> {
    find: Box<dyn FindOwners + 'h>,
    /// Whether ends are told of, for which the beginnings are remembered.
    remembers: bool,
    known: HashMap<u64, Rc<[Owner]>>,
    /// Events of entries with an end here.
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
            // The socket has gone, or serves another connection by now: only what was known before is true.
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

    /// Adds what was not found.
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
