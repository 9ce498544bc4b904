//! The number of connections in each state: two states are stored in the row, more in a separate list.

use record::State;
use record::rows::FlowStates;

/// Number of states (0–13).
const STATES: u8 = 14;
/// Marks an unused count.
const FREE: u8 = 15;
/// Marks a tally whose counts are in the list.
const SPILLED: u8 = 14;

/// Counts by state in 9 bytes. Nearly every flow has one or two states; the others use the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// Counts of both states, or the index in the list and an unused value.
    pub(crate) counts: [u32; 2],
    /// Two states of four bits.
    pub(crate) states: u8,
}

impl Tally {
    pub(crate) const EMPTY: Tally = Tally { counts: [0; 2], states: FREE << 4 | FREE };

    /// Counts one connection in `state`.
    #[inline]
    pub(crate) fn add(&mut self, state: State, spill: &mut Vec<FlowStates>) {
        let state = if state.0 < STATES { state.0 } else { 0 };
        let (first, second) = (self.states >> 4, self.states & 15);
        if first == state {
            self.counts[0] = self.counts[0].saturating_add(1);
        } else if second == state {
            self.counts[1] = self.counts[1].saturating_add(1);
        } else if first == FREE {
            (self.counts[0], self.states) = (1, state << 4 | second);
        } else if second == FREE {
            (self.counts[1], self.states) = (1, first << 4 | state);
        } else {
            self.add_spilled(state, spill);
        }
    }

    fn add_spilled(&mut self, state: u8, spill: &mut Vec<FlowStates>) {
        if self.states >> 4 != SPILLED {
            let counts = self.expand(spill);
            spill.push(counts);
            *self = Tally { counts: [(spill.len() - 1) as u32, 0], states: SPILLED << 4 | SPILLED };
        }
        if let Some(counts) = spill.get_mut(self.counts[0] as usize) {
            let count = &mut counts[state as usize];
            *count = count.saturating_add(1);
        }
    }

    /// Returns the counts of all states.
    pub(crate) fn expand(&self, spill: &[FlowStates]) -> FlowStates {
        let (first, second) = (self.states >> 4, self.states & 15);
        if first == SPILLED {
            return spill.get(self.counts[0] as usize).copied().unwrap_or_default();
        }
        let mut all = FlowStates::default();
        for (state, count) in [(first, self.counts[0]), (second, self.counts[1])] {
            if state < STATES {
                all[state as usize] = count;
            }
        }
        all
    }

    /// Returns the number of connections in all states.
    #[inline]
    pub(crate) fn total(&self, spill: &[FlowStates]) -> u64 {
        if self.states >> 4 != SPILLED {
            return u64::from(self.counts[0]) + u64::from(self.counts[1]);
        }
        self.expand(spill).iter().map(|&n| u64::from(n)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_like_an_array(states in proptest::collection::vec(0u8..20, 0..200)) {
            let (mut tally, mut spill, mut plain) = (Tally::EMPTY, Vec::new(), FlowStates::default());
            for state in states {
                tally.add(State(state), &mut spill);
                plain[if state < 14 { state as usize } else { 0 }] += 1;
            }
            prop_assert_eq!(tally.expand(&spill), plain);
            prop_assert_eq!(tally.total(&spill), plain.iter().map(|&n| u64::from(n)).sum::<u64>());
        }
    }
}
