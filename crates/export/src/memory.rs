//! Messages that wait in memory.

use crate::spares::Spares;
use crate::{Batch, Ledger, Pushed, Store};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Bytes that a batch costs beside its messages: where they end, and allocation.
const BATCH_OVERHEAD: usize = 256;

/// A bounded queue in memory: what waits in it ends with the program.
#[derive(Debug)]
pub struct MemoryStore {
    batches: VecDeque<Arc<Batch>>,
    /// Messages below were delivered.
    released: u64,
    /// Number of the next message.
    end: u64,
    bytes: usize,
    bytes_max: usize,
    spares: Spares,
}

impl MemoryStore {
    /// A queue of at most `bytes_max` bytes; a single larger batch fits as well.
    pub fn new(bytes_max: usize) -> MemoryStore {
        MemoryStore { batches: VecDeque::new(), released: 0, end: 0, bytes: 0, bytes_max, spares: Spares::default() }
    }

    fn has_room(&self, more: usize) -> bool {
        self.batches.is_empty() || self.bytes + more <= self.bytes_max
    }
}

fn cost(batch: &Batch) -> usize {
    size_of_val(batch.bytes()) + size_of_val(batch.ends()) + BATCH_OVERHEAD
}

impl Store for MemoryStore {
    fn push(&mut self, mut batch: Batch, make_room: bool, held: u64) -> Pushed {
        let more = cost(&batch);
        let mut dropped = 0;
        while !self.has_room(more) {
            // Those that are being delivered leave soon: the oldest behind them goes.
            let oldest = self.batches.iter().position(|batch| batch.first() >= held);
            let gone = oldest.filter(|_| make_room).and_then(|at| self.batches.remove(at));
            let Some(gone) = gone else { return Pushed::Full { batch, dropped } };
            self.bytes -= cost(&gone);
            dropped += gone.len();
        }
        batch.number_from(self.end);
        self.end = batch.end();
        self.bytes += more;
        self.batches.push_back(Arc::new(batch));
        Pushed::Kept { dropped }
    }

    fn get(&mut self, number: u64) -> io::Result<Option<Arc<Batch>>> {
        let at = self.batches.partition_point(|batch| batch.end() <= number);
        Ok(self.batches.get(at).cloned())
    }

    fn release(&mut self, number: u64) -> io::Result<()> {
        self.released = self.released.max(number);
        while self.batches.front().is_some_and(|batch| batch.end() <= number) {
            let Some(batch) = self.batches.pop_front() else { break };
            self.bytes -= cost(&batch);
            self.spares.put(batch);
        }
        Ok(())
    }

    fn spare(&mut self) -> Option<Batch> {
        self.spares.take()
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn begin(&self) -> u64 {
        self.batches.front().map_or(self.end, |batch| batch.first().max(self.released))
    }

    fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn delivered_bytes_max(&self) -> u64 {
        self.bytes_max as u64 / 4
    }

    fn is_kept(&self) -> bool {
        false
    }

    fn ledger(&self) -> Ledger {
        Ledger::default()
    }

    fn sync(&mut self, _: &Ledger) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A batch of so many messages of 100 bytes.
    fn batch(messages: usize) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..messages {
            batch.bytes_mut().extend_from_slice(&[b'x'; 100]);
            batch.end_message();
        }
        batch
    }

    fn firsts(store: &mut MemoryStore) -> Vec<u64> {
        let mut firsts = Vec::new();
        let mut number = 0;
        while let Some(batch) = store.get(number).unwrap() {
            firsts.push(batch.first());
            number = batch.end();
        }
        firsts
    }

    #[test]
    fn what_waits_is_bounded_and_numbered() {
        let mut store = MemoryStore::new(3 * 1300);
        for _ in 0..3 {
            assert!(matches!(store.push(batch(10), false, 0), Pushed::Kept { dropped: 0 }));
        }
        assert!(matches!(store.push(batch(10), false, 0), Pushed::Full { dropped: 0, .. }));
        assert_eq!((store.begin(), store.end(), firsts(&mut store)), (0, 30, vec![0, 10, 20]));
        // The first batch is being delivered: the second one goes.
        assert!(matches!(store.push(batch(10), true, 10), Pushed::Kept { dropped: 10 }));
        assert_eq!(firsts(&mut store), [0, 20, 30]);
        store.release(25).unwrap();
        assert_eq!((store.begin(), firsts(&mut store)), (25, vec![20, 30]));
        store.release(40).unwrap();
        assert_eq!((store.begin(), store.end(), store.bytes()), (40, 40, 0));
        assert!(matches!(store.push(batch(100), false, 40), Pushed::Kept { dropped: 0 }), "a large one alone");
    }
}
