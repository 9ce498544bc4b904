//! Checksums over the sockets of each port, because the owners of entries may change while the entries do not.
//!
//! The owner of an entry depends on the sockets whose local port is the source port of one of its two directions, and
//! on the local addresses. So cached rows are also keyed by these sums, and a row is rendered again if one of its sums
//! has changed: 32 bits of a secret hash.

use record::{CachedRow, RowBytes, RowCache};
use std::hash::{BuildHasher, Hash, RandomState};

/// Number of sums. Ports share sums so that these stay in the nearest cache (16 KiB): two are read for each row.
const SUMS: usize = 1 << 12;

/// Order-independent sums of hashes.
pub(crate) struct PortSums {
    secret: RandomState,
    /// Sums over the sockets of some ports.
    by_port: Box<[u32; SUMS]>,
    /// Sum of the data that affects all rows.
    of_all: u32,
}

impl PortSums {
    /// Sums over nothing. Only sums with the same secret can be compared.
    pub(crate) fn new(secret: &RandomState) -> PortSums {
        PortSums { secret: secret.clone(), by_port: Box::new([0; SUMS]), of_all: 0 }
    }

    /// Adds data that affects the rows of one port.
    pub(crate) fn add_at_port(&mut self, port: u16, what: impl Hash) {
        let sum = &mut self.by_port[usize::from(port) % SUMS];
        *sum = sum.wrapping_add(self.secret.hash_one(what) as u32);
    }

    /// Adds data that affects all rows.
    pub(crate) fn add_for_all(&mut self, what: impl Hash) {
        self.of_all = self.of_all.wrapping_add(self.secret.hash_one(what) as u32);
    }

    #[inline]
    fn of(&self, [orig, reply]: [u16; 2]) -> u32 {
        let at = |port: u16| self.by_port[usize::from(port) % SUMS];
        // The two ports may be equal, hence the rotation.
        at(orig) ^ at(reply).rotate_left(1) ^ self.of_all
    }
}

/// A cache that recognizes rows by their bytes and by the sums.
pub(crate) struct OwnerChecksum<'u, P> {
    pub(crate) cache: &'u dyn RowCache,
    pub(crate) sums: PortSums,
    /// The source ports of both directions of an undecoded row.
    pub(crate) own_ports: P,
}

impl<P: Fn(&RowBytes<'_>) -> Option<[u16; 2]>> RowCache for OwnerChecksum<'_, P> {
    fn exclude_field(&self, field: usize) -> bool {
        self.cache.exclude_field(field)
    }

    #[inline]
    fn reuse(&self, bytes: RowBytes<'_>) -> Option<CachedRow> {
        // The upper half of the key is used to look up a row.
        let key = bytes.key ^ u64::from(self.sums.of((self.own_ports)(&bytes)?)) << 32;
        self.cache.reuse(RowBytes { key, ..bytes })
    }

    fn invalidate(&self) {
        self.cache.invalidate();
    }

    fn set_tag(&self, tag: Option<u32>) {
        self.cache.set_tag(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_tell_of_their_ports_alone() {
        let secret = RandomState::new();
        let made = |items: &[(u16, &str)], all: &[&str]| {
            let mut sums = PortSums::new(&secret);
            items.iter().for_each(|(port, what)| sums.add_at_port(*port, what));
            all.iter().for_each(|what| sums.add_for_all(what));
            sums
        };
        let one = made(&[(80, "a"), (443, "b"), (80, "c")], &["here"]);
        let same = made(&[(80, "c"), (80, "a"), (443, "b")], &["here"]);
        let other = made(&[(80, "a"), (443, "b"), (80, "d")], &["here"]);
        let moved = made(&[(80, "a"), (443, "b"), (80, "c")], &["there"]);
        for ports in [[80, 9], [9, 80], [443, 80], [443, 9], [80, 80], [9, 9]] {
            assert_eq!(one.of(ports), same.of(ports), "{ports:?}");
            assert_eq!(one.of(ports) == other.of(ports), !ports.contains(&80), "{ports:?}");
            assert_ne!(one.of(ports), moved.of(ports), "{ports:?}");
        }
        assert_ne!(one.of([80, 443]), one.of([443, 80]));
    }
}
