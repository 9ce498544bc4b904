//! The owners of a flow's connections: a short list of processes with different names.

use crate::chunks::Chunks;
use crate::packed::NONE;
use record::{Comm, Owner};

/// Maximum number of names per flow. A service rarely has more than two; the victim of a port scan must not cost
/// memory.
///
/// Bound: process names of a flow. Beyond: further names are left out. By: a local user who shares sockets among
/// processes.
pub const OWNERS_MAX: usize = 8;

/// One owner and the index of the next one of the same flow, ascending by pid.
struct OwnerNode {
    owner: Owner,
    next: u32,
}

/// The owners of all flows; a flow stores the index of its first owner.
pub(crate) struct OwnerLists {
    links: Chunks<OwnerNode>,
}

impl OwnerLists {
    pub(crate) fn new() -> OwnerLists {
        OwnerLists { links: Chunks::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.links.clear();
    }

    /// Adds `owner` to the list that begins at `first`; returns where it begins now.
    ///
    /// Of several owners with the same name the lowest (pid, fd) is kept, and of too many names those with the lowest
    /// pids, so the result does not depend on the order of the calls.
    pub(crate) fn add(&mut self, first: u32, owner: &Owner) -> u32 {
        if first != NONE && self.links.get(first).owner == *owner {
            return first;
        }
        let mut kept = [nobody(); OWNERS_MAX + 1];
        let len = self.list(first, &mut kept);
        match kept[..len].iter_mut().find(|k| k.process == owner.process) {
            Some(same) if *same <= *owner => return first,
            Some(same) => *same = *owner,
            None => return self.insert(first, &mut kept, len, owner),
        }
        kept[..len].sort_unstable();
        self.write(first, &kept[..len]);
        first
    }

    fn insert(&mut self, first: u32, kept: &mut [Owner; OWNERS_MAX + 1], len: usize, owner: &Owner) -> u32 {
        kept[len] = *owner;
        kept[..=len].sort_unstable();
        if len == OWNERS_MAX {
            self.write(first, &kept[..OWNERS_MAX]);
            return first;
        }
        // A new link is added at the front; then all are rewritten in order.
        let front = self.links.push(OwnerNode { owner: *owner, next: first });
        self.write(front, &kept[..=len]);
        front
    }

    fn write(&mut self, first: u32, owners: &[Owner]) {
        let mut at = first;
        for owner in owners {
            if at == NONE {
                return;
            }
            let link = self.links.get_mut(at);
            link.owner = *owner;
            at = link.next;
        }
    }

    /// Copies the list that begins at `first`; returns its length, at most [`OWNERS_MAX`].
    pub(crate) fn list(&self, first: u32, into: &mut [Owner]) -> usize {
        let (mut at, mut len) = (first, 0);
        while at != NONE && len < OWNERS_MAX {
            let link = self.links.get(at);
            into[len] = link.owner;
            at = link.next;
            len += 1;
        }
        len
    }
}

/// Fills the unused places.
pub(crate) fn nobody() -> Owner {
    Owner { pid: 0, fd: 0, process: Comm::default(), started: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn owner(pid: u32, fd: u32, name: u8) -> Owner {
        Owner { pid, fd, process: Comm::new(&[b'a' + name]), started: 0 }
    }

    fn kept(owners: &[Owner]) -> Vec<Owner> {
        let mut lists = OwnerLists::new();
        let first = owners.iter().fold(NONE, |first, o| lists.add(first, o));
        let mut list = [nobody(); OWNERS_MAX];
        let len = lists.list(first, &mut list);
        list[..len].to_vec()
    }

    proptest! {
        #[test]
        fn lowest_of_each_name_whatever_the_order(
            owners in proptest::collection::vec((0u32..40, 0u32..3, 0u8..14), 0..60),
        ) {
            let owners: Vec<Owner> = owners.into_iter().map(|(pid, fd, name)| owner(pid, fd, name)).collect();
            let mut lowest: BTreeMap<Comm, Owner> = BTreeMap::new();
            for o in &owners {
                let place = lowest.entry(o.process).or_insert(*o);
                *place = (*place).min(*o);
            }
            let mut expected: Vec<Owner> = lowest.into_values().collect();
            expected.sort_unstable();
            expected.truncate(OWNERS_MAX);
            prop_assert_eq!(&kept(&owners), &expected);
            let reversed: Vec<Owner> = owners.into_iter().rev().collect();
            prop_assert_eq!(&kept(&reversed), &expected);
        }
    }
}
