//! Which addresses are at home in which network namespaces of this host.

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use record::Addr;

/// Addresses kept at most, all namespaces together: what is over is taken for another host's.
const HOMES_MAX: usize = 1 << 18;

/// (namespace, address) pairs. A question costs two probes.
#[derive(Debug, Default)]
pub struct NetnsAddresses {
    addresses: HashSet<Addr, RandomState>,
    pairs: HashSet<(u64, Addr), RandomState>,
    left_out: u64,
}

impl NetnsAddresses {
    /// No address yet.
    pub fn new() -> NetnsAddresses {
        NetnsAddresses::default()
    }

    /// Adds an address of the namespace whose inode is `netns_id`. Addresses that mean something else in each
    /// namespace (loopback) or on each link are passed over: nothing can be told by them.
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

    /// How many addresses were too many.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// True if `addr` (unmapped) is an address of another namespace of this host and none of `netns_id`: packets to it
    /// leave the namespace, and may arrive in another one here.
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
