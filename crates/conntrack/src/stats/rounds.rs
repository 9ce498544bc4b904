//! Computes how much counters grew from round to round.
//!
//! The kernel's counters have 32 bits per CPU. A counter that is smaller than before has wrapped, or it belongs to a
//! new namespace that got the inode number of a removed one. Only the size of the step distinguishes the two.
use std::collections::{BTreeMap, BTreeSet};

use record::rows::{StatCounter, StatCounts};

use super::counters::{self, CpuCounts};

/// Maximum step of a counter in one round: 2^31 packets. A larger one is taken for a reset.
const STEP_MAX: u32 = u32::MAX / 2;

/// Counters of the round before.
#[derive(Debug, Default)]
pub struct StatMemory {
    before: BTreeMap<u64, Vec<CpuCounts>>,
    /// Namespaces of this round, including unreadable ones.
    seen: BTreeSet<u64>,
    /// Number of counters that went backwards in this round.
    backwards: u64,
    /// True from the second round on.
    is_later: bool,
    has_begun: bool,
}

/// Growth of one namespace's counters.
#[derive(Debug, Default)]
pub(super) struct CounterGrowth {
    /// False in the first round of a namespace.
    pub(super) was_there: bool,
    /// Growth per CPU, in the order in which they were read; empty if the namespace is new.
    pub(super) cpus: Vec<StatCounts>,
    /// The sum over all CPUs; a counter is `None` if it is `None` for any CPU.
    pub(super) sum: StatCounts,
}

impl StatMemory {
    /// Starts a round.
    pub(super) fn begin(&mut self) {
        self.seen.clear();
        self.backwards = 0;
        self.is_later = self.has_begun;
        self.has_begun = true;
    }

    /// True if this round is not the first.
    pub(super) fn is_later(&self) -> bool {
        self.is_later
    }

    /// Compares the counters of a namespace with the round before and keeps them for the next round.
    pub(super) fn compare(&mut self, netns_id: u64, cpus: &[CpuCounts]) -> CounterGrowth {
        self.seen.insert(netns_id);
        let Some(before) = self.before.insert(netns_id, cpus.to_vec()) else { return CounterGrowth::default() };
        let mut growth = CounterGrowth { was_there: true, ..CounterGrowth::default() };
        for now in cpus {
            let earlier = before.iter().find(|earlier| earlier.cpu == now.cpu);
            growth
                .cpus
                .push(earlier.map_or_else(StatCounts::default, |earlier| self.step(&earlier.counts, &now.counts)));
        }
        growth.sum = counters::sum(growth.cpus.iter());
        for counter in StatCounter::ALL {
            if growth.cpus.iter().any(|cpu| cpu.get(counter).is_none()) {
                growth.sum.set(counter, None);
            }
        }
        growth
    }

    /// Records a namespace that exists but could not be read: its counters of the round before are kept.
    pub(super) fn keep_previous(&mut self, netns_id: u64) {
        self.seen.insert(netns_id);
    }

    /// The namespaces of earlier rounds that were not in this one. Removes them.
    pub(super) fn take_vanished(&mut self) -> Vec<u64> {
        let gone: Vec<u64> = self.before.keys().filter(|known| !self.seen.contains(known)).copied().collect();
        self.before.retain(|known, _| self.seen.contains(known));
        gone
    }

    /// Number of counters that went backwards in this round.
    pub(super) fn backward_counters(&self) -> u64 {
        self.backwards
    }

    fn step(&mut self, before: &StatCounts, now: &StatCounts) -> StatCounts {
        let mut step = StatCounts::default();
        for counter in StatCounter::ALL {
            let (Some(before), Some(now)) = (before.get(counter), now.get(counter)) else { continue };
            let grown = growth(before, now);
            self.backwards += u64::from(grown.is_none());
            step.set(counter, grown);
        }
        step
    }
}

/// Growth of a counter; `None` if it went backwards.
fn growth(before: u64, now: u64) -> Option<u64> {
    match (u32::try_from(before), u32::try_from(now)) {
        (Ok(before), Ok(now)) => Some(now.wrapping_sub(before)).filter(|step| *step <= STEP_MAX).map(u64::from),
        // Larger than any kernel's counter: it comes from a recording.
        _ => now.checked_sub(before),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn cpus(drops: &[u64]) -> Vec<CpuCounts> {
        let of = |(cpu, drop): (u32, &u64)| {
            let mut counts = StatCounts::default();
            counts.set(StatCounter::Drop, Some(*drop));
            CpuCounts { cpu, counts }
        };
        (0..).zip(drops).map(of).collect()
    }

    fn drop_of(counts: &StatCounts) -> Option<u64> {
        counts.get(StatCounter::Drop)
    }

    #[test]
    fn three_rounds_with_a_wrap_and_a_reset() {
        let mut memory = StatMemory::default();
        memory.begin();
        assert!(!memory.is_later());
        let first = memory.compare(7, &cpus(&[10, u64::from(u32::MAX)]));
        assert!(!first.was_there && first.cpus.is_empty());
        memory.begin();
        assert!(memory.is_later());
        let second = memory.compare(7, &cpus(&[15, 3]));
        assert_eq!(second.cpus.iter().map(drop_of).collect::<Vec<_>>(), [Some(5), Some(4)], "one ran over");
        assert_eq!((drop_of(&second.sum), memory.backward_counters()), (Some(9), 0));
        assert_eq!(second.sum.get(StatCounter::Found), None);
        memory.begin();
        let third = memory.compare(7, &cpus(&[2, 4]));
        assert_eq!(third.cpus.iter().map(drop_of).collect::<Vec<_>>(), [None, Some(1)], "one began again");
        assert_eq!((drop_of(&third.sum), memory.backward_counters()), (None, 1));
        memory.begin();
        assert_eq!(drop_of(&memory.compare(7, &cpus(&[3, 4])).sum), Some(1), "and goes on from there");
    }

    #[test]
    fn gone_is_not_unread() {
        let mut memory = StatMemory::default();
        memory.begin();
        memory.compare(7, &cpus(&[1]));
        memory.compare(8, &cpus(&[1]));
        memory.compare(9, &cpus(&[1]));
        memory.begin();
        memory.compare(7, &cpus(&[1]));
        memory.keep_previous(8);
        assert_eq!(memory.take_vanished(), [9]);
        memory.begin();
        memory.compare(7, &cpus(&[1]));
        assert_eq!(drop_of(&memory.compare(8, &cpus(&[5])).sum), Some(4), "what was known is kept");
        assert!(memory.take_vanished().is_empty(), "it is told once");
    }

    proptest! {
        #[test]
        fn never_negative(before: u32, step in 0..STEP_MAX) {
            prop_assert_eq!(growth(before.into(), before.wrapping_add(step).into()), Some(step.into()));
        }

        #[test]
        fn a_reset_of_small_counters_is_null(before in 1..STEP_MAX, now: u32) {
            let now = now % before;
            prop_assert_eq!(growth(before.into(), now.into()), None);
        }
    }
}
