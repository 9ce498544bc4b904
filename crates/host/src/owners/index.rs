//! Socket owners by inode; the owners of an inode are adjacent.
use std::cell::Cell;
use std::collections::HashMap;

use record::{Comm, Owner};

use super::process::{FdTable, Process};

/// Maximum number of entries kept, which take 450 MB. Further ones are counted.
///
/// Bound: sockets whose owners are known. Beyond: further sockets have no owner; reported. This also affects other
/// users. By: a local user with as many sockets.
const HELD_MAX: usize = 16 << 20;

/// One socket in one process: 12 bytes, because a million of them must fit into 40 MiB, including the index.
#[derive(Clone, Copy, Debug)]
struct HeldSocket {
    // Socket inodes have 32 bits (get_next_ino in fs/inode.c), also in sock_diag's answers.
    inode: u32,
    fd: u32,
    table: u32,
}

/// Owners in the order in which they are found.
#[derive(Debug, Default)]
pub(super) struct Gather {
    held: Vec<HeldSocket>,
    tables: Vec<FdTable>,
    /// Descriptors of io_urings, each with the index of its table.
    rings: Vec<(u32, u32)>,
    /// True if some of `held` have no descriptor.
    has_marks: bool,
    over: u64,
}

impl Gather {
    /// Starts the table of a thread, to which the next sockets belong; the process's table belongs to its first thread,
    /// `pid` = `tid`.
    pub(super) fn table(&mut self, table: FdTable) {
        // A process with many sockets has several blocks.
        if self.tables.last() != Some(&table) {
            self.tables.push(table);
        }
    }

    /// Adds a socket of the last table.
    pub(super) fn socket(&mut self, fd: u32, inode: u64) {
        match self.tables.len().checked_sub(1) {
            Some(last) => self.add(HeldSocket { inode: inode as u32, fd, table: last as u32 }),
            None => self.over += 1,
        }
    }

    /// Adds a socket in flight to the descriptor `fd` of the last table.
    pub(super) fn in_flight(&mut self, fd: u32, inode: u64) {
        self.has_marks = true;
        self.socket(fd | Owner::IN_FLIGHT, inode);
    }

    /// Adds an io_uring of the last table.
    pub(super) fn ring(&mut self, fd: u32) {
        if let Some(last) = self.tables.len().checked_sub(1) {
            self.rings.push((last as u32, fd));
        }
    }

    /// Adds the sockets that are registered with the io_urings that were added. `read` passes the inodes of one.
    pub(super) fn add_registered(&mut self, mut read: impl FnMut(&FdTable, u32, &mut dyn FnMut(u64))) {
        for (table, fd) in std::mem::take(&mut self.rings) {
            let Some(of) = self.tables.get(table as usize).copied() else { continue };
            read(&of, fd, &mut |inode| {
                self.has_marks = true;
                self.add(HeldSocket { inode: inode as u32, fd: fd | Owner::IN_RING, table });
            });
        }
    }

    // Inodes are cut on purpose: sock_diag cuts them to 32 bits too, so the halves meet.
    fn add(&mut self, held: HeldSocket) {
        if self.held.len() >= HELD_MAX {
            self.over += 1;
        } else {
            self.held.push(held);
        }
    }

    fn of(&self, held: &HeldSocket) -> FdTable {
        self.tables.get(held.table as usize).copied().unwrap_or_default()
    }

    /// Sorts by inode, process and descriptor, and removes duplicates.
    fn sort(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        let table = |held: &HeldSocket| self.of(held);
        // The process's table comes before the tables of its threads.
        let rest = |held: &HeldSocket| (table(held).pid, held.fd, table(held).pid != table(held).tid, table(held).tid);
        // Stable, because that sort exploits ascending runs, and servers have long ones.
        held.sort_by(|a, b| a.inode.cmp(&b.inode).then_with(|| rest(a).cmp(&rest(b))));
        // A descriptor that was closed and opened while its directory was listed may appear twice, and a thread that
        // unshared its table has a copy of each.
        held.dedup_by(|a, b| (a.inode, table(a).pid, a.fd) == (b.inode, table(b).pid, b.fd));
        if self.has_marks {
            held = held.chunk_by(|a, b| a.inode == b.inode).flat_map(|holders| self.strongest(holders)).collect();
        }
        self.held = held;
    }

    /// Leaves out holders of one socket: io_urings of processes that also have a descriptor, and processes that will
    /// receive the socket if it has a holder. `holders` must be sorted by process.
    fn strongest<'h>(&'h self, holders: &'h [HeldSocket]) -> impl Iterator<Item = HeldSocket> + 'h {
        let is_in_flight = |held: &HeldSocket| held.fd & Owner::IN_FLIGHT == Owner::IN_FLIGHT;
        let is_held = !holders.iter().all(is_in_flight);
        let of_process = holders.chunk_by(move |a, b| self.of(a).pid == self.of(b).pid);
        of_process.flat_map(move |holders| {
            let has_descriptor = holders.iter().any(|held| held.fd & Owner::IN_RING == 0);
            let is_kept = move |held: &&HeldSocket| match held.fd & Owner::IN_FLIGHT {
                Owner::IN_FLIGHT => !is_held,
                Owner::IN_RING => !has_descriptor,
                _ => true,
            };
            holders.iter().filter(is_kept).copied()
        })
    }

    /// Reads the processes that share a socket with others, unless their start time is known.
    fn find_processes(&mut self, mut process: impl FnMut(u32) -> Process) {
        let mut shared = vec![false; self.tables.len()];
        for holders in self.held.chunk_by(|a, b| a.inode == b.inode) {
            if has_several(holders, &self.tables) {
                for held in holders {
                    shared.get_mut(held.table as usize).into_iter().for_each(|place| *place = true);
                }
            }
        }
        let mut known: HashMap<u32, Process> = HashMap::new();
        for (table, _) in self.tables.iter_mut().zip(shared).filter(|(_, is_shared)| *is_shared) {
            if table.process.started_ns == 0 {
                table.process = *known.entry(table.pid).or_insert_with(|| process(table.pid));
            }
        }
    }

    /// Puts the holder to show first among the holders of each socket.
    fn order_holders(&mut self, now_ns: u64) {
        let Gather { held, tables, .. } = self;
        let table = |held: &HeldSocket| tables.get(held.table as usize).unwrap_or(&UNKNOWN);
        for holders in held.chunk_by_mut(|a, b| a.inode == b.inode) {
            if !has_several(holders, tables) {
                continue;
            }
            let all: Vec<&FdTable> = holders.iter().take(RANKED_MAX).map(table).collect();
            // The sort is stable: descriptors of one process keep their order.
            holders.sort_by_cached_key(|held| table(held).rank(all.iter().copied(), now_ns));
        }
    }

    /// Gives each process without a name the name that `name` returns.
    pub(super) fn name_nameless(&mut self, mut name: impl FnMut(u32) -> Comm) {
        for table in self.tables.iter_mut().filter(|table| table.comm.as_bytes().is_empty()) {
            table.comm = name(table.pid);
        }
    }

    /// Sorts the owners. Costs at most 0.1 µs per socket, less if inodes ascend with descriptors.
    ///
    /// `process` is called for processes that share a socket with others, if the tables lack their start time; `now_ns`
    /// is the time of the reading since boot.
    pub(super) fn finish(mut self, process: impl FnMut(u32) -> Process, now_ns: u64) -> (Index, u64) {
        self.sort();
        self.find_processes(process);
        self.order_holders(now_ns);
        let tables = self.tables;
        let table = |held: &HeldSocket| tables.get(held.table as usize).copied().unwrap_or_default();
        let owner = |held: &HeldSocket| {
            let FdTable { pid, comm, process, .. } = table(held);
            let started = u32::try_from(process.started_ns / TICK_NS).unwrap_or(0);
            Owner { pid, fd: held.fd, process: comm, started }
        };
        let owners = self.held.iter().map(owner).collect();
        let foreign = self.held.iter().filter(|held| table(held).pid != table(held).tid);
        let mut threads: Vec<_> =
            foreign.map(|held| (key(held.inode, table(held).pid), held.fd, table(held).tid)).collect();
        threads.sort_unstable();
        // In place: the inodes reuse the memory of the entries, so that the peak is 36 bytes per socket.
        let mut inodes: Vec<u32> = self.held.into_iter().map(|held| held.inode).collect();
        inodes.shrink_to_fit();
        (Index { guide: Guide::new(&inodes), inodes, owners, threads, last: Cell::new(None) }, self.over)
    }
}

/// Replaces a missing table.
static UNKNOWN: FdTable =
    FdTable { pid: 0, tid: 0, comm: Comm::EMPTY, process: Process { started_ns: 0, parent: 0, only_waits: false } };

/// Maximum number of holders that each holder of a socket is compared with: thousands may hold one socket.
///
/// Bound: holders of a socket among which netwren looks for the parent. Beyond: the order of further holders is by
/// start time. By: a user who shares a socket among as many processes.
const RANKED_MAX: usize = 64;

/// True if several processes hold the socket. `holders` must be sorted by process.
fn has_several(holders: &[HeldSocket], tables: &[FdTable]) -> bool {
    let pid = |held: Option<&HeldSocket>| held.and_then(|held| tables.get(held.table as usize)).map(|table| table.pid);
    pid(holders.first()) != pid(holders.last())
}

/// Unit of an owner's start time.
const TICK_NS: u64 = 10_000_000;

/// Socket and process as one number, as in the field `tid`.
fn key(inode: u32, pid: u32) -> u64 {
    u64::from(inode) << 32 | u64::from(pid)
}

/// Owners by inode: the owner to show first, entries of one process adjacent. Takes 32.5 bytes per owner.
#[derive(Debug, Default)]
pub(super) struct Index {
    inodes: Vec<u32>,
    owners: Vec<Owner>,
    guide: Guide,
    /// (inode and pid, fd, tid) of descriptors in a table that is not its process's own; ascending, and usually empty.
    threads: Vec<(u64, u32, u32)>,
    /// The inode of the last lookup, and the range of its owners.
    last: Cell<Option<(u32, u32, u32)>>,
}

impl Index {
    /// Returns every inode with its first owner, in ascending order.
    pub(super) fn firsts(&self) -> impl Iterator<Item = (u32, &Owner)> {
        let mut last = None;
        self.inodes.iter().copied().zip(&self.owners).filter(move |(inode, _)| last.replace(*inode) != Some(*inode))
    }

    /// The thread whose table contains the descriptor; `socket` holds the inode and, in its lower half, the pid.
    pub(super) fn thread(&self, socket: u64, fd: u32) -> u32 {
        let found = self.threads.binary_search_by(|(key, number, _)| (*key, *number).cmp(&(socket, fd)));
        // Truncated on purpose to the lower half.
        found.ok().and_then(|at| self.threads.get(at)).map_or(socket as u32, |(.., tid)| *tid)
    }

    /// Every process that holds a socket, once each, in ascending order.
    pub(super) fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = Vec::new();
        for owner in &self.owners {
            // Neighbours usually belong to one process.
            if pids.last() != Some(&owner.pid) {
                pids.push(owner.pid);
            }
        }
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Returns the owners of a socket: the owner to show comes first, and entries of one process ascend by fd. Costs
    /// three cache misses if the index exceeds the cache; repeating the call for the next column of a row is free.
    pub(super) fn get(&self, inode: u64) -> &[Owner] {
        let Ok(inode) = u32::try_from(inode) else { return &[] };
        let place = match self.last.get() {
            Some((last, from, to)) if last == inode => from as usize..to as usize,
            _ => self.find(inode),
        };
        self.last.set(Some((inode, place.start as u32, place.end as u32)));
        self.owners.get(place).unwrap_or_default()
    }

    fn find(&self, inode: u32) -> std::ops::Range<usize> {
        let near = self.guide.near(inode);
        let part = self.inodes.get(near.clone()).unwrap_or_default();
        let from = near.start + part.partition_point(|&i| i < inode);
        let rest = self.inodes.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|&&i| i == inode).count();
        from..from + count
    }
}

/// Narrows a search in the sorted inodes: the numbers between the smallest and the largest are divided into pieces of
/// equal width. The kernel assigns inodes consecutively, so a piece holds about [`PER_PIECE`]; if they cluster, the
/// binary search within a piece takes longer. With a million sockets in random order a lookup takes 60 ns, and 5 to 10
/// times as long without this.
#[derive(Debug, Default)]
struct Guide {
    lowest: u32,
    /// Binary logarithm of the width of a piece.
    shift: u32,
    /// Index in the inodes at which each piece starts, and the end of the last.
    starts: Vec<u32>,
}

/// Half a cache line.
const PER_PIECE: usize = 8;

impl Guide {
    fn new(inodes: &[u32]) -> Guide {
        let (Some(&lowest), Some(&highest)) = (inodes.first(), inodes.last()) else { return Guide::default() };
        let pieces_max = (inodes.len() / PER_PIECE).max(2);
        let span = highest - lowest;
        let shift = (0..32).find(|shift| ((span >> shift) as usize) < pieces_max).unwrap_or(31);
        let mut starts = Vec::with_capacity((span >> shift) as usize + 2);
        for (at, inode) in inodes.iter().enumerate() {
            let piece = ((inode - lowest) >> shift) as usize;
            while starts.len() <= piece {
                // HELD_MAX is far below 2^32.
                starts.push(at as u32);
            }
        }
        starts.push(inodes.len() as u32);
        Guide { lowest, shift, starts }
    }

    // The range that contains this inode, if it exists.
    fn near(&self, inode: u32) -> std::ops::Range<usize> {
        let Some(above) = inode.checked_sub(self.lowest) else { return 0..0 };
        let piece = (above >> self.shift) as usize;
        match self.starts.get(piece..piece + 2) {
            Some(&[from, to]) => from as usize..to as usize,
            _ => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn own(pid: u32, comm: &str) -> FdTable {
        FdTable { pid, tid: pid, comm: Comm::new(comm.as_bytes()), process: Process::default() }
    }

    proptest! {
        #[test]
        fn finds_what_a_map_finds(
            processes in prop::collection::vec((2u32..50, prop::collection::vec((0u32..20, 0u64..30), 0..20)), 0..10),
        ) {
            let mut gather = Gather::default();
            let mut expected: BTreeMap<u64, BTreeSet<(u32, u32)>> = BTreeMap::new();
            for (pid, held) in &processes {
                gather.table(own(*pid, &pid.to_string()));
                for (fd, inode) in held {
                    gather.socket(*fd, *inode);
                    expected.entry(*inode).or_default().insert((*pid, *fd));
                }
            }
            let (index, over) = gather.finish(|_| Process::default(), 0);
            prop_assert_eq!(over, 0);
            prop_assert_eq!(index.len(), expected.values().map(BTreeSet::len).sum::<usize>());
            for inode in 0..31 {
                let got: Vec<_> = index.get(inode).iter().map(|o| (o.pid, o.fd)).collect();
                let want: Vec<_> = expected.get(&inode).into_iter().flatten().copied().collect();
                prop_assert_eq!(got, want);
                prop_assert!(index.get(inode).iter().all(|o| o.process.as_bytes() == o.pid.to_string().as_bytes()));
            }
        }
    }

    proptest! {
        #[test]
        fn clustered_and_far_apart(mut inodes in prop::collection::vec(
            prop_oneof![0u32..100, 1_000_000u32..1_000_100, Just(u32::MAX), any::<u32>()], 0..300,
        )) {
            let mut gather = Gather::default();
            gather.table(own(1, ""));
            inodes.iter().for_each(|inode| gather.socket(*inode, (*inode).into()));
            let (index, _) = gather.finish(|_| Process::default(), 0);
            inodes.sort_unstable();
            inodes.dedup();
            for inode in inodes {
                let found: Vec<_> = index.get(inode.into()).iter().map(|owner| owner.fd).collect();
                prop_assert_eq!(found, [inode]);
                for near in [inode.wrapping_sub(1), inode.wrapping_add(1)] {
                    prop_assert!(index.get(near.into()).iter().all(|owner| owner.fd == near));
                }
            }
            prop_assert!(index.guide.starts.len() <= index.len() / PER_PIECE + 3);
        }
    }

    #[test]
    fn a_thread_with_a_table_of_its_own() {
        let mut gather = Gather::default();
        // Its copy of descriptor 3 is also the process's; 4 belongs to the thread alone.
        gather.table(FdTable { tid: 12, ..own(10, "main") });
        gather.socket(3, 100);
        gather.socket(4, 101);
        gather.table(own(10, "main"));
        gather.socket(3, 100);
        gather.socket(4, 102);
        let (index, _) = gather.finish(|_| Process::default(), 0);
        let index = &index;
        let seen =
            |inode: u64| index.get(inode).iter().map(move |o| (o.pid, o.fd, index.thread(inode << 32 | 10, o.fd)));
        assert_eq!(seen(100).collect::<Vec<_>>(), [(10, 3, 10)]);
        assert_eq!(seen(101).collect::<Vec<_>>(), [(10, 4, 12)]);
        assert_eq!(seen(102).collect::<Vec<_>>(), [(10, 4, 10)]);
        assert_eq!(index.get(100)[0].process.as_bytes(), b"main");
        assert_eq!(index.pids(), [10]);
    }

    #[test]
    fn the_holder_that_is_shown_comes_first_and_only_shared_sockets_cost_a_question() {
        let mut gather = Gather::default();
        for pid in [1, 7, 300, 9000] {
            gather.table(own(pid, "x"));
            gather.socket(3, 100);
            gather.socket(4, 100);
            gather.socket(5, u64::from(pid) + 1000);
        }
        gather.table(own(8, "alone"));
        gather.socket(3, 101);
        let mut asked = Vec::new();
        let process = |pid| {
            asked.push(pid);
            let started_ns = if pid == 9000 { 50_000_000 } else { 70_000_000 };
            Process { started_ns, ..Process::default() }
        };
        let (index, _) = gather.finish(process, 0);
        let seen: Vec<_> = index.get(100).iter().map(|owner| (owner.pid, owner.fd, owner.started)).collect();
        let expected = [(9000, 5), (7, 7), (300, 7), (1, 7)];
        assert_eq!(seen, expected.iter().flat_map(|(pid, at)| [(*pid, 3, *at), (*pid, 4, *at)]).collect::<Vec<_>>());
        assert_eq!(Owner::count_other_processes(index.get(100)), 3);
        assert_eq!(asked, [1, 7, 300, 9000]);
    }

    #[test]
    fn sockets_without_a_process_are_dropped_and_counted() {
        let mut gather = Gather::default();
        gather.socket(3, 4);
        let (index, over) = gather.finish(|_| Process::default(), 0);
        assert_eq!((index.len(), over), (0, 1));
        assert!(index.get(4).is_empty() && index.get(u64::MAX).is_empty());
    }
}
