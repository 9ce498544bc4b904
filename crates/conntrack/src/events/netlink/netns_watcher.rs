//! Subscriptions to every namespace of the host.
//!
//! One socket receives the events of all namespaces that have an nsid in its own one (see
//! [`crate::events::netlink::nsid`]), such as containers behind a veth pair, from their first packet on. Every other
//! namespace gets a socket of its own, which is opened inside it. Namespaces come and go: they are looked for again
//! every second, and whenever an event carries an unknown nsid.
//!
//! A socket keeps its namespace alive: it is closed when nothing else leads to the namespace.
use std::collections::{HashMap, HashSet};

use sys::{clock, netns};

use crate::events::netlink::nsid::{FindNamespaces, Found, NsidMap};
use crate::events::netlink::subscribe::{EventSocket, Scope};
use netlink::datagrams::{DUPLICATE, UNKNOWN_NETNS};

/// Time between two scans for namespaces, in nanoseconds.
const RESCAN_NS: u64 = 1_000_000_000;
/// An unknown nsid asks for another scan after this time, in nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;

/// Knows which namespaces there are, and which socket receives the events of each.
pub(crate) struct NetnsWatcher {
    find: FindNamespaces,
    /// Inode of the namespace that the first socket is in.
    own: u64,
    buffer_bytes: u32,
    /// True if the first socket receives the events of every namespace with an nsid.
    receives_by_nsid: bool,
    nsids: NsidMap,
    /// Inodes of the namespaces with a socket of their own.
    single: HashSet<u64>,
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
    /// nsid, and adds a socket for each of the others.
    pub(crate) fn open(
        find: FindNamespaces,
        own: u64,
        buffer_bytes: u32,
        groups: u32,
        sockets: &mut Vec<EventSocket>,
    ) -> NetnsWatcher {
        let receives_by_nsid = sockets.first().is_some_and(|socket| socket.netlink.listen_all_netns().is_ok());
        let mut watcher = NetnsWatcher {
            find,
            own,
            buffer_bytes,
            receives_by_nsid,
            nsids: NsidMap::default(),
            single: HashSet::new(),
            unreachable: HashSet::new(),
            late: 0,
            unknown_nsids: HashMap::new(),
            next_rescan_ns: 0,
            begun: false,
        };
        watcher.rescan(sockets, groups);
        watcher
    }

    /// Number of namespaces that could not be subscribed to.
    pub(crate) fn unreachable(&self) -> u64 {
        self.unreachable.len() as u64
    }

    /// Number of namespaces that were subscribed to only after they may have had events.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// The inode of the namespace with this nsid; [`DUPLICATE`] if a socket of its own receives the same event.
    /// [`UNKNOWN_NETNS`] if it is unknown: then a scan follows soon.
    pub(crate) fn netns_of(&mut self, nsid: i32) -> u64 {
        match self.nsids.inode(nsid) {
            Some(inode) if self.single.contains(&inode) => DUPLICATE,
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

    /// Scans for namespaces and adds the sockets that new ones need. Returns the indexes of the sockets whose
    /// namespace is gone, ascending.
    pub(crate) fn rescan(&mut self, sockets: &mut Vec<EventSocket>, groups: u32) -> Vec<usize> {
        let found = {
            let (own, single, nsids) = (self.own, &self.single, &self.nsids);
            // An unknown nsid may be that of a namespace which has a socket already.
            let settled = self.unknown_nsids.is_empty();
            (self.find)(&|inode| inode == own || nsids.has(inode) || settled && single.contains(&inode))
        };
        let alive: HashSet<u64> = found.iter().map(|found| found.netns_id).collect();
        self.nsids.keep(|inode| alive.contains(&inode));
        self.unreachable.retain(|inode| alive.contains(inode));
        for found in &found {
            self.subscribe(found, sockets, groups);
        }
        self.unknown_nsids.retain(|nsid, _| self.nsids.inode(*nsid).is_none());
        self.begun = true;
        self.next_rescan_ns = clock::monotonic_ns() + RESCAN_NS;
        self.single.retain(|inode| alive.contains(inode));
        let is_gone = |socket: &EventSocket| matches!(socket.scope, Scope::Netns(inode) if !alive.contains(&inode));
        sockets.iter().enumerate().filter(|(_, socket)| is_gone(socket)).map(|(index, _)| index).collect()
    }

    /// Sees to it that the events of a namespace are received.
    fn subscribe(&mut self, found: &Found, sockets: &mut Vec<EventSocket>, groups: u32) {
        let inode = found.netns_id;
        if inode == self.own || self.nsids.has(inode) {
            return;
        }
        let Some(netns) = &found.netns else {
            if !self.single.contains(&inode) {
                self.unreachable.insert(inode);
            }
            return;
        };
        let has_nsid = self.receives_by_nsid && matches!(self.nsids.learn(inode, netns), Ok(Some(_)));
        if has_nsid || self.single.contains(&inode) {
            self.unreachable.remove(&inode);
            return;
        }
        let opened = netns::within(Some(netns), || EventSocket::open(groups, self.buffer_bytes, Scope::Netns(inode)));
        match opened.and_then(|socket| socket) {
            Ok(socket) => {
                sockets.push(socket);
                self.single.insert(inode);
                self.unreachable.remove(&inode);
                // Its events before this moment were not received.
                self.late += u64::from(self.begun);
            }
            Err(_) => {
                self.unreachable.insert(inode);
            }
        }
    }
}
