//! Owners of entries while events arrive.
//!
//! A reading of all sockets and their owners answers for every event that happened before it. A later event waits
//! until the next reading may begin, and all events that arrive until then wait with it in the buffers of the stream.
//! So readings cost a bounded part of the time, and no event is looked up in a reading older than itself, in which its
//! port may belong to another process. A socket that was closed in between has no owner; such events are counted.

use crate::attribution::Attribution;
use crate::socket_index::{SocketIndex, has_socket};
use record::rows::Conntrack;
use record::{Accounting, Key, Lookup, Owner};
use std::collections::HashMap;
use std::rc::Rc;

/// Minimum interval between readings for entries that only pass through this host: an address may be new.
const ADDRESSES_NS: u64 = 1_000_000_000;

/// Reads sockets and their owners.
pub trait ReadOwners {
    /// Socket inode → owners.
    type Owners: Lookup;

    /// Takes a reading, possibly after a wait, because readings may use only a bounded part of the time. `None` if it
    /// failed, and no further one is possible.
    fn read(&mut self) -> Option<Reading<Self::Owners>>;

    /// True if a reading taken now would be later than `time_ns` (nanoseconds since 1970).
    fn has_passed(&self, time_ns: u64) -> bool;

    /// Reports reading errors. Called once, at the end.
    fn close(&mut self) -> Accounting;
}

/// A reading of all sockets and their owners.
pub struct Reading<L> {
    /// Its start, ns since 1970: it contains every socket that existed then and still exists.
    pub taken_ns: u64,
    /// True if no other reading follows, because the run is ending.
    pub is_last: bool,
    /// The sockets.
    pub sockets: SocketIndex,
    /// Their owners; `None` if they could not be read.
    pub owners: Option<L>,
    /// When the owners were read, in ns of CLOCK_BOOTTIME: a process that started later is not among them, even with
    /// the same pid.
    pub seen_ns: u64,
}

/// The owners of a socket, as a reading saw them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeenOwners {
    /// Never empty.
    pub(crate) owners: Rc<[Owner]>,
    /// [`Reading::seen_ns`]
    pub(crate) seen_ns: u64,
}

/// The newest reading; takes the next one when an event requires it.
pub(crate) struct Readings<R: ReadOwners> {
    reader: R,
    now: Option<Reading<R::Owners>>,
    /// Start of the reading before `now`; 0 without one.
    before_ns: u64,
    /// Owners that were looked up since the newest reading.
    shared: HashMap<u32, Rc<[Owner]>>,
    /// True if no more readings will be taken: the run is ending, or the recording has no more.
    is_last: bool,
}

impl<R: ReadOwners> Readings<R> {
    /// Creates an empty state without reading anything.
    pub(crate) fn new(reader: R) -> Readings<R> {
        Readings { reader, now: None, before_ns: 0, shared: HashMap::new(), is_last: false }
    }

    /// Finds the owners of the socket at an end of an entry that existed at `happened_ns` (nanoseconds since 1970),
    /// seen at the interface `ifindex` (0: unknown). May block, so that many entries are looked up at once: events
    /// wait in their buffers until then. The answer is final, never [`Attribution::NotYet`].
    pub(crate) fn find(&mut self, entry: &Conntrack<'_>, ifindex: u32, happened_ns: u64) -> Attribution<SeenOwners> {
        if !has_socket(entry) {
            return Attribution::NotHere;
        }
        self.wait_for(|readings| readings.answer(entry, ifindex, happened_ns))
    }

    /// Finds the owners of the socket with this inode, which existed at `happened_ns`. May block as [`Readings::find`]
    /// does.
    pub(crate) fn find_socket(&mut self, inode: u32, happened_ns: u64) -> Attribution<SeenOwners> {
        self.wait_for(|readings| readings.answer_for_socket(inode, happened_ns))
    }

    /// Takes readings until the answer is final. In a replay, several readings may have been taken between two events
    /// that are shown now.
    fn wait_for(&mut self, answer: impl Fn(&mut Readings<R>) -> Attribution<SeenOwners>) -> Attribution<SeenOwners> {
        loop {
            match answer(self) {
                Attribution::NotYet => self.read(),
                found => return found,
            }
        }
    }

    /// True if an end of the entry is on this host, according to the newest reading. Does not take a reading.
    pub(crate) fn is_here(&self, entry: &Conntrack<'_>) -> bool {
        has_socket(entry) && self.now.as_ref().is_some_and(|now| now.sockets.is_here(entry))
    }

    /// Reports reading errors.
    pub(crate) fn close(&mut self) -> Accounting {
        self.reader.close()
    }

    /// True if an event at this time needs a reading that is at least `pause_ns` later than the newest one.
    fn is_old(&self, now: &Reading<R::Owners>, happened_ns: u64, pause_ns: u64) -> bool {
        let is_younger = happened_ns >= now.taken_ns.saturating_add(pause_ns);
        // After the clock was set back, no reading would ever be late enough.
        is_younger && !self.is_last && self.reader.has_passed(happened_ns)
    }

    /// The answer if the newest reading contains no owner. A reading can miss a file that is opened or moved while it
    /// is taken: only a socket without an owner in two readings after the event really has no owner.
    fn without_owner(&self, now: &Reading<R::Owners>, happened_ns: u64) -> Attribution<SeenOwners> {
        let is_sure = self.before_ns > happened_ns || now.taken_ns <= happened_ns || self.is_last;
        if is_sure { Attribution::Unknown } else { Attribution::NotYet }
    }

    /// Start of the newest reading.
    #[cfg(test)]
    pub(crate) fn taken_ns(&self) -> u64 {
        self.now.as_ref().map_or(0, |now| now.taken_ns)
    }

    fn read(&mut self) {
        let Some(reading) = self.reader.read() else {
            self.is_last = true;
            return;
        };
        self.is_last = reading.is_last;
        self.before_ns = self.now.as_ref().map_or(0, |before| before.taken_ns);
        self.shared.clear();
        self.now = Some(reading);
    }

    fn answer(&mut self, entry: &Conntrack<'_>, ifindex: u32, happened_ns: u64) -> Attribution<SeenOwners> {
        let Some(now) = &self.now else { return if self.is_last { Attribution::NotHere } else { Attribution::NotYet } };
        let is_here = now.sockets.is_here(entry);
        if self.is_old(now, happened_ns, if is_here { 0 } else { ADDRESSES_NS }) {
            return Attribution::NotYet;
        }
        let without = if is_here { self.without_owner(now, happened_ns) } else { Attribution::NotHere };
        let inode = now.sockets.inode(entry, ifindex);
        inode.and_then(|inode| self.of_inode(inode)).map_or(without, Attribution::Found)
    }

    fn answer_for_socket(&mut self, inode: u32, happened_ns: u64) -> Attribution<SeenOwners> {
        let Some(now) = &self.now else { return if self.is_last { Attribution::Unknown } else { Attribution::NotYet } };
        if self.is_old(now, happened_ns, 0) {
            return Attribution::NotYet;
        }
        let without = self.without_owner(now, happened_ns);
        self.of_inode(inode).map_or(without, Attribution::Found)
    }

    /// The owners of a socket, according to the newest reading.
    fn of_inode(&mut self, inode: u32) -> Option<SeenOwners> {
        let now = self.now.as_ref()?;
        let seen = |owners| SeenOwners { owners, seen_ns: now.seen_ns };
        if let Some(known) = self.shared.get(&inode) {
            return Some(seen(Rc::clone(known)));
        }
        let owners = now.owners.as_ref()?.owners(Key::Id(inode.into()));
        let owners: Rc<[Owner]> = Some(owners).filter(|owners| !owners.is_empty())?.into();
        self.shared.insert(inode, Rc::clone(&owners));
        Some(seen(owners))
    }
}
