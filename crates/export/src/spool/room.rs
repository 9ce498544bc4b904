//! Making room in a full spool: whoever has most of what waits gives it (docs/adr/0020).

use super::rewrite::Giving;
use super::segment::Segment;
use super::{Cached, OVERFLOW_BYTES, Spool};
use crate::Batch;
use crate::classes::ClassWeights;
use std::collections::HashMap;
use std::sync::Arc;

/// A file is written anew if one of so many parts of it goes: so what is written for room is in proportion to it.
const GIVES_PART: u64 = 4;

impl Spool {
    pub(super) fn has_room(&self, more: usize) -> bool {
        let on_disk = self.disk.bytes + (self.overflow_bytes + more) as u64;
        self.end == self.released || (on_disk <= self.options.bytes_max && self.overflow_bytes + more <= OVERFLOW_BYTES)
    }

    /// Drops messages that are not being delivered, the oldest or the newest of the classes that have most; `None` if
    /// there are none.
    pub(super) fn make_room(&mut self, newest: bool) -> Option<u64> {
        let dropped = match &self.trouble {
            None => self.thin(newest).or_else(|| self.drop_segment(u64::MAX)),
            // A file that is full of what is to go gives room by being removed; to write one anew takes room first.
            Some(_) if self.is_full => self.drop_file_of_payers(newest),
            // A disk that is broken gets no better by removing files.
            Some(_) => None,
        };
        if dropped.is_some() {
            self.write_out(true);
            return dropped;
        }
        let dropped = self.thin_memory(newest);
        if dropped.is_some() || !self.is_full || self.trouble.is_none() {
            return dropped;
        }
        let dropped = self.drop_segment(u64::MAX);
        self.write_out(true);
        dropped
    }

    /// What each class has above the level up to which none gives.
    fn excess(&self) -> HashMap<u16, u64> {
        let mut weights = ClassWeights::default();
        for segment in self.disk.segments.range(self.first_free()..) {
            weights.add(segment.classes.iter());
        }
        for cached in self.memory.range(self.first_unwritten()..) {
            weights.add(cached.batch.class_bytes());
        }
        weights.excess()
    }

    /// Index of the first segment of which nothing is being delivered.
    fn first_free(&self) -> usize {
        self.disk.segments.partition_point(|segment| segment.first < self.held)
    }

    /// Index of the first batch in memory that is not on disk, and is not being delivered.
    fn first_unwritten(&self) -> usize {
        let from = self.held.max(self.written);
        self.memory.partition_point(|cached| cached.batch.first() < from)
    }

    /// The segment that gives, and what: the oldest, or the newest, for which `gives` is true.
    fn giver(&self, newest: bool, gives: impl Fn(&Segment, &Giving) -> bool) -> Option<(usize, Giving)> {
        let excess = self.excess();
        let giving = |index: usize| {
            let segment = self.disk.segments.get(index)?;
            let giving = Giving::new(&segment.classes, &excess, newest);
            (giving.bytes > 0 && gives(segment, &giving)).then_some((index, giving))
        };
        let mut indices = self.first_free()..self.disk.segments.len();
        if newest { indices.rev().find_map(giving) } else { indices.find_map(giving) }
    }

    /// Takes what is to go out of one segment.
    fn thin(&mut self, newest: bool) -> Option<u64> {
        let is_worth_it =
            |segment: &Segment, giving: &Giving| giving.bytes.saturating_mul(GIVES_PART) >= segment.classes.total();
        let (index, mut giving) = self.giver(newest, is_worth_it)?;
        let segment = self.disk.segments.get(index)?;
        if giving.bytes >= segment.classes.total() {
            return self.drop_segment_at(index);
        }
        let until = segment.end;
        let joins = index > self.first_free() && self.disk.should_join(index, giving.bytes);
        let Ok(rewritten) = self.disk.rewrite(index, joins, &mut giving) else {
            // It cannot be read, or the disk has no room for the new one.
            return self.drop_segment_at(index);
        };
        // What of it, or before it, is in memory has other numbers than on disk now.
        let stale = self.memory.partition_point(|cached| cached.batch.first() < until);
        self.memory_bytes -= self.memory.drain(..stale).map(|cached| cached.cost()).sum::<usize>();
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

    /// Drops a segment in which all is of classes that have to give.
    fn drop_file_of_payers(&mut self, newest: bool) -> Option<u64> {
        let (index, _) = self.giver(newest, |_, giving| giving.is_of_all)?;
        self.drop_segment_at(index)
    }

    /// Drops messages of the class that has most of what is in memory alone.
    fn thin_memory(&mut self, newest: bool) -> Option<u64> {
        let indices = self.first_unwritten()..self.memory.len();
        let weights = ClassWeights::of(self.memory.range(indices.clone()).map(|cached| &*cached.batch));
        let class = weights.heaviest()?;
        let has_class = |at: &usize| self.memory.get(*at).is_some_and(|cached| cached.batch.has_class(class));
        let at = if newest { indices.rev().find(has_class) } else { indices.clone().find(has_class) }?;
        let cached = self.memory.remove(at)?;
        let rest = Cached { stamp: cached.stamp, batch: Arc::new(cached.batch.without(class)) };
        self.memory_bytes -= cached.cost();
        self.overflow_bytes -= cached.cost();
        let dropped = self.gaps.add(rest.batch.end(), cached.batch.end());
        if !rest.batch.is_empty() {
            self.memory_bytes += rest.cost();
            self.overflow_bytes += rest.cost();
            self.memory.insert(at, rest);
        }
        Some(dropped)
    }

    /// Takes out of a new batch what is of classes that have to give; how many messages that is.
    pub(super) fn strip(&self, batch: &mut Batch) -> u64 {
        let before = batch.len();
        for class in self.excess().into_keys() {
            if batch.has_class(class) {
                *batch = batch.without(class);
            }
        }
        before - batch.len()
    }

    /// Removes the oldest segment that is not being delivered, if it is older than `before`; how many messages it had.
    pub(super) fn drop_segment(&mut self, before: u64) -> Option<u64> {
        let index = self.first_free();
        // An empty one is about to be written.
        let may_go = |segment: &&Segment| segment.end > segment.first && segment.stamp_last < before;
        self.disk.segments.get(index).filter(may_go)?;
        self.drop_segment_at(index)
    }

    fn drop_segment_at(&mut self, index: usize) -> Option<u64> {
        let gone = self.disk.remove(index)?;
        let is_gone = |cached: &Cached| cached.batch.first() >= gone.first && cached.batch.end() <= gone.end;
        let bytes: usize = self.memory.iter().filter(|cached| is_gone(cached)).map(Cached::cost).sum();
        self.memory.retain(|cached| !is_gone(cached));
        self.memory_bytes -= bytes;
        Some(self.gaps.add(gone.first.max(self.released), gone.end))
    }
}
