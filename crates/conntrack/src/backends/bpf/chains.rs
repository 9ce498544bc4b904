//! Lengths of the hash table's chains, as a walk met them; on a tape they are a few bytes beside its blocks.
use netlink::prefix::{u32_at, u64_at};
use sys::Host;

/// Lengths of the chains: of the one table that all namespaces share, and of both directions, so that an entry counts
/// twice. The kernel counts the same: it refuses an entry (`chaintoolong`) whose chain is longer than a random length
/// of 50 to 80 nodes (net/netfilter/nf_conntrack_core.c: `MIN_CHAINLEN`, `MAX_CHAINLEN`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chains {
    /// Nodes of the longest.
    pub longest: u32,
    /// Nodes of all.
    pub nodes: u64,
}

impl Chains {
    fn put(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.longest.to_ne_bytes());
        into.extend_from_slice(&self.nodes.to_ne_bytes());
    }

    /// `None` also where a recording says what cannot be.
    fn of_bytes(bytes: &[u8]) -> Option<Chains> {
        let chains = Chains { longest: u32_at(bytes, 0)?, nodes: u64_at(bytes, 4)? };
        (bytes.len() == 12 && u64::from(chains.longest) <= chains.nodes).then_some(chains)
    }
}

/// Keeps `walked` on the tape beside the stream `key`, and gives it back; in a replay, what the recorded walk met.
pub(crate) fn kept(host: &Host, key: &str, walked: Option<Chains>) -> Option<Chains> {
    let mut bytes = Vec::new();
    let read = host.bytes(&format!("{key}/chains"), "", &mut bytes, |into| {
        if let Some(chains) = walked {
            chains.put(into);
        }
        Ok(())
    });
    // A recording of an older version does not hold them.
    read.ok().and_then(|()| Chains::of_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_chains_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Some(chains) = Chains::of_bytes(&bytes) {
                let mut again = Vec::new();
                chains.put(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn what_is_kept_comes_back(longest: u32, more: u32) {
            let chains = Chains { longest, nodes: u64::from(longest) + u64::from(more) };
            let mut bytes = Vec::new();
            chains.put(&mut bytes);
            prop_assert_eq!(Chains::of_bytes(&bytes), Some(chains));
            prop_assert_eq!(kept(&Host::live(), "bpf/conntrack/1", Some(chains)), Some(chains));
            bytes.pop();
            prop_assert_eq!(Chains::of_bytes(&bytes), None);
        }
    }
}
