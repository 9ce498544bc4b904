//! The newest batches, in memory: a receiver that keeps up costs no reads, and while the disk rejects writes, only
//! memory has them.

use super::disk::Disk;
use crate::Batch;
use crate::classes::ClassWeights;
use crate::spares::SpareBatches;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Bytes of the newest messages that are also kept in memory.
const CACHE_BYTES: usize = 4 << 20;
/// Bytes of memory per batch in addition to its messages and their ends.
const BATCH_OVERHEAD: usize = 128;

/// A batch in memory.
#[derive(Debug)]
pub(super) struct CachedBatch {
    pub(super) stamp: u64,
    pub(super) batch: Arc<Batch>,
}

impl CachedBatch {
    fn cost(&self) -> usize {
        self.batch.bytes().len() + size_of_val(self.batch.message_ends()) + BATCH_OVERHEAD
    }
}

/// The newest batches, in order, without gaps except for dropped ones.
#[derive(Debug)]
pub(super) struct Cache {
    batches: VecDeque<CachedBatch>,
    bytes: usize,
    /// Bytes that are not on disk: the batches from message `written` on.
    pub(super) overflow_bytes: usize,
    pub(super) written: u64,
    pub(super) spares: SpareBatches,
}

impl Cache {
    /// Messages with numbers below `written` are on disk.
    pub(super) fn new(written: u64) -> Cache {
        let spares = SpareBatches::default();
        Cache { batches: VecDeque::new(), bytes: 0, overflow_bytes: 0, written, spares }
    }

    /// Number of the oldest message.
    pub(super) fn first_number(&self) -> Option<u64> {
        self.batches.front().map(|oldest| oldest.batch.first_number())
    }

    /// The batch with message `number`, or the first one after it.
    pub(super) fn find(&self, number: u64) -> Option<&CachedBatch> {
        self.batches.get(self.batches.partition_point(|cached| cached.batch.end() <= number))
    }

    /// Index of the first batch that begins with message `number` or a later one.
    fn index_from(&self, number: u64) -> usize {
        self.batches.partition_point(|cached| cached.batch.first_number() < number)
    }

    /// The batches that begin with message `number` or a later one.
    pub(super) fn range_from(&self, number: u64) -> impl Iterator<Item = &Batch> {
        self.batches.range(self.index_from(number)..).map(|cached| &*cached.batch)
    }

    /// Adds a batch, which is only in memory.
    pub(super) fn push(&mut self, batch: Batch, stamp: u64) {
        let cached = CachedBatch { stamp, batch: Arc::new(batch) };
        self.bytes += cached.cost();
        self.overflow_bytes += cached.cost();
        self.batches.push_back(cached);
    }

    /// Writes the batches that are only in memory, up to the first error.
    pub(super) fn write(&mut self, disk: &mut Disk) -> io::Result<()> {
        for cached in self.batches.range(self.index_from(self.written)..) {
            disk.append(&cached.batch, cached.stamp)?;
            self.written = cached.batch.end();
            self.overflow_bytes -= cached.cost();
        }
        Ok(())
    }

    /// Forgets the oldest batch if all of it is below message `number`.
    fn pop_below(&mut self, number: u64) -> bool {
        if self.batches.front().is_none_or(|oldest| oldest.batch.end() > number) {
            return false;
        }
        let Some(oldest) = self.batches.pop_front() else { return false };
        self.bytes -= oldest.cost();
        if oldest.batch.first_number() >= self.written {
            self.overflow_bytes -= oldest.cost();
            self.written = oldest.batch.end();
        }
        self.spares.put(oldest.batch);
        true
    }

    /// Forgets delivered batches, which need not be written.
    pub(super) fn release(&mut self, number: u64) {
        while self.pop_below(number) {}
    }

    /// Forgets batches below message `number` that are on disk. Their memory is still in the processor's cache when the
    /// next batch reuses it.
    pub(super) fn release_written(&mut self, number: u64) {
        self.release(number.min(self.written));
    }

    /// Forgets the oldest batches that are on disk, until little memory is used.
    pub(super) fn shrink(&mut self) {
        while self.bytes > CACHE_BYTES && self.pop_below(self.written) {}
    }

    /// Forgets the batches for which `is_gone` is true; all of them are on disk.
    pub(super) fn forget_written(&mut self, is_gone: impl Fn(&Batch) -> bool) {
        let bytes = &mut self.bytes;
        self.batches.retain(|cached| {
            let gone = is_gone(&cached.batch);
            *bytes -= if gone { cached.cost() } else { 0 };
            !gone
        });
    }

    /// Takes out the batches that are only in memory.
    pub(super) fn take_unwritten(&mut self) -> VecDeque<CachedBatch> {
        let unwritten = self.batches.split_off(self.index_from(self.written));
        self.bytes -= unwritten.iter().map(CachedBatch::cost).sum::<usize>();
        self.overflow_bytes = 0;
        unwritten
    }

    /// Drops messages of the class with the most bytes from the oldest or the newest batch that has them, of those from
    /// message `number` on, which are only in memory. Returns the numbers without messages.
    pub(super) fn thin(&mut self, number: u64, newest: bool) -> Option<(u64, u64)> {
        let mut indices = self.index_from(number)..self.batches.len();
        let weights = ClassWeights::from_batches(self.range_from(number));
        let class = weights.heaviest_class()?;
        let has_class = |at: &usize| self.batches.get(*at).is_some_and(|cached| cached.batch.has_class(class));
        let at = if newest { indices.rev().find(has_class) } else { indices.find(has_class) }?;
        let cached = self.batches.remove(at)?;
        let rest = CachedBatch { stamp: cached.stamp, batch: Arc::new(cached.batch.without_class(class)) };
        self.bytes -= cached.cost();
        self.overflow_bytes -= cached.cost();
        let dropped = (rest.batch.end(), cached.batch.end());
        if !rest.batch.is_empty() {
            self.bytes += rest.cost();
            self.overflow_bytes += rest.cost();
            self.batches.insert(at, rest);
        }
        Some(dropped)
    }
}
