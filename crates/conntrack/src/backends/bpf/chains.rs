//! Chain lengths of the hash table, measured by a walk; a recording stores them as a few bytes next to the walk's
//! blocks.
use netlink::prefix::{u32_at, u64_at};
use sys::Host;

/// Chain lengths of the hash table. All namespaces share the table, and both directions of an entry are in it, so each
/// entry counts twice. The kernel counts the same way: it refuses an entry (`chaintoolong`) whose chain is longer than
/// a random limit of 50 to 80 nodes (net/netfilter/nf_conntrack_core.c: `MIN_CHAINLEN`, `MAX_CHAINLEN`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chains {
    /// Nodes of the longest chain.
    pub longest: u32,
    /// Nodes of all chains.
    pub nodes: u64,
}

impl Chains {
    fn put(self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.longest.to_ne_bytes());
        into.extend_from_slice(&self.nodes.to_ne_bytes());
    }

    /// Returns `None` also if a recording contains impossible values.
    fn of_bytes(bytes: &[u8]) -> Option<Chains> {
        let chains = Chains { longest: u32_at(bytes, 0)?, nodes: u64_at(bytes, 4)? };
        (bytes.len() == 12 && u64::from(chains.longest) <= chains.nodes).then_some(chains)
    }
}

/// Live, records `walked` next to the stream `key` and returns it; in a replay, returns the recorded lengths.
pub(crate) fn record_or_replay(host: &Host, key: &str, walked: Option<Chains>) -> Option<Chains> {
    let mut bytes = Vec::new();
    let read = host.bytes(&format!("{key}/chains"), "", &mut bytes, |into| {
        if let Some(chains) = walked {
            chains.put(into);
        }
        Ok(())
    });
    // Recordings of older versions do not contain them.
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
            prop_assert_eq!(record_or_replay(&Host::live(), "bpf/conntrack/1", Some(chains)), Some(chains));
            bytes.pop();
            prop_assert_eq!(Chains::of_bytes(&bytes), None);
        }
    }
}
