//! Which addresses belong to which network namespaces of this host.

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use record::Addr;

/// Maximum number of addresses of all namespaces together: the rest are taken for addresses of other hosts.
///
/// Bound: addresses of all namespaces. Beyond: a further address counts as another host's. By: anyone who may add
/// addresses in a namespace.
const HOMES_MAX: usize = 1 << 18;

/// (namespace, address) pairs. A lookup costs two probes.
#[derive(Debug, Default)]
pub struct NetnsAddresses {
    addresses: HashSet<Addr, RandomState>,
    pairs: HashSet<(u64, Addr), RandomState>,
    left_out: u64,
}

impl NetnsAddresses {
    /// Creates an empty set.
    pub fn new() -> NetnsAddresses {
        NetnsAddresses::default()
    }

    /// Adds an address of the namespace whose inode is `netns_id`. Ignores addresses that have a different meaning in
    /// each namespace (loopback) or on each link, because they do not identify a namespace.
    pub fn add(&mut self, netns_id: u64, addr: Addr) {
        let addr = addr.unmapped();
        if addr.is_loopback() || addr.is_link_local_v6() || addr.is_unspecified() || addr.is_multicast() {
            return;
        }
        if self.pairs.len() >= HOMES_MAX {
            self.left_out += 1;
            return;
        }
        self.addresses.insert(addr);
        self.pairs.insert((netns_id, addr));
    }

    /// Number of addresses that were not added for lack of room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// True if `addr` (unmapped) belongs to another namespace of this host and not to `netns_id`: packets to it leave
    /// the namespace, and may arrive in another one on this host.
    #[inline]
    pub fn is_elsewhere(&self, addr: Addr, netns_id: u64) -> bool {
        self.addresses.contains(&addr) && !self.pairs.contains(&(netns_id, addr))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn elsewhere_is_in_another_namespace_and_not_here() {
        let addr = |text: &str| text.parse::<Addr>().unwrap();
        let mut addresses = NetnsAddresses::new();
        addresses.add(1, addr("10.0.0.1"));
        addresses.add(2, addr("10.0.0.1"));
        addresses.add(2, addr("::ffff:10.0.0.2"));
        for nowhere in ["127.0.0.1", "::1", "fe80::1", "0.0.0.0", "::"] {
            addresses.add(1, addr(nowhere));
            assert!(!addresses.is_elsewhere(addr(nowhere), 2), "{nowhere}");
        }
        assert!(addresses.is_elsewhere(addr("10.0.0.2"), 1) && !addresses.is_elsewhere(addr("10.0.0.2"), 2));
        assert!(addresses.is_elsewhere(addr("10.0.0.1"), 3) && !addresses.is_elsewhere(addr("10.0.0.1"), 1));
        assert!(!addresses.is_elsewhere(addr("10.0.0.3"), 1));
    }
}
