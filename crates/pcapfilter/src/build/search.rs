//! Tests whether a value is in a set, by a balanced search: a thousand addresses cost ten comparisons.

use super::Builder;
use crate::graph::{Compare, NodeId, Test};
use crate::value::ValueId;

/// Up to this number, values are compared one by one. A lower limit makes the program longer, a higher one slower.
const LEAF_MAX: usize = 6;

/// A range of values and the node that they lead to.
#[derive(Clone, Copy)]
struct SearchEntry {
    lowest: u32,
    highest: u32,
    to: NodeId,
}

impl Builder<'_> {
    pub(super) fn ranges(&mut self, value: ValueId, ranges: &[(u32, u32)], yes: NodeId, no: NodeId) -> NodeId {
        let entries: Vec<SearchEntry> = ranges
            .iter()
            .map(|(lowest, highest)| SearchEntry { lowest: *lowest, highest: *highest, to: yes })
            .collect();
        self.search(value, &entries, no)
    }

    /// One search per word. Each value of a word leads to the search for the words that may follow it.
    pub(super) fn prefixes(&mut self, words: &[ValueId], prefixes: &[(u128, u32)], yes: NodeId, no: NodeId) -> NodeId {
        let Some((word, words)) = words.split_first() else { return yes };
        let mut entries = Vec::new();
        let mut rest = prefixes;
        while let Some((prefix, length)) = rest.first() {
            let first = (prefix >> 96) as u32;
            if *length <= 32 {
                let highest = first | u32::MAX.checked_shr(*length).unwrap_or(0);
                entries.push(SearchEntry { lowest: first, highest, to: yes });
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let same = rest.iter().take_while(|(prefix, _)| (prefix >> 96) as u32 == first).count();
            let below: Vec<(u128, u32)> =
                rest.iter().take(same).map(|(prefix, length)| (prefix << 32, length.saturating_sub(32))).collect();
            let to = self.prefixes(words, &below, yes, no);
            entries.push(SearchEntry { lowest: first, highest: first, to });
            rest = rest.get(same..).unwrap_or_default();
        }
        self.search(*word, &entries, no)
    }

    fn search(&mut self, value: ValueId, entries: &[SearchEntry], no: NodeId) -> NodeId {
        if entries.len() <= LEAF_MAX {
            return entries.iter().rev().fold(no, |next, entry| self.entry(value, *entry, next, no));
        }
        let (left, right) = entries.split_at(entries.len() / 2);
        let middle = right.first().map_or(0, |entry| entry.lowest);
        let left = self.search(value, left, no);
        let right = self.search(value, right, no);
        self.compare(value, Compare::GreaterOrEqual, middle, right, left)
    }

    fn entry(&mut self, value: ValueId, entry: SearchEntry, next: NodeId, no: NodeId) -> NodeId {
        let SearchEntry { lowest, highest, to } = entry;
        if lowest == highest {
            return self.compare(value, Compare::Equal, lowest, to, next);
        }
        let inside = if highest == u32::MAX { to } else { self.compare(value, Compare::Greater, highest, next, to) };
        // The ranges are sorted: a value below this range is below all later ones.
        if lowest == 0 { inside } else { self.compare(value, Compare::GreaterOrEqual, lowest, inside, no) }
    }

    fn compare(&mut self, left: ValueId, compare: Compare, right: u32, yes: NodeId, no: NodeId) -> NodeId {
        let right = self.values.constant(right);
        self.graph.test(self.values, Test { left, compare, right }, yes, no)
    }
}
