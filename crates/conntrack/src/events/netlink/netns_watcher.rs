//! EventReader to every namespace of the host.
//!
//! One socket hears all namespaces that have a number (see [`crate::events::netlink::nsid`]), containers behind a veth pair among them,
//! from their first packet on. Every other one gets a socket of its own, for which it is entered. Namespaces come and
//! go: every second, and whenever a number is heard that nobody knows, they are looked for again.
//!
//! A socket keeps its namespace alive: it is unreachable when nothing else leads to the namespace.
use std::collections::{HashMap, HashSet};

use sys::{clock, netns};

use crate::events::netlink::batch::{DUPLICATE, UNKNOWN_NETNS};
use crate::events::netlink::nsid::{FindNamespaces, Found, NsidMap};
use crate::events::netlink::subscribe::{EventSocket, Scope};

/// Between two looks for new namespaces.
const RESCAN_NS: u64 = 1_000_000_000;
/// A number that nobody knows is looked up again after so long.
const RETRY_NS: u64 = 1_000_000_000;

/// All namespaces.
pub(crate) struct NetnsWatcher {
    find: FindNamespaces,
    own: u64,
    buffer_bytes: u32,
    /// False if the kernel does not let us hear more than one by a socket.
    by_number: bool,
    nsids: NsidMap,
    /// Those with a socket of their own.
    single: HashSet<u64>,
    /// Those that could not be listened to so far.
    unreachable: HashSet<u64>,
    late: u64,
    /// NsidMap that nobody knows, with the time of the next try.
    unknown_nsids: HashMap<i32, u64>,
    next_rescan_ns: u64,
    begun: bool,
}

impl NetnsWatcher {
    /// Begins with the first socket of `sockets`, that of the calling thread's namespace, and adds the others.
    pub(crate) fn open(
        find: FindNamespaces,
        own: u64,
        buffer_bytes: u32,
        groups: u32,
        sockets: &mut Vec<EventSocket>,
    ) -> NetnsWatcher {
        let by_number = sockets.first().is_some_and(|socket| socket.socket.listen_all_netns().is_ok());
        let mut watcher = NetnsWatcher {
            find,
            own,
            buffer_bytes,
            by_number,
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

    /// Namespaces that could not be listened to.
    pub(crate) fn unreachable(&self) -> u64 {
        self.unreachable.len() as u64
    }

    /// Namespaces that were found only after they may have had entries.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// The inode behind a number, [`UNKNOWN_NETNS`] if nobody knows, [`DUPLICATE`] if that namespace is heard by a socket of its
    /// own. A unknown_nsids one is looked for soon.
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

    /// True if it is time to look for namespaces.
    pub(crate) fn is_due(&self) -> bool {
        clock::monotonic_ns() >= self.next_rescan_ns
    }

    /// How long until then.
    pub(crate) fn next_rescan_ms(&self) -> i32 {
        let left_ns = self.next_rescan_ns.saturating_sub(clock::monotonic_ns());
        i32::try_from(left_ns / 1_000_000 + 1).unwrap_or(i32::MAX)
    }

    /// Looks for namespaces: new ones get an socket, the indexes of sockets whose namespace is gone are returned, ascending.
    pub(crate) fn rescan(&mut self, sockets: &mut Vec<EventSocket>, groups: u32) -> Vec<usize> {
        let found = {
            let (own, single, nsids) = (self.own, &self.single, &self.nsids);
            // A number that nobody knows may be that of a namespace which has a socket already.
            let settled = self.unknown_nsids.is_empty();
            (self.find)(&|inode| inode == own || nsids.has(inode) || settled && single.contains(&inode))
        };
        let there: HashSet<u64> = found.iter().map(|found| found.netns_id).collect();
        self.nsids.keep(|inode| there.contains(&inode));
        self.unreachable.retain(|inode| there.contains(inode));
        for found in &found {
            self.add_netns(found, sockets, groups);
        }
        self.unknown_nsids.retain(|nsid, _| self.nsids.inode(*nsid).is_none());
        self.begun = true;
        self.next_rescan_ns = clock::monotonic_ns() + RESCAN_NS;
        let single = &mut self.single;
        let is_gone = |socket: &EventSocket| matches!(socket.scope, Scope::Netns(inode) if !there.contains(&inode));
        let gone: Vec<usize> =
            sockets.iter().enumerate().filter(|(_, socket)| is_gone(socket)).map(|(index, _)| index).collect();
        single.retain(|inode| there.contains(inode));
        gone
    }

    fn add_netns(&mut self, found: &Found, sockets: &mut Vec<EventSocket>, groups: u32) {
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
        let is_heard = self.by_number && matches!(self.nsids.learn(inode, netns), Ok(Some(_)));
        if is_heard || self.single.contains(&inode) {
            self.unreachable.remove(&inode);
            return;
        }
        let opened = netns::within(Some(netns), || EventSocket::open(groups, self.buffer_bytes, Scope::Netns(inode)));
        match opened.and_then(|socket| socket) {
            Ok(socket) => {
                sockets.push(socket);
                self.single.insert(inode);
                self.unreachable.remove(&inode);
                // What it did before this moment nobody has heard.
                self.late += u64::from(self.begun);
            }
            Err(_) => {
                self.unreachable.insert(inode);
            }
        }
    }
}
