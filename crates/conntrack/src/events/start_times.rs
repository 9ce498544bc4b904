//! Start times of entries, for their duration at the end. Kept here where the kernel keeps none
//! (net.netfilter.nf_conntrack_timestamp is 0).
use std::collections::HashMap;

use record::Addr;
use record::rows::{Conntrack, CtTuple};

/// Most entries whose start is kept, some 40 bytes each; further ones have no duration.
pub(crate) const MAX: usize = 1 << 20;

/// Start times in nanoseconds since 1970, by entry.
#[derive(Debug, Default)]
pub(crate) struct StartTimes {
    began: HashMap<u64, u64>,
    /// Entries beyond [`MAX`].
    pub(crate) unremembered: u64,
}

impl StartTimes {
    /// Records the start of a new entry.
    pub(crate) fn begin(&mut self, entry: &Conntrack<'_>, now_ns: u64) {
        // The kernel reports this one in the destroy event, too.
        if entry.start_ns.is_some() {
            return;
        }
        if self.began.len() >= MAX {
            self.unremembered += 1;
            return;
        }
        self.began.insert(key(entry), now_ns);
    }

    /// Forgets an entry that ended and returns its duration in microseconds.
    pub(crate) fn end(&mut self, entry: &Conntrack<'_>, now_ns: u64) -> Option<u64> {
        // Removed even if the kernel reports the start: the sysctl may have changed meanwhile.
        let seen = if self.began.is_empty() { None } else { self.began.remove(&key(entry)) };
        let began = entry.start_ns.or(seen)?;
        Some(entry.stop_ns.unwrap_or(now_ns).saturating_sub(began) / 1000)
    }
}

/// 32 bits of the kernel's id, which is a keyed hash, and 32 bits of a hash of the original tuple: a million entries
/// rarely have two with the same key.
pub(crate) fn key(entry: &Conntrack<'_>) -> u64 {
    u64::from(entry.id.unwrap_or(0)) << 32 | mixed(&entry.orig, entry.netns_id) >> 32
}

fn mixed(tuple: &CtTuple, netns_id: u64) -> u64 {
    // Any odd number with bits all over it spreads; nobody can choose tuples against the kernel's half of the key.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let words = |addr: Addr| match addr {
        Addr::V4(octets) => (u64::from(u32::from_ne_bytes(octets)), 0),
        Addr::V6(octets) => {
            let all = u128::from_ne_bytes(octets);
            (all as u64, (all >> 64) as u64)
        }
    };
    let ((a, b), (c, d)) = (words(tuple.src), words(tuple.dst));
    let parts = u64::from(tuple.src_part) << 32 | u64::from(tuple.dst_part) << 8 | u64::from(tuple.proto);
    [a, b, c, d, parts, netns_id]
        .into_iter()
        .fold(0, |hash: u64, word| (hash.rotate_left(23) ^ word).wrapping_mul(SPREAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_the_kernel_or_by_us() {
        let mut start_times = StartTimes::default();
        let seen = Conntrack { id: Some(7), ..Conntrack::EMPTY };
        let other = Conntrack { orig: CtTuple { src_part: 9, ..CtTuple::EMPTY }, ..seen };
        start_times.begin(&seen, 5_000_000);
        assert_eq!(start_times.end(&other, 9_000_000), None, "the same id, another entry");
        assert_eq!(start_times.end(&seen, 9_000_000), Some(4_000));
        assert_eq!(start_times.end(&seen, 9_000_000), None, "only once");
        let told = Conntrack { start_ns: Some(1_000_000), stop_ns: Some(3_000_000), ..seen };
        start_times.begin(&told, 1_000_000);
        assert!(start_times.began.is_empty());
        assert_eq!(start_times.end(&told, 9_000_000), Some(2_000));
        assert_eq!(start_times.end(&Conntrack { stop_ns: None, ..told }, 9_000_000), Some(8_000));
    }
}
