//! Facts about values on a path through the graph, known from the tests that the path has passed.

use crate::graph::{Compare, Test};
use crate::value::{MemorySlot, ValueId, Values};

/// Values that are remembered per path. If there are more, the oldest are forgotten, which only costs instructions.
const VALUES_MAX: usize = 24;

/// Numbers that a value is known to differ from.
const NOT_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq)]
struct KnownFact {
    value: ValueId,
    lowest: u32,
    highest: u32,
    not: Vec<u32>,
    /// Bits that are known to be one, and to be zero.
    ones: u32,
    zeros: u32,
}

/// The facts of one path, or the facts that several paths share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PathFacts {
    list: Vec<KnownFact>,
}

impl PathFacts {
    fn find(&self, value: ValueId) -> Option<&KnownFact> {
        self.list.iter().find(|known| known.value == value)
    }

    /// Returns the result of `test` on this path, if it is known.
    pub(crate) fn outcome(&self, values: &Values, test: Test) -> Option<bool> {
        let right = values.constant_of(test.right)?;
        let KnownFact { lowest, highest, not, ones, zeros, .. } = self.find(test.left)?;
        let (lowest, highest) = (*lowest, *highest);
        match test.compare {
            Compare::Equal if lowest == highest => Some(lowest == right),
            Compare::Equal => {
                let is_out = right < lowest || right > highest || not.contains(&right);
                (is_out || right & zeros != 0 || !right & ones != 0).then_some(false)
            }
            Compare::Greater if lowest > right => Some(true),
            Compare::Greater if highest <= right => Some(false),
            Compare::GreaterOrEqual if lowest >= right => Some(true),
            Compare::GreaterOrEqual if highest < right => Some(false),
            Compare::AnyBit if lowest == highest => Some(lowest & right != 0),
            Compare::AnyBit if ones & right != 0 => Some(true),
            Compare::AnyBit if zeros & right == right => Some(false),
            _ => None,
        }
    }

    /// Adds the result of `test`.
    pub(crate) fn add_result(&mut self, values: &Values, test: Test, said: bool) {
        let Some(right) = values.constant_of(test.right) else { return };
        let at = match self.list.iter().position(|known| known.value == test.left) {
            Some(at) => at,
            None => {
                if self.list.len() >= VALUES_MAX {
                    self.list.remove(0);
                }
                let value = test.left;
                self.list.push(KnownFact { value, lowest: 0, highest: u32::MAX, not: Vec::new(), ones: 0, zeros: 0 });
                self.list.len() - 1
            }
        };
        let Some(known) = self.list.get_mut(at) else { return };
        match (test.compare, said) {
            (Compare::Equal, true) => (known.lowest, known.highest) = (right, right),
            (Compare::Equal, false) => {
                if known.not.len() >= NOT_MAX {
                    known.not.remove(0);
                }
                known.not.push(right);
            }
            (Compare::Greater, true) => known.lowest = known.lowest.max(right.saturating_add(1)),
            (Compare::Greater, false) => known.highest = known.highest.min(right),
            (Compare::GreaterOrEqual, true) => known.lowest = known.lowest.max(right),
            (Compare::GreaterOrEqual, false) => known.highest = known.highest.min(right.saturating_sub(1)),
            (Compare::AnyBit, true) => known.ones |= if right.is_power_of_two() { right } else { 0 },
            (Compare::AnyBit, false) => known.zeros |= right,
        }
    }

    /// Forgets values that were computed from a word of scratch memory, because the word is now written.
    pub(crate) fn remove_slot(&mut self, values: &Values, slot: MemorySlot) {
        self.list.retain(|known| !values.reads_slot(known.value, slot));
    }

    /// Keeps only what is true on both paths.
    pub(crate) fn intersect(&mut self, other: &PathFacts) {
        self.list.retain_mut(|known| {
            let Some(other) = other.find(known.value) else { return false };
            // A number outside the bounds of the other path is excluded on that path too.
            let excluded = |known: &KnownFact, number: &u32| {
                known.not.contains(number) || *number < known.lowest || *number > known.highest
            };
            let mut not: Vec<u32> = known.not.iter().filter(|number| excluded(other, number)).copied().collect();
            not.extend(other.not.iter().filter(|number| !known.not.contains(number) && excluded(known, number)));
            not.truncate(NOT_MAX);
            known.not = not;
            known.lowest = known.lowest.min(other.lowest);
            known.highest = known.highest.max(other.highest);
            known.ones &= other.ones;
            known.zeros &= other.zeros;
            true
        });
    }
}
