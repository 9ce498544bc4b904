//! What counters grew by from round to round.
//!
//! The kernel counts in 32 bits a CPU: a counter that is smaller than before has run over, or is another namespace's
//! that got the number of one that is gone. Which of the two it is, only the size of the step can tell.
use std::collections::{BTreeMap, BTreeSet};

use record::rows::{StatCounter, StatCounts};

use super::counters::{self, CpuCounts};

/// A step as large as this in one round is none: 2^31 packets.
const STEP_MAX: u32 = u32::MAX / 2;

/// What is remembered of the round before.
#[derive(Debug, Default)]
pub struct StatMemory {
    before: BTreeMap<u64, Vec<CpuCounts>>,
    /// Namespaces of this round, read or not.
    seen: BTreeSet<u64>,
    /// Counters that went backwards in this round.
    backwards: u64,
    /// True from the second round on.
    is_later: bool,
    has_begun: bool,
}

/// What one namespace's counters did.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// False in the first round of a namespace.
    pub(super) was_there: bool,
    /// By CPU, in the order of the reading; empty if it was not there.
    pub(super) cpus: Vec<StatCounts>,
    /// All CPUs together; a counter is `None` if it is of any.
    pub(super) sum: StatCounts,
}

impl StatMemory {
    /// Begins a round.
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

    /// Compares the counters of a namespace with those of the round before and keeps them for the next.
    pub(super) fn compare(&mut self, netns_id: u64, cpus: &[CpuCounts]) -> Growth {
        self.seen.insert(netns_id);
        let Some(before) = self.before.insert(netns_id, cpus.to_vec()) else { return Growth::default() };
        let mut growth = Growth { was_there: true, ..Growth::default() };
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

    /// Notes a namespace that is there and could not be read: what is known of it is kept.
    pub(super) fn unread(&mut self, netns_id: u64) {
        self.seen.insert(netns_id);
    }

    /// The namespaces of earlier rounds that were not in this one; they are forgotten.
    pub(super) fn gone(&mut self) -> Vec<u64> {
        let gone: Vec<u64> = self.before.keys().filter(|known| !self.seen.contains(known)).copied().collect();
        self.before.retain(|known, _| self.seen.contains(known));
        gone
    }

    /// How many counters of this round went backwards.
    pub(super) fn backwards(&self) -> u64 {
        self.backwards
    }

    fn step(&mut self, before: &StatCounts, now: &StatCounts) -> StatCounts {
        let mut step = StatCounts::default();
        for counter in StatCounter::ALL {
            let (Some(before), Some(now)) = (before.get(counter), now.get(counter)) else { continue };
            let grown = grown(before, now);
            self.backwards += u64::from(grown.is_none());
            step.set(counter, grown);
        }
        step
    }
}

/// How much a counter grew; `None` if it went backwards.
fn grown(before: u64, now: u64) -> Option<u64> {
    match (u32::try_from(before), u32::try_from(now)) {
        (Ok(before), Ok(now)) => Some(now.wrapping_sub(before)).filter(|step| *step <= STEP_MAX).map(u64::from),
        // No kernel's number; a recording may say anything.
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
        assert_eq!((drop_of(&second.sum), memory.backwards()), (Some(9), 0));
        assert_eq!(second.sum.get(StatCounter::Found), None);
        memory.begin();
        let third = memory.compare(7, &cpus(&[2, 4]));
        assert_eq!(third.cpus.iter().map(drop_of).collect::<Vec<_>>(), [None, Some(1)], "one began again");
        assert_eq!((drop_of(&third.sum), memory.backwards()), (None, 1));
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
        memory.unread(8);
        assert_eq!(memory.gone(), [9]);
        memory.begin();
        memory.compare(7, &cpus(&[1]));
        assert_eq!(drop_of(&memory.compare(8, &cpus(&[5])).sum), Some(4), "what was known is kept");
        assert!(memory.gone().is_empty(), "it is told once");
    }

    proptest! {
        #[test]
        fn never_negative(before: u32, step in 0..STEP_MAX) {
            prop_assert_eq!(grown(before.into(), before.wrapping_add(step).into()), Some(step.into()));
        }

        #[test]
        fn a_reset_of_small_counters_is_null(before in 1..STEP_MAX, now: u32) {
            let now = now % before;
            prop_assert_eq!(grown(before.into(), now.into()), None);
        }
    }
}
