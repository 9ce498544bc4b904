//! Shares memory and descriptors among network namespaces: any user can create thousands of them.
use std::collections::BTreeMap;
use std::fmt;

use crate::netns::{NetNs, NetnsOwner};

/// A network namespace that a search found.
pub struct FoundNetns {
    /// Its inode.
    pub netns_id: u64,
    /// Its creator.
    pub owner: NetnsOwner,
    /// Opens the namespace; returns `None` if that fails. The field is `None` for a namespace that need not be entered.
    pub open: Option<Box<dyn Fn() -> Option<NetNs> + Send>>,
}

impl FoundNetns {
    /// Returns the namespace of the calling thread.
    pub fn current(netns_id: u64) -> FoundNetns {
        FoundNetns { netns_id, owner: NetnsOwner::Host, open: None }
    }

    /// Opens the namespace; returns `None` if it cannot be opened or need not be entered.
    pub fn netns(&self) -> Option<NetNs> {
        self.open.as_ref().and_then(|open| open())
    }
}

impl fmt::Debug for FoundNetns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net:[{}] of {:?}", self.netns_id, self.owner)
    }
}

/// Limits for all sockets in other network namespaces together.
#[derive(Debug, Clone, Copy)]
pub struct BufferLimits {
    /// Maximum bytes of receive buffers.
    pub bytes: u64,
    /// Maximum number of sockets, which take one descriptor each.
    pub sockets: u64,
}

/// Memory for buffers in many network namespaces, which all get the same number of buffers.
#[derive(Debug, Clone, Copy)]
pub struct BufferBudget {
    /// Bytes for all namespaces together.
    pub total: u64,
    /// Bytes of a buffer if there is enough memory.
    pub buffer: u64,
    /// The smallest useful buffer in bytes.
    pub buffer_min: u64,
    /// Number of buffers per namespace.
    pub buffers: u64,
    /// Maximum number of namespaces with buffers, regardless of memory: each takes descriptors.
    pub namespaces_max: u64,
}

/// Numbers of namespaces that did not get the requested buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShortShares {
    /// Namespaces without a buffer.
    pub left_out: u64,
    /// Namespaces with smaller buffers.
    pub reduced: u64,
}

/// The host's own namespaces leave a quarter of the budget to users' namespaces, if there are any.
const USERS_PART: u64 = 4;

impl BufferBudget {
    /// Returns the bytes of each buffer of each namespace, in the order of `owners`; 0 leaves the namespace out.
    /// Sizes below [`BufferBudget::buffer`] are powers of two.
    ///
    /// The host's own namespaces come first. The users share the rest equally, regardless of their number of
    /// namespaces: a user with thousands of namespaces takes nothing from others.
    pub fn share_out(&self, owners: &[NetnsOwner]) -> Vec<u64> {
        let buffers = self.buffers.max(1);
        let all = |namespaces: u64| namespaces.saturating_mul(buffers).saturating_mul(self.buffer);
        let total = self.total.min(all(self.namespaces_max));
        let per_buffer = total / self.namespaces_max.max(1) / buffers;
        let budget = BufferBudget { buffers, buffer_min: self.buffer_min.max(per_buffer).min(self.buffer), ..*self };
        let mut counts: BTreeMap<NetnsOwner, u64> = BTreeMap::new();
        owners.iter().for_each(|owner| *counts.entry(*owner).or_default() += 1);
        let host = counts.remove(&NetnsOwner::Host).unwrap_or(0);
        let of_users: u64 = counts.values().sum();
        let for_host = budget.share(total - all(of_users).min(total / USERS_PART), host);
        let mut left = total.saturating_sub(for_host.bytes(buffers));
        let mut shares = BTreeMap::from([(NetnsOwner::Host, for_host)]);
        let mut users: Vec<(NetnsOwner, u64)> = counts.into_iter().collect();
        // A user that needs less than an equal part leaves the rest to the others.
        users.sort_by_key(|(_, count)| *count);
        let mut waiting = users.len() as u64;
        for (owner, count) in users {
            let share = budget.share(left / waiting.max(1), count);
            left = left.saturating_sub(share.bytes(buffers));
            waiting -= 1;
            shares.insert(owner, share);
        }
        owners.iter().map(|owner| shares.get_mut(owner).map_or(0, Share::next)).collect()
    }

    /// Divides `room` bytes among the namespaces of one owner.
    fn share(&self, room: u64, count: u64) -> Share {
        let each = room / count.saturating_mul(self.buffers).max(1);
        match each {
            _ if each >= self.buffer => Share { each: self.buffer, count },
            _ if each >= self.buffer_min => Share { each: 1 << each.max(1).ilog2(), count },
            _ => {
                let served = room / self.buffer_min.saturating_mul(self.buffers).max(1);
                Share { each: self.buffer_min, count: served }
            }
        }
    }

    /// Counts the shares that are smaller than requested.
    pub fn count_shortage(&self, shares: &[u64]) -> ShortShares {
        let left_out = shares.iter().filter(|bytes| **bytes == 0).count() as u64;
        let reduced = shares.iter().filter(|bytes| (1..self.buffer).contains(*bytes)).count() as u64;
        ShortShares { left_out, reduced }
    }
}

/// Buffers for the namespaces of one owner.
struct Share {
    /// Bytes per buffer.
    each: u64,
    /// Number of namespaces that can still get a share.
    count: u64,
}

impl Share {
    fn bytes(&self, buffers: u64) -> u64 {
        self.each.saturating_mul(self.count).saturating_mul(buffers)
    }

    fn next(&mut self) -> u64 {
        let Some(left) = self.count.checked_sub(1) else { return 0 };
        self.count = left;
        self.each
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NetnsOwner::{Host, Unknown, User};

    const MIB: u64 = 1 << 20;
    const BUDGET: BufferBudget =
        BufferBudget { total: 64 * MIB, buffer: 4 * MIB, buffer_min: MIB, buffers: 1, namespaces_max: 1000 };

    fn shares(budget: BufferBudget, owners: &[(NetnsOwner, usize)]) -> Vec<Vec<u64>> {
        let all: Vec<NetnsOwner> = owners.iter().flat_map(|(owner, count)| vec![*owner; *count]).collect();
        let mut shares = budget.share_out(&all).into_iter().map(|bytes| bytes / MIB);
        assert!(budget.share_out(&all).iter().sum::<u64>() * budget.buffers <= budget.total);
        owners.iter().map(|(_, count)| shares.by_ref().take(*count).collect()).collect()
    }

    #[test]
    fn each_namespace_has_its_buffer_while_there_is_room() {
        assert_eq!(shares(BUDGET, &[(Host, 3), (User(7), 2)]), [vec![4; 3], vec![4; 2]]);
        assert_eq!(BUDGET.share_out(&[]), []);
    }

    #[test]
    fn a_users_thousands_take_nothing_from_others() {
        let all = shares(BUDGET, &[(User(7), 5000), (Host, 10), (User(8), 2), (Unknown, 1)]);
        assert_eq!((&all[1], &all[2], &all[3]), (&vec![4; 10], &vec![4; 2], &vec![4; 1]));
        let sum: u64 = all[0].iter().sum();
        assert_eq!((sum, all[0].iter().filter(|mib| **mib == 0).count()), (12, 4988), "the rest, in useful sizes");
    }

    #[test]
    fn many_of_the_host_have_smaller_ones_and_leave_a_quarter() {
        assert_eq!(shares(BUDGET, &[(Host, 32)]), [vec![2; 32]]);
        let all = shares(BUDGET, &[(Host, 100), (User(7), 100)]);
        assert_eq!(all.iter().map(|mib| mib.iter().sum::<u64>()).collect::<Vec<_>>(), [48, 16]);
        let all = BUDGET.share_out(&[Host; 100]);
        assert_eq!(BUDGET.count_shortage(&all), ShortShares { left_out: 36, reduced: 64 });
    }

    #[test]
    fn several_buffers_and_few_descriptors() {
        assert_eq!(shares(BufferBudget { buffers: 4, ..BUDGET }, &[(Host, 4), (User(1), 1)]), [vec![2; 4], vec![4]]);
        let few = BufferBudget { namespaces_max: 5, ..BUDGET };
        let served = |count| few.share_out(&vec![Host; count]).iter().filter(|bytes| **bytes > 0).count();
        assert_eq!((served(4), served(5), served(60)), (4, 5, 5));
    }
}
