//! Which entries are out, for the day on which the hash table is resized under a reading.
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use record::Addr;
use record::rows::{Conntrack, CtTuple};

/// Keys of the rows of a reading: 8 bytes each. Before anything has happened they are only noted, which is a multiply
/// and a store; once rows may come twice each is looked for.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Random: peers choose their addresses, they shall not choose which rows pass for others.
    seed: u64,
    noted: Vec<u64>,
    known: Option<HashSet<u64>>,
}

impl Seen {
    pub(crate) fn new() -> Seen {
        Seen { seed: RandomState::new().hash_one(0u8), noted: Vec::new(), known: None }
    }

    /// From now on rows may come a second time.
    pub(crate) fn watch(&mut self) {
        if self.known.is_none() {
            self.known = Some(std::mem::take(&mut self.noted).into_iter().collect());
        }
    }

    /// Notes the row; true if it was here before (and rows may come twice at all).
    #[inline]
    pub(crate) fn is_double(&mut self, row: &Conntrack<'_>) -> bool {
        let key = self.key(row);
        match &mut self.known {
            None => {
                self.noted.push(key);
                false
            }
            Some(known) => !known.insert(key),
        }
    }

    // The original direction names an entry within its zone; the id tells it from one that was there before it.
    #[inline]
    fn key(&self, row: &Conntrack<'_>) -> u64 {
        let CtTuple { src, dst, proto, src_part, dst_part, zone } = row.orig;
        let zone = row.zone.or(zone).unwrap_or(0);
        let parts = u64::from(src_part) << 48 | u64::from(dst_part) << 32 | u64::from(zone) << 8 | u64::from(proto);
        let key = mix(self.seed ^ parts, row.netns_id << 32 | u64::from(row.id.unwrap_or(0)));
        mix_addr(mix_addr(key, src), dst)
    }
}

#[inline]
fn mix_addr(key: u64, addr: Addr) -> u64 {
    match addr {
        Addr::V4(octets) => mix(key, u32::from_ne_bytes(octets).into()),
        Addr::V6(octets) => {
            let octets = u128::from_ne_bytes(octets);
            mix(mix(key, octets as u64), (octets >> 64) as u64)
        }
    }
}

/// A folded multiply: every bit of both goes into every bit of the result.
#[inline]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xe703_7ed1_a0b4_28db);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_is_noticed_once_it_matters() {
        let row =
            |src_part: u16, id| Conntrack { orig: CtTuple { src_part, ..CtTuple::EMPTY }, id, ..Conntrack::EMPTY };
        let mut seen = Seen::new();
        assert!(!seen.is_double(&row(1, None)) && !seen.is_double(&row(1, None)), "nobody looks yet");
        seen.watch();
        assert!(seen.is_double(&row(1, None)));
        assert!(!seen.is_double(&row(1, Some(7))), "the same ends, another entry");
        assert!(!seen.is_double(&row(2, None)));
        assert!(seen.is_double(&row(2, None)));
    }

    #[test]
    fn keys_of_like_rows_differ() {
        let mut seen = Seen::new();
        seen.watch();
        for n in 0..200_000u32 {
            let src = Addr::V4((0x0a00_0000 + n / 1000).to_be_bytes());
            let orig = CtTuple { src, src_part: (n % 1000) as u16, ..CtTuple::EMPTY };
            assert!(!seen.is_double(&Conntrack { orig, ..Conntrack::EMPTY }), "{n}");
        }
    }
}
