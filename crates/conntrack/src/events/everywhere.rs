//! Listening to every namespace of the host.
//!
//! One socket hears all namespaces that have a number (see [`super::homes`]), containers behind a veth pair among them,
//! from their first packet on. Every other one gets a socket of its own, for which it is entered. Namespaces come and
//! go: every second, and whenever a number is heard that nobody knows, they are looked for again.
//!
//! A socket keeps its namespace alive: it is closed when nothing else leads to the namespace.
use std::collections::{HashMap, HashSet};

use sys::clock;

use super::block::{DOUBLED, STRANGE};
use super::homes::{FindNamespaces, Found, Numbers};
use super::reader::Ear;

/// Between two looks for new namespaces.
const LOOK_NS: u64 = 1_000_000_000;
/// A number that nobody knows is looked up again after so long.
const AGAIN_NS: u64 = 1_000_000_000;

/// What a socket hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// The namespace with this inode.
    One(u64),
    /// The one with this inode, in which it is, and all that have a number there.
    Many(u64),
}

/// All namespaces.
pub(super) struct Everywhere {
    find: FindNamespaces,
    own: u64,
    room: i32,
    /// False if the kernel does not let us hear more than one by a socket.
    by_number: bool,
    numbers: Numbers,
    /// Those with a socket of their own.
    single: HashSet<u64>,
    /// Those that could not be listened to so far.
    closed: HashSet<u64>,
    late: u64,
    /// Numbers that nobody knows, with the time of the next try.
    strange: HashMap<i32, u64>,
    next_look_ns: u64,
    begun: bool,
}

impl Everywhere {
    /// Begins with the first socket of `ears`, that of the calling thread's namespace, and adds the others.
    pub(super) fn open(find: FindNamespaces, own: u64, room: i32, groups: u32, ears: &mut Vec<Ear>) -> Everywhere {
        let by_number = ears.first().is_some_and(|ear| ear.socket.listen_everywhere().is_ok());
        let mut everywhere = Everywhere {
            find,
            own,
            room,
            by_number,
            numbers: Numbers::default(),
            single: HashSet::new(),
            closed: HashSet::new(),
            late: 0,
            strange: HashMap::new(),
            next_look_ns: 0,
            begun: false,
        };
        everywhere.look(ears, groups);
        everywhere
    }

    /// Namespaces that could not be listened to.
    pub(super) fn closed(&self) -> u64 {
        self.closed.len() as u64
    }

    /// Namespaces that were found only after they may have had entries.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// The inode behind a number, [`STRANGE`] if nobody knows, [`DOUBLED`] if that namespace is heard by a socket of its
    /// own. A strange one is looked for soon.
    pub(super) fn home_of(&mut self, nsid: i32) -> u64 {
        match self.numbers.inode(nsid) {
            Some(inode) if self.single.contains(&inode) => DOUBLED,
            Some(inode) => inode,
            None => {
                let now = clock::monotonic_ns();
                let next = self.strange.entry(nsid).or_insert(0);
                if *next <= now {
                    *next = now + AGAIN_NS;
                    self.next_look_ns = 0;
                }
                STRANGE
            }
        }
    }

    /// True if it is time to look for namespaces.
    pub(super) fn is_due(&self) -> bool {
        clock::monotonic_ns() >= self.next_look_ns
    }

    /// How long until then.
    pub(super) fn patience_ms(&self) -> i32 {
        let left_ns = self.next_look_ns.saturating_sub(clock::monotonic_ns());
        i32::try_from(left_ns / 1_000_000 + 1).unwrap_or(i32::MAX)
    }

    /// Looks for namespaces: new ones get an ear, the indexes of ears whose namespace is gone are returned, ascending.
    pub(super) fn look(&mut self, ears: &mut Vec<Ear>, groups: u32) -> Vec<usize> {
        let found = {
            let (own, single, numbers) = (self.own, &self.single, &self.numbers);
            // A number that nobody knows may be that of a namespace which has a socket already.
            let settled = self.strange.is_empty();
            (self.find)(&|inode| inode == own || numbers.has(inode) || settled && single.contains(&inode))
        };
        let there: HashSet<u64> = found.iter().map(|found| found.netns_id).collect();
        self.numbers.keep(|inode| there.contains(&inode));
        self.closed.retain(|inode| there.contains(inode));
        for found in &found {
            self.meet(found, ears, groups);
        }
        self.strange.retain(|nsid, _| self.numbers.inode(*nsid).is_none());
        self.begun = true;
        self.next_look_ns = clock::monotonic_ns() + LOOK_NS;
        let single = &mut self.single;
        let is_gone = |ear: &Ear| matches!(ear.home, Home::One(inode) if !there.contains(&inode));
        let gone: Vec<usize> =
            ears.iter().enumerate().filter(|(_, ear)| is_gone(ear)).map(|(index, _)| index).collect();
        single.retain(|inode| there.contains(inode));
        gone
    }

    fn meet(&mut self, found: &Found, ears: &mut Vec<Ear>, groups: u32) {
        let inode = found.netns_id;
        if inode == self.own || self.numbers.has(inode) {
            return;
        }
        let Some(netns) = &found.netns else {
            if !self.single.contains(&inode) {
                self.closed.insert(inode);
            }
            return;
        };
        let is_heard = self.by_number && matches!(self.numbers.learn(inode, netns), Ok(Some(_)));
        if is_heard || self.single.contains(&inode) {
            self.closed.remove(&inode);
            return;
        }
        let opened = netns.enter().and_then(|inside| {
            let ear = Ear::open(groups, self.room, Home::One(inode));
            inside.leave()?;
            ear
        });
        match opened {
            Ok(ear) => {
                ears.push(ear);
                self.single.insert(inode);
                self.closed.remove(&inode);
                // What it did before this moment nobody has heard.
                self.late += u64::from(self.begun);
            }
            Err(_) => {
                self.closed.insert(inode);
            }
        }
    }
}
