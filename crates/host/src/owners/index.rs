//! Owners under the inode of their socket, each inode's in one piece.
use record::{Comm, Owner};

/// Sockets kept at most; a host that has more would need 450 MB here. What is over is counted.
const HELD_MAX: usize = 16 << 20;

/// One socket in one process: 12 bytes, because 40 MiB are to hold a million of them, index included.
#[derive(Clone, Copy, Debug)]
struct Held {
    // Socket inodes are 32 bits wide (get_next_ino in fs/inode.c), like those in sock_diag's answers.
    inode: u32,
    fd: u32,
    process: u32,
}

/// Owners as they are found, before they are in order.
#[derive(Debug, Default)]
pub(super) struct Gather {
    held: Vec<Held>,
    processes: Vec<(u32, Comm)>,
    over: u64,
}

impl Gather {
    /// The sockets that follow belong to this process.
    pub(super) fn process(&mut self, pid: u32, comm: Comm) {
        // A process with many sockets comes in several blocks.
        if self.processes.last().is_none_or(|last| *last != (pid, comm)) {
            self.processes.push((pid, comm));
        }
    }

    pub(super) fn socket(&mut self, fd: u32, inode: u64) {
        if self.held.len() >= HELD_MAX || self.processes.is_empty() {
            self.over += 1;
            return;
        }
        // Cut on purpose: sock_diag cuts inodes to 32 bits too, so the halves meet.
        self.held.push(Held { inode: inode as u32, fd, process: (self.processes.len() - 1) as u32 });
    }

    /// Sorts. About 12 ms for 100 000 sockets in no order, 2 ms where inodes ascend with descriptors.
    pub(super) fn finish(mut self) -> (Index, u64) {
        let processes = self.processes;
        let pid = |held: &Held| processes.get(held.process as usize).map_or(0, |process| process.0);
        // Stable, because that sort makes use of ascending runs, and servers give us long ones.
        self.held.sort_by(|a, b| a.inode.cmp(&b.inode).then_with(|| (pid(a), a.fd).cmp(&(pid(b), b.fd))));
        // A descriptor that was closed and opened while its directory was listed may come twice.
        self.held.dedup_by(|a, b| (a.inode, pid(a), a.fd) == (b.inode, pid(b), b.fd));
        let inodes = self.held.iter().map(|held| held.inode).collect();
        let owner = |held: &Held| {
            let (pid, process) = processes.get(held.process as usize).copied().unwrap_or_default();
            Owner { pid, fd: held.fd, process }
        };
        (Index { inodes, owners: self.held.iter().map(owner).collect() }, self.over)
    }
}

/// Owners in order of (inode, pid, fd): 28 bytes each.
#[derive(Debug, Default)]
pub(super) struct Index {
    inodes: Vec<u32>,
    owners: Vec<Owner>,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// The owners of a socket, ascending by pid and fd. A binary search.
    pub(super) fn get(&self, inode: u64) -> &[Owner] {
        let Ok(inode) = u32::try_from(inode) else { return &[] };
        let from = self.inodes.partition_point(|&i| i < inode);
        let rest = self.inodes.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|&&i| i == inode).count();
        self.owners.get(from..from + count).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn finds_what_a_map_finds(
            processes in prop::collection::vec((1u32..50, prop::collection::vec((0u32..20, 0u64..30), 0..20)), 0..10),
        ) {
            let mut gather = Gather::default();
            let mut expected: BTreeMap<u64, BTreeSet<(u32, u32)>> = BTreeMap::new();
            for (pid, held) in &processes {
                gather.process(*pid, Comm::new(pid.to_string().as_bytes()));
                for (fd, inode) in held {
                    gather.socket(*fd, *inode);
                    expected.entry(*inode).or_default().insert((*pid, *fd));
                }
            }
            let (index, over) = gather.finish();
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

    #[test]
    fn sockets_without_a_process_are_dropped_and_counted() {
        let mut gather = Gather::default();
        gather.socket(3, 4);
        let (index, over) = gather.finish();
        assert_eq!((index.len(), over), (0, 1));
        assert!(index.get(4).is_empty() && index.get(u64::MAX).is_empty());
    }
}
