//! Subscriptions to every namespace of the host.
//!
//! One socket receives the events of all namespaces that have an nsid in its own namespace (see
//! [`crate::events::netlink::nsid`]), such as containers connected by a veth pair, from their first packet on. Every
//! other namespace gets a separate socket, which is opened inside it. Namespaces come and go: the watcher scans for
//! them every second, and whenever an event carries an unknown nsid.
//!
//! A socket keeps its namespace alive, so it is closed when nothing else refers to the namespace.
use std::collections::{HashMap, HashSet};

use sys::{BufferBudget, FoundNetns, MountsWatch, NetnsOwner, clock, netns};

use crate::events::netlink::nsid::{FindNamespaces, NsidMap, OtherNetnsOptions};
use crate::events::netlink::subscribe::{EventSocket, Scope};
use netlink::datagrams::{DUPLICATE, UNKNOWN_NETNS};

/// Time between two scans for namespaces, in nanoseconds.
const RESCAN_NS: u64 = 1_000_000_000;
/// An unknown nsid triggers another scan after this time, in nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;

/// Minimum useful receive buffer: about a hundred events.
const BUFFER_BYTES_MIN: u32 = 64 << 10;

/// Tracks the existing namespaces, and which socket receives the events of each.
pub(crate) struct NetnsWatcher {
    find: FindNamespaces,
    /// Inode of the first socket's namespace.
    own: u64,
    budget: BufferBudget,
    /// Highest number of namespaces so far that got no receive buffer because the memory limit was reached.
    left_out: u64,
    /// True if the first socket receives the events of every namespace with an nsid.
    receives_by_nsid: bool,
    nsids: NsidMap,
    /// Detects new and removed namespaces with a file. The kernel gives the inode of a removed namespace to the next
    /// one, which may have another nsid or none.
    mounts: Option<MountsWatch>,
    /// Inodes of the namespaces that have their own socket, with the size of its receive buffer in bytes.
    single: HashMap<u64, u64>,
    /// Inodes of the namespaces that could not be subscribed to so far.
    unreachable: HashSet<u64>,
    late: u64,
    /// Nsids of unknown namespaces, with the time of the next scan for each.
    unknown_nsids: HashMap<i32, u64>,
    next_rescan_ns: u64,
    /// True after the first scan.
    begun: bool,
}

impl NetnsWatcher {
    /// Extends the first of `sockets`, which is in the calling thread's namespace `own`, to every namespace with an
    /// nsid, and adds a socket for each other namespace.
    pub(crate) fn open(
        OtherNetnsOptions { find, buffers }: OtherNetnsOptions,
        own: u64,
        buffer_bytes: u32,
        groups: u32,
        sockets: &mut Vec<EventSocket>,
    ) -> NetnsWatcher {
        let receives_by_nsid = sockets.first().is_some_and(|socket| socket.netlink.listen_all_netns().is_ok());
        let mut watcher = NetnsWatcher {
            find,
            own,
            budget: BufferBudget {
                total: buffers.bytes,
                buffer: buffer_bytes.into(),
                buffer_min: BUFFER_BYTES_MIN.min(buffer_bytes).into(),
                buffers: 1,
                namespaces_max: buffers.sockets,
            },
            left_out: 0,
            receives_by_nsid,
            nsids: NsidMap::default(),
            mounts: MountsWatch::open().ok(),
            single: HashMap::new(),
            unreachable: HashSet::new(),
            late: 0,
            unknown_nsids: HashMap::new(),
            next_rescan_ns: 0,
            begun: false,
        };
        watcher.rescan(sockets, groups);
        watcher
    }

    /// Number of namespaces that could not be subscribed to, or that got no receive buffer because of the memory limit.
    pub(crate) fn unreachable_count(&self) -> u64 {
        self.unreachable.len() as u64 + self.left_out
    }

    /// Number of namespaces whose subscription started only after they may have had events.
    pub(crate) fn late_count(&self) -> u64 {
        self.late
    }

    /// The inode of the namespace with this nsid; [`DUPLICATE`] if a separate socket receives the same event.
    /// [`UNKNOWN_NETNS`] if it is unknown: then a scan follows soon.
    pub(crate) fn netns_of(&mut self, nsid: i32) -> u64 {
        match self.nsids.inode(nsid) {
            Some(inode) if self.single.contains_key(&inode) => DUPLICATE,
            Some(inode) => inode,
            None => {
                let now = clock::monotonic_ns();
                let next = self.unknown_nsids.entry(nsid).or_insert(0);
                if *next <= now {
                    *next = now + RETRY_NS;
                    self.next_rescan_ns = 0;
                }
                UNKNOWN_NETNS
            }
        }
    }

    /// True if it is time to scan for namespaces.
    pub(crate) fn is_due(&self) -> bool {
        clock::monotonic_ns() >= self.next_rescan_ns
    }

    /// Milliseconds until the next scan.
    pub(crate) fn next_rescan_ms(&self) -> i32 {
        let left_ns = self.next_rescan_ns.saturating_sub(clock::monotonic_ns());
        i32::try_from(left_ns / 1_000_000 + 1).unwrap_or(i32::MAX)
    }

    /// Scans for namespaces and adds the sockets that new ones need. Returns the indexes of the sockets whose namespace
    /// no longer exists, in ascending order.
    pub(crate) fn rescan(&mut self, sockets: &mut Vec<EventSocket>, groups: u32) -> Vec<usize> {
        let found = (self.find)();
        let alive: HashSet<u64> = found.iter().map(|found| found.netns_id).collect();
        self.nsids.retain(|inode| alive.contains(&inode));
        self.unreachable.retain(|inode| alive.contains(inode));
        let mounts_have_changed = self.mounts.as_ref().is_some_and(MountsWatch::have_changed);
        let are_known = self.unknown_nsids.is_empty() && !mounts_have_changed;
        let alone: Vec<&FoundNetns> = found.iter().filter(|found| self.needs_socket(found, are_known)).collect();
        let owners: Vec<NetnsOwner> = alone.iter().map(|found| found.owner).collect();
        let shares = self.budget.share_out(&owners);
        self.left_out = self.left_out.max(self.budget.count_shortage(&shares).left_out);
        for (found, bytes) in alone.into_iter().zip(shares) {
            self.subscribe(found, bytes, sockets, groups);
        }
        self.unknown_nsids.retain(|nsid, _| self.nsids.inode(*nsid).is_none());
        self.begun = true;
        self.next_rescan_ns = clock::monotonic_ns() + RESCAN_NS;
        self.single.retain(|inode, bytes| alive.contains(inode) && *bytes > 0);
        let is_gone =
            |socket: &EventSocket| matches!(socket.scope, Scope::Netns(inode) if !self.single.contains_key(&inode));
        sockets.iter().enumerate().filter(|(_, socket)| is_gone(socket)).map(|(index, _)| index).collect()
    }

    /// True if a namespace needs its own socket for its events; otherwise learns its nsid. `are_known`: an inode that
    /// has an nsid still has the same one.
    fn needs_socket(&mut self, found: &FoundNetns, are_known: bool) -> bool {
        let inode = found.netns_id;
        let has_socket = self.single.contains_key(&inode);
        if inode == self.own || are_known && !has_socket && self.nsids.contains(inode) {
            return false;
        }
        // An unknown nsid may belong to a namespace that already has a socket.
        if has_socket && self.unknown_nsids.is_empty() || !self.receives_by_nsid {
            return true;
        }
        let Some(netns) = found.netns() else { return true };
        let has_nsid = matches!(self.nsids.query_nsid(inode, &netns), Ok(Some(_)));
        if has_nsid {
            self.unreachable.remove(&inode);
        }
        !has_nsid || has_socket
    }

    /// Lets a socket with a receive buffer of `bytes` receive the namespace's events, or no socket if `bytes` is 0.
    fn subscribe(&mut self, found: &FoundNetns, bytes: u64, sockets: &mut Vec<EventSocket>, groups: u32) {
        let inode = found.netns_id;
        if let Some(before) = self.single.get_mut(&inode) {
            if *before != bytes && bytes > 0 {
                let is_of = |socket: &&EventSocket| socket.scope == Scope::Netns(inode);
                let room = i32::try_from(bytes).unwrap_or(i32::MAX);
                sockets.iter().filter(is_of).for_each(|socket| socket.netlink.make_room(room));
            }
            *before = bytes;
            return;
        }
        if bytes == 0 {
            return;
        }
        let buffer_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let open = || EventSocket::open(groups, buffer_bytes, Scope::Netns(inode)).ok();
        let opened = found.netns().and_then(|netns| netns::run_within(Some(&netns), open).ok().flatten());
        let Some(socket) = opened else {
            self.unreachable.insert(inode);
            return;
        };
        sockets.push(socket);
        self.single.insert(inode, bytes);
        self.unreachable.remove(&inode);
        // Earlier events of this namespace were missed.
        self.late += u64::from(self.begun);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use sys::{BufferLimits, NetNs};
    use testkit::netns::Lab;

    /// The next namespace may get the inode of a removed one, whose events came by its nsid.
    #[test]
    fn root_a_namespace_with_the_inode_of_a_removed_one_gets_a_socket() {
        testkit::require_root!();
        let (near, numbered, other) = (Lab::new("watchnear"), Lab::new("watchnsid"), Lab::new("watchother"));
        near.ip(&["netns", "set", numbered.name(), "41"]);
        let is_removed = Arc::new(AtomicBool::new(false));
        let paths = [numbered.path(), other.path()];
        let find = {
            let is_removed = Arc::clone(&is_removed);
            move || {
                let path = paths[usize::from(is_removed.load(SeqCst))].clone();
                let open = Box::new(move || NetNs::open_path(&path).ok());
                vec![FoundNetns { netns_id: 7, owner: NetnsOwner::Host, open: Some(open) }]
            }
        };
        near.run_inside(|| {
            let mut sockets = vec![EventSocket::open(1, 1 << 16, Scope::AllWithNsid(1)).unwrap()];
            let buffers = BufferLimits { bytes: 1 << 20, sockets: 8 };
            let options = OtherNetnsOptions { find: Box::new(find), buffers };
            let mut watcher = NetnsWatcher::open(options, 1, 1 << 16, 1, &mut sockets);
            assert_eq!((sockets.len(), watcher.netns_of(41)), (1, 7));
            is_removed.store(true, SeqCst);
            let _new_name = Lab::new("watchmount");
            watcher.rescan(&mut sockets, 1);
            assert_eq!((sockets.len(), watcher.netns_of(41)), (2, UNKNOWN_NETNS));
        });
    }
}
