//! Owners of the namespaces that a search found.
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use sys::{BufferBudget, FoundNetns, Host, NetNs, NetnsOwner};

use super::{Namespace, Namespaces};

/// Owners of namespaces, remembered from one search to the next, each with the paths into its namespace: the kernel
/// gives the inode of a removed namespace to the next one.
#[derive(Debug, Default)]
pub struct NetnsOwners {
    known: HashMap<u64, (Namespace, NetnsOwner), RandomState>,
}

impl NetnsOwners {
    /// Returns the namespaces with their owners, each with a function that opens it unless it is the caller's (`own`).
    /// Costs about 10 µs for each namespace that the previous search did not find.
    pub fn found(&mut self, namespaces: &Namespaces, own: u64) -> Vec<FoundNetns> {
        let mut known = HashMap::default();
        let one = |namespace: &Namespace| {
            let open = {
                let namespace = namespace.clone();
                move || namespace.open(&Host::live(), own).ok().flatten()
            };
            let read = || if namespace.inode == own { NetNs::current().ok() } else { open() };
            let before = self.known.get(&namespace.inode).filter(|(known, _)| known == namespace);
            let owner = before.map(|(_, owner)| *owner);
            let owner = owner.unwrap_or_else(|| read().map_or(NetnsOwner::Unknown, |netns| netns.owner()));
            if owner != NetnsOwner::Unknown {
                known.insert(namespace.inode, (namespace.clone(), owner));
            }
            let open: Option<Box<dyn Fn() -> Option<NetNs> + Send>> =
                if namespace.inode == own { None } else { Some(Box::new(open)) };
            FoundNetns { netns_id: namespace.inode, owner, open }
        };
        let found = namespaces.list.iter().map(one).collect();
        self.known = known;
        found
    }
}

impl Namespaces {
    /// Chooses at most `most` namespaces: the caller's (`own`), then the host's, then an equal number from each user.
    pub fn choose(&self, most: usize, own: u64) -> HashSet<u64, RandomState> {
        if self.list.len() <= most {
            return self.list.iter().map(|namespace| namespace.inode).collect();
        }
        let found = NetnsOwners::default().found(self, own);
        let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.netns_id == own);
        let total = most.saturating_sub(own.len()) as u64;
        let budget = BufferBudget { total, buffer: 1, buffer_min: 1, buffers: 1, namespaces_max: total };
        let owners: Vec<NetnsOwner> = others.iter().map(|found| found.owner).collect();
        let chosen = others.iter().zip(budget.share_out(&owners)).filter(|(_, share)| *share > 0);
        own.iter().chain(chosen.map(|(found, _)| found)).map(|found| found.netns_id).collect()
    }
}
