//! The connections of a batch of packets to query: without duplicates, and within a time limit that is shared fairly
//! between the logging rules or the captured interfaces (docs/adr/0024).

use super::NetnsTuple;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use sys::{Share, clock};

/// Maximum connections queried per second, with one or two questions of about 4 µs each: up to two fifths of a core.
///
/// Bound: lookups of connections per second, shared equally between rules or interfaces
/// (`capture_entries::root_capture_bounds_what_a_flood_makes_it_ask`). Beyond: further rows have no connection;
/// counted. By: any sender of packets, for the rows of that rule or interface.
pub(super) const LOOKUPS_PER_S: u64 = 50_000;
const NS_A_LOOKUP: u64 = 1_000_000_000 / LOOKUPS_PER_S;
/// Maximum connections queried at once after a pause.
///
/// Bound: lookups at once after a pause. Beyond: further rows have no connection; counted. By: any sender of packets,
/// for the rows of that rule or interface.
pub(super) const LOOKUPS_AT_ONCE: u64 = 8192;

/// The connections of a batch.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    known: HashSet<NetnsTuple>,
    /// Each connection, with the number that its sharer requested before it.
    list: Vec<(u32, NetnsTuple)>,
    by_sharer: HashMap<u64, u32>,
}

impl Wanted {
    /// Adds a connection; `sharer` is the rule or interface of the packet.
    pub(super) fn add(&mut self, of: NetnsTuple, sharer: &impl Hash) {
        if !self.known.insert(of) {
            return;
        }
        // Two rules whose hashes collide share their part.
        let mut number = DefaultHasher::new();
        sharer.hash(&mut number);
        let count = self.by_sharer.entry(number.finish()).or_default();
        self.list.push((*count, of));
        *count += 1;
    }

    /// The number of connections.
    pub(super) fn len(&self) -> u64 {
        self.list.len() as u64
    }

    /// Returns at most `most` connections, and then the rest: the first ones of each sharer, in equal numbers.
    pub(super) fn take(&mut self, most: usize) -> (Vec<NetnsTuple>, Vec<NetnsTuple>) {
        self.known.clear();
        self.by_sharer.clear();
        if self.list.len() > most {
            self.list.sort_by_key(|(before, _)| *before);
        }
        let mut all: Vec<NetnsTuple> = self.list.drain(..).map(|(_, of)| of).collect();
        let others = all.split_off(most.min(all.len()));
        (all, others)
    }
}

/// The share of the time that queries may take, if each takes 20 µs.
pub(super) fn lookup_share() -> Share {
    Share::one_in(1, LOOKUPS_AT_ONCE * NS_A_LOOKUP)
}

/// How many of the `wanted` connections may be queried now.
pub(super) fn take_lookups(share: &Share, wanted: u64) -> usize {
    usize::try_from(share.take(clock::monotonic_ns(), wanted, NS_A_LOOKUP)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::CtTuple;

    #[test]
    fn a_flood_of_one_rule_leaves_others_their_part() {
        let mut wanted = Wanted::default();
        let of = |n: u16, netns_id| NetnsTuple { netns_id, tuple: CtTuple { src_part: n, ..CtTuple::EMPTY } };
        (0..1000).for_each(|n| wanted.add(of(n, 1), &"flood"));
        (0..10).for_each(|n| wanted.add(of(n, 2), &"quiet"));
        (0..10).for_each(|n| wanted.add(of(n, 2), &"quiet"));
        let (asked, others) = wanted.take(40);
        let quiet = asked.iter().filter(|of| of.netns_id == 2).count();
        assert_eq!((asked.len(), quiet, others.len()), (40, 10, 970));
        assert_eq!(wanted.take(40), (Vec::new(), Vec::new()));
    }
}
