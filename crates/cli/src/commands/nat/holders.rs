//! Who holds the sockets of entries, while entries come.
//!
//! A reading of all sockets and their owners answers for every event that happened before it. An event that is younger
//! waits until the next reading may begin, and all that come meanwhile wait with it in the buffers of whoever listens:
//! readings cost a bounded part of the time, and no event is looked up in one that is older than itself, where its port
//! may be another's. A socket that was closed in between has no owner; that is counted.

use super::owners::SocketIndex;
use crate::session::Session;
use conntrack::events::{FindOwners, OwnerAnswer};
use host::Owners;
use record::rows::{Conntrack, ip_proto};
use record::{Accounting, Owner};
use std::collections::HashMap;
use std::rc::Rc;

/// The shortest time between two readings.
const PAUSE_NS: u64 = 100_000_000;
/// The longest, for however many sockets: what comes meanwhile must find room.
const PAUSE_NS_MAX: u64 = 1_000_000_000;
/// A pause is so many times as long as the reading before.
const PAUSES: u64 = 3;
/// Entries that only pass through here ask for another reading after this time: an address may be new.
const ADDRESSES_NS: u64 = 1_000_000_000;
/// The moment of a reading on the tape.
const TAKEN: &str = "nat events/owners";

/// The sockets and their owners, read again when an event asks for it.
pub(super) struct HoldersNow<'s> {
    session: &'s Session,
    now: Option<Reading>,
    /// On the monotonic clock.
    not_before_ns: u64,
    /// No reading will come any more: the run ends, or the recording has no more.
    is_last: bool,
    stats: Accounting,
}

struct Reading {
    /// When it began, ns since 1970: sockets that were there then and still are, are in it.
    taken_ns: u64,
    /// The first is 1.
    number: u64,
    /// When the one before began; 0 if there is none.
    before_ns: u64,
    index: SocketIndex,
    owners: Option<Owners>,
    /// Owners that rows have asked for.
    shared: HashMap<u32, Rc<[Owner]>>,
}

impl<'s> HoldersNow<'s> {
    /// Reads nothing yet.
    pub(super) fn new(session: &'s Session) -> HoldersNow<'s> {
        HoldersNow { session, now: None, not_before_ns: 0, is_last: false, stats: Accounting::default() }
    }

    /// Whether an event of this time needs another reading.
    fn is_old(&self, entry: &Conntrack<'_>, happened_ns: u64) -> bool {
        let Some(now) = &self.now else { return true };
        let pause_ns = if now.index.is_here(entry) { 0 } else { ADDRESSES_NS };
        let is_younger = happened_ns >= now.taken_ns.saturating_add(pause_ns);
        // After the clock was put back nothing that is still to be told would ever be old enough.
        is_younger && (self.session.host().is_replay() || happened_ns <= sys::clock::wall_ns())
    }

    fn read(&mut self) {
        if !self.session.host().is_replay() && !self.session.sleep_until(self.not_before_ns) {
            // What is still on its way is answered by one reading.
            self.is_last = true;
        }
        let begun_ns = sys::clock::monotonic_ns();
        let Some((taken_ns, number)) = self.moment() else {
            self.is_last = true;
            return;
        };
        // Only the last reading's troubles are told: they are the same each time.
        self.stats = Accounting::default();
        self.session.find_namespaces(None, &mut self.stats);
        let index = SocketIndex::read(self.session, &mut self.stats);
        let owners = self.owners();
        let before_ns = self.now.as_ref().map_or(0, |before| before.taken_ns);
        self.now = Some(Reading { taken_ns, number, before_ns, index, owners, shared: HashMap::new() });
        let end_ns = sys::clock::monotonic_ns();
        let pause_ns = end_ns.saturating_sub(begun_ns).saturating_mul(PAUSES).clamp(PAUSE_NS, PAUSE_NS_MAX);
        self.not_before_ns = end_ns.saturating_add(pause_ns);
    }

    /// When this reading is taken, and its number; none where a recording has no further one.
    fn moment(&mut self) -> Option<(u64, u64)> {
        let before = self.now.as_ref().map_or(0, |now| now.number);
        let mut bytes = Vec::new();
        let read = self.session.host().bytes(TAKEN, "", &mut bytes, |into| {
            [sys::clock::wall_ns(), before.saturating_add(1)]
                .iter()
                .for_each(|number| into.extend_from_slice(&number.to_ne_bytes()));
            Ok(())
        });
        if let Err(error) = read {
            self.stats.incomplete = true;
            self.stats.add_reason(1, format!("owners are missing: {error}"));
            return None;
        }
        let (taken_ns, number) = bytes.split_first_chunk::<8>()?;
        let (taken_ns, number) = (u64::from_ne_bytes(*taken_ns), u64::from_ne_bytes(number.try_into().ok()?));
        // The tape gives its last one again and again.
        (number > before).then_some((taken_ns, number))
    }

    fn owners(&mut self) -> Option<Owners> {
        let stats = &mut self.stats;
        match self.session.owners().read(self.session.host()) {
            Ok(owners) => {
                let report = owners.report();
                stats.used(report.via());
                if report.is_partial() {
                    stats.incomplete = true;
                    report.lines().into_iter().for_each(|line| stats.add_reason(1, line));
                }
                Some(owners)
            }
            Err(error) => {
                stats.incomplete = true;
                stats.add_reason(1, error.to_string());
                None
            }
        }
    }
}

impl Reading {
    fn holders(&mut self, entry: &Conntrack<'_>) -> OwnerAnswer {
        let found = self.index.inode(entry).and_then(|inode| self.shared(inode));
        match found {
            Some(owners) => OwnerAnswer::Found(owners),
            None if self.index.is_here(entry) => OwnerAnswer::Unknown,
            None => OwnerAnswer::NotHere,
        }
    }

    fn shared(&mut self, inode: u32) -> Option<Rc<[Owner]>> {
        if let Some(known) = self.shared.get(&inode) {
            return Some(Rc::clone(known));
        }
        let owners = self.owners.as_ref()?.of(inode.into());
        if owners.is_empty() {
            return None;
        }
        let owners: Rc<[Owner]> = owners.into();
        self.shared.insert(inode, Rc::clone(&owners));
        Some(owners)
    }
}

impl FindOwners for HoldersNow<'_> {
    fn find(&mut self, entry: &Conntrack<'_>, happened_ns: u64) -> OwnerAnswer {
        if !matches!(entry.orig.proto, ip_proto::TCP | ip_proto::UDP) {
            return OwnerAnswer::NotHere;
        }
        // In a replay several readings may have been taken between two events that are shown now.
        while !self.is_last && self.is_old(entry, happened_ns) {
            self.read();
        }
        let Some(now) = &mut self.now else { return OwnerAnswer::NotHere };
        let found = now.holders(entry);
        // A file that is opened or moved meanwhile can escape a reading: nobody is only who two of them have not found.
        let is_sure =
            !matches!(found, OwnerAnswer::Unknown) || now.before_ns > happened_ns || now.taken_ns <= happened_ns;
        if is_sure || self.is_last {
            return found;
        }
        self.read();
        self.now.as_mut().map_or(found, |now| now.holders(entry))
    }

    fn is_here(&self, entry: &Conntrack<'_>) -> bool {
        let has_socket = matches!(entry.orig.proto, ip_proto::TCP | ip_proto::UDP);
        has_socket && self.now.as_ref().is_some_and(|now| now.index.is_here(entry))
    }

    fn close(&mut self) -> Accounting {
        std::mem::take(&mut self.stats)
    }
}
