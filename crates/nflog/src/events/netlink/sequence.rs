//! Counts the records that the kernel could not deliver, from the numbers that it assigns to records.
use crate::events::succession::NextNumber;

/// Last numbers of each group with records. A list, because there are few.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    next: Vec<ExpectedNumber>,
    /// Number of missing records.
    lost: u64,
    /// The part of `lost` before the first record of an inherited group.
    lost_between: u64,
}

#[derive(Debug)]
struct ExpectedNumber {
    netns_id: u64,
    group: u16,
    /// `None` before the first record: any number is accepted.
    seq: Option<u32>,
    /// True for an inherited group until its first record arrives.
    is_inherited: bool,
}

impl Sequences {
    /// Records that the record with this number arrived. The kernel starts with 0 when a group is bound
    /// (nfulnl_instance.seq in net/netfilter/nfnetlink_log.c), so records missing before the first are also known.
    pub(crate) fn add_record(&mut self, netns_id: u64, group: u16, seq: u32) {
        let known = self.next.iter_mut().find(|next| next.group == group && next.netns_id == netns_id);
        let (missing, next) = (|expected: u32| seq.wrapping_sub(expected), seq.wrapping_add(1));
        match known {
            Some(known) => {
                let lost = u64::from(known.seq.map_or(0, missing));
                self.lost += lost;
                if std::mem::take(&mut known.is_inherited) {
                    self.lost_between += lost;
                }
                known.seq = Some(next);
            }
            None => {
                self.lost += u64::from(missing(0));
                self.next.push(ExpectedNumber { netns_id, group, seq: Some(next), is_inherited: false });
            }
        }
    }

    /// Starts a group whose records before `next` an earlier process has received; `None` if the number is unknown.
    pub(crate) fn begin(&mut self, netns_id: u64, group: u16, next: Option<u32>) {
        self.next.push(ExpectedNumber { netns_id, group, seq: next, is_inherited: true });
    }

    /// Removes a group that is no longer read: the next group with its numbers starts from 0. Losses stay counted.
    pub(crate) fn remove_group(&mut self, netns_id: u64, group: u16) {
        self.next.retain(|next| (next.netns_id, next.group) != (netns_id, group));
    }

    /// The part of [`Sequences::lost`] before the first record of an inherited group.
    pub(crate) fn lost_between(&self) -> u64 {
        self.lost_between
    }

    /// The numbers of the next records, for groups where they are known.
    pub(crate) fn numbers(&self) -> Vec<NextNumber> {
        let number =
            |next: &ExpectedNumber| Some(NextNumber { netns_id: next.netns_id, group: next.group, next: next.seq? });
        self.next.iter().filter_map(number).collect()
    }

    /// Number of records that the kernel could not deliver, up to the last one that arrived.
    pub(crate) fn lost_records(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_for_each_group() {
        let mut sequences = Sequences::default();
        for (netns_id, group, seq, lost) in [
            (1, 5, 0, 0),
            (1, 5, 1, 0),
            (1, 6, 2, 2),
            (1, 5, 5, 5),
            (2, 5, 0, 5),
            (1, 6, 3, 5),
            (1, 6, u32::MAX, 5 + u64::from(u32::MAX) - 4),
            (1, 6, 1, 5 + u64::from(u32::MAX) - 3),
        ] {
            sequences.add_record(netns_id, group, seq);
            assert_eq!(sequences.lost_records(), lost, "{netns_id} {group} {seq}");
        }
    }

    /// The kernel reuses the number of a removed namespace for a new one.
    #[test]
    fn a_removed_group_restarts_at_zero() {
        let mut sequences = Sequences::default();
        for (seq, lost) in [(0, 0), (3, 2)] {
            sequences.add_record(1, 5, seq);
            assert_eq!(sequences.lost_records(), lost);
        }
        sequences.remove_group(1, 5);
        sequences.add_record(1, 5, 0);
        assert_eq!(sequences.lost_records(), 2, "a number that is used again is no gap, and no gap is forgotten");
    }

    #[test]
    fn inherited_groups_go_on_where_the_earlier_reader_stopped() {
        let mut sequences = Sequences::default();
        sequences.begin(1, 5, Some(100));
        sequences.begin(1, 6, None);
        sequences.begin(1, 7, Some(8));
        for (group, seq, lost, between) in
            [(5, 100, 0, 0), (6, 700, 0, 0), (5, 103, 2, 0), (6, 702, 3, 0), (7, 10, 5, 2)]
        {
            sequences.add_record(1, group, seq);
            assert_eq!((sequences.lost_records(), sequences.lost_between()), (lost, between), "{group} {seq}");
        }
        let next = |group, next| NextNumber { netns_id: 1, group, next };
        assert_eq!(sequences.numbers(), [next(5, 104), next(6, 703), next(7, 11)]);
    }
}
