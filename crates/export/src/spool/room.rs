//! Making room in a full spool: the classes with the most waiting bytes lose messages (docs/adr/0020).

use super::rewrite::RemovalPlan;
use super::segment::Segment;
use super::{OVERFLOW_BYTES, Spool};
use crate::Batch;
use crate::classes::ClassWeights;
use std::collections::HashMap;

/// A file is rewritten if at least a quarter of its bytes is removed, so that the cost is in proportion to the gain.
const GIVES_PART: u64 = 4;

impl Spool {
    pub(super) fn has_room(&self, more: usize) -> bool {
        let on_disk = self.disk.bytes + (self.cache.overflow_bytes + more) as u64;
        let overflows = self.cache.overflow_bytes + more > OVERFLOW_BYTES;
        self.end == self.released || (on_disk <= self.options.bytes_max && !overflows)
    }

    /// Drops the oldest or the newest messages of the classes with the most bytes, except those being delivered.
    /// Returns how many; `None` without any.
    pub(super) fn make_room(&mut self, newest: bool) -> Option<u64> {
        let dropped = match &self.fault {
            None => self.remove_excess(newest).or_else(|| self.drop_segment(u64::MAX)),
            // Removing a file frees space at once; rewriting one needs space first.
            Some(fault) if fault.is_full => self.drop_file_of_payers(newest),
            // Removing files does not mend a broken disk.
            Some(_) => None,
        };
        if dropped.is_some() {
            self.write_out(true);
            return dropped;
        }
        let thinned = self.cache.thin(self.held.max(self.cache.written), newest);
        let dropped = thinned.map(|(from, to)| self.gaps.add(from, to));
        if dropped.is_some() || !self.is_full() {
            return dropped;
        }
        let dropped = self.drop_segment(u64::MAX);
        self.write_out(true);
        dropped
    }

    /// Returns the bytes of each class above the common level, [`ClassWeights::excess`].
    fn excess_bytes(&self) -> HashMap<u16, u64> {
        let mut weights = ClassWeights::default();
        for segment in self.disk.segments.range(self.first_free()..) {
            weights.add(segment.classes.iter());
        }
        let unwritten = self.cache.range_from(self.held.max(self.cache.written));
        unwritten.for_each(|batch| weights.add(batch.class_bytes()));
        weights.excess()
    }

    /// Index of the first segment without messages that are being delivered.
    fn first_free(&self) -> usize {
        self.disk.segments.partition_point(|segment| segment.first < self.held)
    }

    /// Finds the oldest or the newest segment that has messages to remove and for which `gives` is true.
    fn find_giver(&self, newest: bool, gives: impl Fn(&Segment, &RemovalPlan) -> bool) -> Option<(usize, RemovalPlan)> {
        let excess = self.excess_bytes();
        let plan = |index: usize| {
            let segment = self.disk.segments.get(index)?;
            let plan = RemovalPlan::new(&segment.classes, &excess, newest);
            (plan.bytes > 0 && gives(segment, &plan)).then_some((index, plan))
        };
        let mut indices = self.first_free()..self.disk.segments.len();
        if newest { indices.rev().find_map(plan) } else { indices.find_map(plan) }
    }

    /// Removes the excess from one segment; returns the number of dropped messages.
    fn remove_excess(&mut self, newest: bool) -> Option<u64> {
        let is_worth_it =
            |segment: &Segment, plan: &RemovalPlan| plan.bytes.saturating_mul(GIVES_PART) >= segment.classes.total();
        let (index, mut plan) = self.find_giver(newest, is_worth_it)?;
        let segment = self.disk.segments.get(index)?;
        if plan.bytes >= segment.classes.total() {
            return self.drop_segment_at(index);
        }
        let until = segment.end;
        let joins = index > self.first_free() && self.disk.should_join(index, plan.bytes);
        let Ok(rewritten) = self.disk.rewrite(index, joins, &mut plan) else {
            // The file cannot be read, or the disk has no room for the new one.
            return self.drop_segment_at(index);
        };
        // Batches in memory up to the end of the segment no longer have the numbers of those on disk.
        self.cache.forget_written(|batch| batch.first_number() < until);
        let known = self.gaps.clear(rewritten.first, until);
        let mut next = rewritten.first;
        let mut missing = 0;
        for (from, to) in rewritten.kept.into_iter().chain([(until, until)]) {
            missing += self.gaps.add(next, from);
            next = to;
        }
        self.drops.lost += missing.saturating_sub(known + rewritten.gone);
        Some(rewritten.gone)
    }

    /// Drops a segment in which every class is above the level.
    fn drop_file_of_payers(&mut self, newest: bool) -> Option<u64> {
        let (index, _) = self.find_giver(newest, |_, plan| plan.is_of_all)?;
        self.drop_segment_at(index)
    }

    /// Removes messages of classes above the level from a new batch; returns how many.
    pub(super) fn strip(&self, batch: &mut Batch) -> u64 {
        let before = batch.len();
        for class in self.excess_bytes().into_keys() {
            if batch.has_class(class) {
                *batch = batch.without_class(class);
            }
        }
        before - batch.len()
    }

    /// Removes the oldest segment that is not being delivered, if it is older than `before`. Returns how many messages
    /// were dropped.
    pub(super) fn drop_segment(&mut self, before: u64) -> Option<u64> {
        let index = self.first_free();
        // An empty segment is about to be filled.
        let may_go = |segment: &&Segment| segment.end > segment.first && segment.stamp_last < before;
        self.disk.segments.get(index).filter(may_go)?;
        self.drop_segment_at(index)
    }

    fn drop_segment_at(&mut self, index: usize) -> Option<u64> {
        let gone = self.disk.remove(index)?;
        self.cache.forget_written(|batch| batch.first_number() >= gone.first && batch.end() <= gone.end);
        Some(self.gaps.add(gone.first.max(self.released), gone.end))
    }
}
