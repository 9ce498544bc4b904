//! Lookups: values that the row does not contain but that are found by a key from the row.

use crate::{Addr, Owner, Value};

/// A key that a row provides for a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// The row has no key; the cell is null.
    None,
    /// An inode, a uid, a cgroup id, a namespace.
    Id(u64),
    /// Two numbers, for example network namespace inode and interface index.
    Pair(u64, u32),
    /// The process that had this pid at a moment of CLOCK_BOOTTIME, in ns. A process that started later is a different
    /// one.
    Process {
        /// Its pid.
        pid: u32,
        /// The moment when it was seen.
        seen_ns: u64,
    },
    /// An address.
    Addr(Addr),
}

/// Identifies a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum LookupId {
    /// Socket inode → the processes that hold it.
    Owners = 0,
    /// uid → user name.
    Users,
    /// (netns, interface index) → interface name.
    Ifaces,
    /// cgroup v2 id → path.
    Cgroups,
    /// Network namespace inode → name.
    Netns,
    /// Address → host name.
    Hosts,
    /// pid → command line.
    Cmdlines,
    /// pid, or (cgroup v2 id, 0) → name of the container.
    Containers,
    /// pid, or (cgroup v2 id, 0) → Kubernetes pod.
    Pods,
    /// pid, or (cgroup v2 id, 0) → systemd unit.
    Units,
    /// pid → the process's pid in its own pid namespace.
    ContainerPids,
    /// pid → security context (SELinux, AppArmor).
    Contexts,
    /// (netns, local port) → whether the kernel may have chosen the port; id 0 → false, id 1 → true.
    LocalPorts,
    /// (socket cookie, statistic) → how late a packet socket announced packets while that was being measured.
    PacketDelays,
}

impl LookupId {
    /// The number of lookups.
    pub const COUNT: usize = Self::ALL.len();

    /// Every lookup, in the order of their discriminants.
    pub const ALL: [LookupId; 14] = [
        LookupId::Owners,
        LookupId::Users,
        LookupId::Ifaces,
        LookupId::Cgroups,
        LookupId::Netns,
        LookupId::Hosts,
        LookupId::Cmdlines,
        LookupId::Containers,
        LookupId::Pods,
        LookupId::Units,
        LookupId::ContainerPids,
        LookupId::Contexts,
        LookupId::LocalPorts,
        LookupId::PacketDelays,
    ];
}

/// The answers of one lookup. They are loaded before the pass and bounded in number. An implementation reads the
/// kernel while a row waits only for the few rows that a screen shows.
pub trait Lookup {
    /// The single value under `key`, or null.
    fn value(&self, key: Key) -> Value<'_>;

    /// The owners under `key`; empty for every lookup except [`LookupId::Owners`].
    fn owners(&self, _key: Key) -> &[Owner] {
        &[]
    }
}

/// The lookups of a run; a missing lookup returns null.
#[derive(Clone, Copy, Default)]
pub struct Lookups<'l> {
    slots: [Option<&'l dyn Lookup>; LookupId::COUNT],
}

impl<'l> Lookups<'l> {
    /// Returns an empty set of lookups.
    pub fn empty() -> Lookups<'l> {
        Lookups::default()
    }

    /// Returns this set with `lookup` under `id`.
    pub fn with_lookup(mut self, id: LookupId, lookup: &'l dyn Lookup) -> Lookups<'l> {
        self.slots[id as usize] = Some(lookup);
        self
    }

    /// True if there is a lookup under `id`.
    pub fn contains(&self, id: LookupId) -> bool {
        self.slots[id as usize].is_some()
    }

    /// The lookup under `id`, if there is one.
    pub fn get(&self, id: LookupId) -> Option<&'l dyn Lookup> {
        self.slots[id as usize]
    }

    /// The value under `key` in lookup `id`; null if the lookup or the key is missing.
    pub fn value(&self, id: LookupId, key: Key) -> Value<'l> {
        match (self.slots[id as usize], key) {
            (_, Key::None) | (None, _) => Value::Null,
            (Some(lookup), key) => lookup.value(key),
        }
    }

    /// The owners under `key`; empty if unknown.
    pub fn owners(&self, key: Key) -> &'l [Owner] {
        match (self.slots[LookupId::Owners as usize], key) {
            (_, Key::None) | (None, _) => &[],
            (Some(lookup), key) => lookup.owners(key),
        }
    }
}
