//! Names of network interfaces for long runs, in which interfaces appear, disappear and are renamed.
//!
//! The kernel reports changes to a socket in each namespace that rows come from. Without such a socket, and in a
//! replay, an unknown index triggers another reading of the interfaces.

use crate::append_map::AppendMap;
use crate::session::Session;
use host::Ifaces;
use record::{Accounting, Key, Lookup, LookupId, Lookups, Value};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use sys::{LinkEvents, Share, clock};

/// Readings take at most one part in `SHARE_OF_TIME` of the time, and up to `CREDIT_NS_MAX` at once after a pause.
const SHARE_OF_TIME: u64 = 20;
const CREDIT_NS_MAX: u64 = 200_000_000;
/// Time between two checks for changes. Batches do not trigger checks, because a run may wait for a batch.
const LOOK_NS: u64 = 5_000_000;
/// In a flood, at most this many lookups share one reading of the clock.
const LOOKUPS_BETWEEN_MAX: u32 = 64;
/// An unknown index triggers another reading of the namespace's interfaces after this time.
const UNKNOWN_NS: u64 = 100_000_000;
/// A name that all namespaces share is looked up again after this time.
const COMMON_NS: u64 = 1_000_000_000;
/// The most namespaces whose changes the kernel reports; each takes a descriptor. Interfaces of further namespaces are
/// read again every [`COMMON_NS`].
///
/// Bound: namespaces whose changes of interfaces the kernel reports to a long run. Beyond: interfaces of further
/// namespaces are read once a second. By: a user who makes namespaces.
const WATCHED_MAX: usize = 1024;
/// The most names kept until the end of a batch of rows, including older names.
///
/// Bound: names of interfaces in a batch of rows. Beyond: further rows have no name; counted (exit code 3). By: anyone
/// who renames interfaces.
const NAMES_MAX: usize = 1 << 18;
/// Namespaces without rows, and names of removed interfaces, are forgotten after this time.
const UNUSED_NS: u64 = 60_000_000_000;

/// The current names of interfaces.
pub(crate) struct FollowedIfaces<'s> {
    session: &'s Session,
    /// Names from a recording.
    base: Lookups<'s>,
    names: AppendMap<(u64, u32), IfaceName>,
    netns: RefCell<HashMap<u64, FollowedNetns>>,
    share: Share,
    /// Lookups left until the clock is read, and lookups between its last two readings.
    until_clock: Cell<(u32, u32)>,
    looked_ns: Cell<u64>,
    /// Time of the last removal of unused namespaces and names.
    swept_ns: u64,
    /// Number of cells left empty because a reading was not possible.
    missing: Cell<u64>,
}

struct IfaceName {
    /// `None` if no reading found the index.
    text: Option<Box<[u8]>>,
    /// Time of the last reading that found it.
    read_ns: u64,
}

/// The interfaces of one namespace.
#[derive(Default)]
struct FollowedNetns {
    /// `None` if the kernel does not report changes.
    events: Option<LinkEvents>,
    names: HashMap<u32, IfaceName>,
    read_ns: u64,
    /// True if the interfaces have changed since the last reading.
    is_stale: bool,
    /// True if rows came from it since the last removal of unused namespaces.
    is_used: bool,
}

impl FollowedNetns {
    /// Takes over the names of a reading. Returns those that are new or have changed.
    fn update<'n>(&mut self, names: impl Iterator<Item = (u32, &'n [u8])>, now_ns: u64) -> Vec<(u32, &'n [u8])> {
        self.read_ns = now_ns;
        let mut changed = Vec::new();
        for (index, name) in names {
            let text = Some(name.into());
            let before = self.names.insert(index, IfaceName { text, read_ns: now_ns });
            if before.is_none_or(|before| before.text.as_deref() != Some(name)) {
                changed.push((index, name));
            }
        }
        changed
    }

    /// Forgets interfaces that were removed some time ago. Returns false if no row came from the namespace.
    fn sweep(&mut self, now_ns: u64) -> bool {
        let read_ns = self.read_ns;
        self.names.retain(|_, name| name.read_ns == read_ns || now_ns.saturating_sub(name.read_ns) < UNUSED_NS);
        std::mem::take(&mut self.is_used)
    }
}

impl<'s> FollowedIfaces<'s> {
    /// Creates the lookup. [`FollowedIfaces::begin`] reads the interfaces of the session's own namespace; other
    /// namespaces are read once rows come from there. `base` has the names of a recording.
    pub(crate) fn new(session: &'s Session, base: Lookups<'s>) -> FollowedIfaces<'s> {
        FollowedIfaces {
            session,
            base,
            names: AppendMap::new(NAMES_MAX),
            netns: RefCell::default(),
            share: Share::one_in(SHARE_OF_TIME, CREDIT_NS_MAX),
            until_clock: Cell::new((0, 1)),
            looked_ns: Cell::new(0),
            swept_ns: clock::monotonic_ns(),
            missing: Cell::new(0),
        }
    }

    /// Reads the interfaces of the session's own namespace, unless this is a replay.
    pub(crate) fn begin(&self) {
        if !self.session.host().is_replay() {
            self.read(self.session.netns_id(), clock::monotonic_ns());
        }
    }

    /// Starts another batch of rows. No row borrows from this lookup any more.
    pub(crate) fn renew(&mut self) {
        let now_ns = clock::monotonic_ns();
        if now_ns.saturating_sub(self.swept_ns) < UNUSED_NS {
            return self.names.renew();
        }
        self.swept_ns = now_ns;
        // The next row of each interface marks its namespace as used.
        self.names.clear();
        self.netns.get_mut().retain(|_, one| one.sweep(now_ns));
    }

    /// Reports cells that stayed empty.
    pub(crate) fn tell(&self, stats: &mut Accounting) {
        let (missing, share) = (self.missing.get(), 100 / SHARE_OF_TIME);
        if missing > 0 {
            let text = "columns without the names of new interfaces: reading names may take at most";
            stats.incomplete(missing, format!("{text} {share} % of the time"));
        }
    }

    /// Forgets namespaces with these inodes. They no longer exist, and a new namespace may reuse the inode number.
    pub(crate) fn forget_namespaces(&mut self, inodes: &[u64]) {
        if !inodes.is_empty() {
            self.netns.get_mut().retain(|netns_id, _| !inodes.contains(netns_id));
            self.names.clear();
        }
    }

    /// Checks for changes if enough time has passed. The faster lookups come, the fewer of them read the clock.
    fn look_if_due(&self, between: u32) {
        let now_ns = clock::monotonic_ns();
        let is_due = now_ns.saturating_sub(self.looked_ns.get()) >= LOOK_NS;
        let between = if is_due { 1 } else { (between * 2).min(LOOKUPS_BETWEEN_MAX) };
        self.until_clock.set((between - 1, between));
        if is_due {
            self.look(now_ns);
        }
    }

    /// Reads the interfaces of namespaces that have changed.
    fn look(&self, now_ns: u64) {
        self.looked_ns.set(now_ns);
        let mut netns = self.netns.borrow_mut();
        let is_live = !self.session.host().is_replay();
        let has_changed = |one: &mut FollowedNetns| match &mut one.events {
            Some(events) => std::mem::take(&mut one.is_stale) | events.receive_changes(),
            None => is_live && now_ns.saturating_sub(one.read_ns) >= COMMON_NS,
        };
        let changed: Vec<u64> = netns.iter_mut().filter_map(|(id, one)| has_changed(one).then_some(*id)).collect();
        drop(netns);
        for netns_id in changed {
            // A reading that the share does not allow is made later.
            if self.share.may_start(now_ns) {
                self.read(netns_id, now_ns);
                self.share.charge(clock::monotonic_ns().saturating_sub(now_ns));
            } else if let Some(one) = self.netns.borrow_mut().get_mut(&netns_id) {
                one.is_stale = true;
            }
        }
    }

    /// Reads the interfaces of a namespace. The kernel reports changes from just before the reading on.
    fn read(&self, netns_id: u64, now_ns: u64) {
        let mut netns = self.netns.borrow_mut();
        let watched = netns.values().filter(|one| one.events.is_some()).count();
        let one = netns.entry(netns_id).or_default();
        let host = self.session.host();
        let read = self.session.in_namespace(netns_id, || {
            if one.events.is_none() && !host.is_replay() && watched < WATCHED_MAX {
                one.events = LinkEvents::open().ok();
            }
            Ifaces::read(host, netns_id).ok()
        });
        match read.ok().flatten() {
            Some(ifaces) => {
                for (index, name) in one.update(ifaces.of(netns_id), now_ns) {
                    self.names.push((netns_id, index), IfaceName { text: Some(name.into()), read_ns: now_ns });
                }
            }
            None => one.read_ns = now_ns,
        }
    }

    /// Finds a name that is not among the newest ones.
    #[cold]
    fn find(&self, netns_id: u64, index: u32) -> Value<'_> {
        let key = (netns_id, index);
        let now_ns = clock::monotonic_ns();
        let (known, read_ns) = match self.netns.borrow_mut().get_mut(&netns_id) {
            Some(one) => {
                one.is_used = true;
                (one.names.get(&index).and_then(|name| name.text.clone()), Some(one.read_ns))
            }
            None => (None, None),
        };
        if let Some(text) = known {
            // The name is known, but the newest names were cleared.
            return self.push(key, Some(text), now_ns);
        }
        let is_due = read_ns.is_none_or(|read_ns| now_ns.saturating_sub(read_ns) >= UNKNOWN_NS);
        if index == 0 || !is_due {
            return Value::Null;
        }
        if !self.share.may_start(now_ns) {
            self.missing.set(self.missing.get() + 1);
            return Value::Null;
        }
        match netns_id {
            0 => {
                let text = Ifaces::of_host(self.session.host()).common_name(index).map(Box::from);
                self.push(key, text, now_ns);
            }
            _ => self.read(netns_id, now_ns),
        }
        self.share.charge(clock::monotonic_ns().saturating_sub(now_ns));
        text_of(self.names.newest(&key))
    }

    fn push(&self, key: (u64, u32), text: Option<Box<[u8]>>, read_ns: u64) -> Value<'_> {
        let name = self.names.push(key, IfaceName { text, read_ns });
        self.missing.set(self.missing.get() + u64::from(name.is_none()));
        text_of(name)
    }
}

fn text_of(name: Option<&IfaceName>) -> Value<'_> {
    Value::text(name.and_then(|name| name.text.as_deref()))
}

impl Lookup for FollowedIfaces<'_> {
    fn value(&self, key: Key) -> Value<'_> {
        let Key::Pair(netns_id, index) = key else { return Value::Null };
        let recorded = self.base.value(LookupId::Ifaces, key);
        if !recorded.is_null() {
            return recorded;
        }
        match self.until_clock.get() {
            (0, between) => self.look_if_due(between),
            (until, between) => self.until_clock.set((until - 1, between)),
        }
        match self.names.newest(&(netns_id, index)) {
            // The kernel does not report changes of names that all namespaces share.
            Some(name) if netns_id == 0 && clock::monotonic_ns().saturating_sub(name.read_ns) >= COMMON_NS => {
                self.find(netns_id, index)
            }
            name @ Some(_) => text_of(name),
            None => self.find(netns_id, index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_interfaces_and_unused_namespaces_are_forgotten() {
        let (mut netns, mut now_ns) = (FollowedNetns::default(), 1);
        for first in 1..1000 {
            // All interfaces are replaced by others; the number of the first grows without bound.
            let names = [(first, &b"eth0"[..]), (first + 1, b"eth1")];
            assert_eq!(netns.update(names.into_iter(), now_ns).len(), 2, "each number has another name");
            now_ns += UNUSED_NS / 10;
            netns.is_used = true;
            assert!(netns.sweep(now_ns) && netns.names.len() <= 12, "{}", netns.names.len());
        }
        assert!(!netns.sweep(now_ns), "no row since then");
    }
}
