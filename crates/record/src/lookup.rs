//! Enrichment: values that do not stand in the row but are found by a key from it.

use crate::{Addr, Owner, Value};

/// What a row offers to look something up by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// Nothing to look up; the cell is null.
    None,
    /// An inode, a uid, a cgroup id, a namespace.
    Id(u64),
    /// Two numbers: network namespace inode and interface index, say.
    Pair(u64, u32),
    /// The process that had this number at a moment of CLOCK_BOOTTIME, in ns: who starts later is another.
    Process {
        /// Its number.
        pid: u32,
        /// When it was seen.
        seen_ns: u64,
    },
    /// An address.
    Addr(Addr),
}

/// The lookups there are.
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
    /// The same → Kubernetes pod.
    Pods,
    /// The same → systemd unit.
    Units,
    /// pid → the process's number in its own pid namespace.
    ContainerPids,
    /// pid → security context (SELinux, AppArmor).
    Contexts,
    /// (netns, local port) → whether the kernel may have chosen it; 0 and 1 → that word itself.
    LocalPorts,
    /// (socket's cookie, figure) → how late a packet socket announced packets while that was measured.
    PacketDelays,
}

impl LookupId {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// All of them.
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

/// Answers of one kind. Filled before the pass, bounded; reads the kernel while a row waits only for the few rows that
/// a screen shows.
pub trait Lookup {
    /// The single value under `key`, or null.
    fn value(&self, key: Key) -> Value<'_>;

    /// The owners under `key`; empty for every lookup but [`LookupId::Owners`].
    fn owners(&self, _key: Key) -> &[Owner] {
        &[]
    }
}

/// All lookups of a run; an absent one answers null.
#[derive(Clone, Copy, Default)]
pub struct Lookups<'l> {
    slots: [Option<&'l dyn Lookup>; LookupId::COUNT],
}

impl<'l> Lookups<'l> {
    /// No lookup at all.
    pub fn none() -> Lookups<'l> {
        Lookups::default()
    }

    /// The same with `lookup` under `id`.
    pub fn with(mut self, id: LookupId, lookup: &'l dyn Lookup) -> Lookups<'l> {
        self.slots[id as usize] = Some(lookup);
        self
    }

    /// True if there is a lookup under `id`.
    pub fn has(&self, id: LookupId) -> bool {
        self.slots[id as usize].is_some()
    }

    /// The lookup under `id`, if there is one.
    pub fn get(&self, id: LookupId) -> Option<&'l dyn Lookup> {
        self.slots[id as usize]
    }

    /// The value under `key` in lookup `id`; null without the lookup or the key.
    pub fn value(&self, id: LookupId, key: Key) -> Value<'l> {
        match (self.slots[id as usize], key) {
            (_, Key::None) | (None, _) => Value::Null,
            (Some(lookup), key) => lookup.value(key),
        }
    }

    /// The owners under `key`; empty when unknown.
    pub fn owners(&self, key: Key) -> &'l [Owner] {
        match (self.slots[LookupId::Owners as usize], key) {
            (_, Key::None) | (None, _) => &[],
            (Some(lookup), key) => lookup.owners(key),
        }
    }
}
