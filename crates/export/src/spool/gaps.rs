//! Gaps: numbers of dropped messages among those that wait.

/// Ranges of numbers, sorted, neither overlapping nor touching.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<(u64, u64)>);

impl Gaps {
    /// Adds `from..to`; returns how many of these numbers are new.
    pub(super) fn add(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let known = self.count_within(from, to);
        // Merges it with all ranges that it touches.
        let begin = self.0.partition_point(|(_, end)| *end < from);
        let end = self.0.partition_point(|(start, _)| *start <= to);
        let touching = self.0.get(begin..end).unwrap_or_default();
        let low = touching.first().map_or(from, |(start, _)| from.min(*start));
        let high = touching.last().map_or(to, |(_, end)| to.max(*end));
        self.0.splice(begin..end, [(low, high)]);
        to - from - known
    }

    /// Returns how many numbers of `from..to` are in gaps.
    pub(super) fn count_within(&self, from: u64, to: u64) -> u64 {
        let begin = self.0.partition_point(|(_, end)| *end <= from);
        let later = self.0.get(begin..).unwrap_or_default();
        let touching = later.iter().take_while(|(start, _)| *start < to);
        touching.map(|(start, end)| (*end).min(to) - (*start).max(from)).sum()
    }

    /// Removes `from..to`; returns how many of these numbers were in gaps.
    pub(super) fn clear(&mut self, from: u64, to: u64) -> u64 {
        let known = self.count_within(from, to);
        let begin = self.0.partition_point(|(_, end)| *end <= from);
        let end = self.0.partition_point(|(start, _)| *start < to);
        let touching = self.0.get(begin..end).unwrap_or_default();
        let before = touching.first().map(|(start, _)| (*start, from)).filter(|(start, end)| start < end);
        let after = touching.last().map(|(_, end)| (to, *end)).filter(|(start, end)| start < end);
        let rest: Vec<(u64, u64)> = before.into_iter().chain(after).collect();
        self.0.splice(begin.min(end)..end, rest);
        known
    }

    /// Forgets gaps that end at or below `number`.
    pub(super) fn remove_below(&mut self, number: u64) {
        self.0.retain(|(_, end)| *end > number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_count_once() {
        let mut gaps = Gaps::default();
        assert_eq!((gaps.add(10, 20), gaps.add(30, 40), gaps.add(5, 5)), (10, 10, 0));
        assert_eq!((gaps.count_within(0, 100), gaps.count_within(15, 35), gaps.count_within(20, 30)), (20, 10, 0));
        assert_eq!((gaps.add(15, 32), gaps.0.len()), (10, 1));
        assert_eq!((gaps.add(40, 41), gaps.add(2, 10), gaps.0.as_slice()), (1, 8, &[(2, 41)][..]));
        assert_eq!((gaps.clear(10, 20), gaps.clear(50, 60), gaps.0.as_slice()), (10, 0, &[(2, 10), (20, 41)][..]));
        assert_eq!((gaps.clear(5, 30), gaps.0.as_slice()), (15, &[(2, 5), (30, 41)][..]));
        gaps.remove_below(41);
        assert_eq!(gaps.count_within(0, 100), 0);
    }
}
