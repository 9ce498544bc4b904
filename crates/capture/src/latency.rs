//! Measures how long packets took from the kernel to the row writer.

/// Steps per power of two: a duration is accurate to one eighth.
const STEPS: u32 = 8;
const STEP_BITS: u32 = 3;

/// A histogram of durations, in steps of one eighth. It has a fixed size; adding a duration costs a few ns.
#[derive(Debug, Clone)]
pub struct LatencyCounts {
    counts: [u64; (64 * STEPS) as usize],
    all: u64,
}

impl Default for LatencyCounts {
    fn default() -> LatencyCounts {
        LatencyCounts { counts: [0; (64 * STEPS) as usize], all: 0 }
    }
}

impl LatencyCounts {
    /// Counts a duration in ns.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        if let Some(count) = self.counts.get_mut(place(ns)) {
            *count += 1;
        }
        self.all += 1;
    }

    /// The duration in ns that `thousandths` thousandths of all durations do not exceed; `None` without durations.
    pub fn at(&self, thousandths: u64) -> Option<u64> {
        let rank = (u128::from(self.all) * u128::from(thousandths)).div_ceil(1000).max(1);
        let mut below = 0u128;
        let at = self.counts.iter().position(|count| {
            below += u128::from(*count);
            below >= rank
        });
        at.filter(|_| self.all > 0).map(end_of)
    }
}

fn place(ns: u64) -> usize {
    if ns < u64::from(STEPS) {
        return ns as usize;
    }
    let power = 63 - ns.leading_zeros();
    let step = (ns >> (power - STEP_BITS)) as u32 & (STEPS - 1);
    ((power - STEP_BITS + 1) * STEPS + step) as usize
}

/// The longest duration of a bucket.
fn end_of(place: usize) -> u64 {
    let (power, step) = (place as u32 / STEPS, place as u64 % u64::from(STEPS));
    match power {
        0 => step,
        _ => {
            let width = 1u64 << (power - 1);
            ((u64::from(STEPS) + step) << (power - 1)).saturating_add(width - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_right_to_an_eighth() {
        for ns in [0, 1, 7, 8, 9, 15, 16, 1000, 65_535, 1 << 40, u64::MAX >> 1] {
            let end = end_of(place(ns));
            assert!(end >= ns && end - ns <= ns / 8, "{ns}: {end}");
        }
        let mut counts = LatencyCounts::default();
        assert_eq!(counts.at(500), None);
        (1..=1000u64).for_each(|us| counts.add(us * 1000));
        let (half, most) = (counts.at(500).unwrap_or(0), counts.at(990).unwrap_or(0));
        assert!((500_000..=563_000).contains(&half) && (990_000..=1_114_000).contains(&most), "{half} {most}");
        counts.add(u64::MAX);
        assert!(counts.at(1000).is_some());
    }
}
