//! Messages that wait in memory.

use crate::classes::ClassWeights;
use crate::spares::SpareBatches;
use crate::{Batch, Ledger, PushOutcome, Store, WhenFull};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// Estimated bytes of memory per batch in addition to its messages and their ends: the structure and its allocations.
const BATCH_OVERHEAD: usize = 256;
/// After drops, small rests of batches are joined until they have this many bytes.
const JOINED_BYTES: usize = 64 << 10;

/// A bounded queue in memory. Messages in it are lost when the program ends.
#[derive(Debug)]
pub struct MemoryStore {
    batches: VecDeque<Arc<Batch>>,
    /// Messages with lower numbers were delivered.
    released: u64,
    /// Number of the next message.
    end: u64,
    bytes: usize,
    bytes_max: usize,
    spares: SpareBatches,
}

impl MemoryStore {
    /// A queue of at most `bytes_max` bytes. If it is empty, it also takes a larger batch.
    pub fn new(bytes_max: usize) -> MemoryStore {
        MemoryStore {
            batches: VecDeque::new(),
            released: 0,
            end: 0,
            bytes: 0,
            bytes_max,
            spares: SpareBatches::default(),
        }
    }

    fn has_room(&self, more: usize) -> bool {
        self.batches.is_empty() || self.bytes + more <= self.bytes_max
    }

    /// Drops messages of the class with the most bytes until the rest fits; returns how many. Batches from index
    /// `from` on may be changed: the numbers of their messages are still unknown outside.
    fn make_room(&mut self, from: usize, when_full: WhenFull) -> u64 {
        let mut weights = ClassWeights::from_batches(self.batches.range(from..).map(|batch| &**batch));
        let mut dropped = 0;
        while self.bytes > self.bytes_max && self.batches.len() > 1 {
            let Some(class) = weights.heaviest_class() else { break };
            let mut indices = from..self.batches.len();
            let has_class = |at: &usize| self.batches.get(*at).is_some_and(|batch| batch.has_class(class));
            let at = match when_full {
                WhenFull::DropNewest => indices.rev().find(has_class),
                _ => indices.find(has_class),
            };
            let Some((at, batch)) = at.and_then(|at| Some((at, self.batches.get(at)?))) else { break };
            let rest = batch.without_class(class);
            dropped += batch.len() - rest.len();
            weights.take(class, (batch.bytes().len() - rest.bytes().len()) as u64);
            self.replace(at, rest, at > from);
        }
        dropped
    }

    /// Replaces a batch with `rest`, its remaining messages. A small rest joins the batch before it.
    fn replace(&mut self, at: usize, rest: Batch, may_join: bool) {
        self.bytes -= self.batches.remove(at).map_or(0, |batch| cost(&batch));
        if rest.is_empty() {
            return;
        }
        let before = at.checked_sub(1).filter(|_| may_join).and_then(|before| self.batches.get_mut(before));
        if let Some(before) = before.filter(|before| before.bytes().len() + rest.bytes().len() <= JOINED_BYTES) {
            self.bytes -= cost(before);
            Arc::make_mut(before).join(&rest);
            self.bytes += cost(before);
            return;
        }
        self.bytes += cost(&rest);
        self.batches.insert(at, Arc::new(rest));
    }
}

fn cost(batch: &Batch) -> usize {
    size_of_val(batch.bytes()) + size_of_val(batch.message_ends()) + BATCH_OVERHEAD
}

impl Store for MemoryStore {
    fn push(&mut self, mut batch: Batch, when_full: WhenFull, held: u64) -> PushOutcome {
        let more = cost(&batch);
        let has_room = self.has_room(more);
        if !has_room && when_full == WhenFull::Block {
            return PushOutcome::Full { batch, dropped: 0 };
        }
        batch.number_from(self.end);
        self.end = batch.end();
        self.bytes += more;
        self.batches.push_back(Arc::new(batch));
        if has_room {
            return PushOutcome::Kept { dropped: 0 };
        }
        // Batches being delivered leave soon, so drop from those after them.
        let from = self.batches.partition_point(|batch| batch.first_number() < held);
        PushOutcome::Kept { dropped: self.make_room(from, when_full) }
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

    fn shrink(&mut self, number: u64) {
        let Some(first) =
            self.batches.front_mut().filter(|batch| (batch.first_number() + 1..batch.end()).contains(&number))
        else {
            return;
        };
        let rest = first.messages_from(usize::try_from(number - first.first_number()).unwrap_or(usize::MAX));
        self.bytes = self.bytes + cost(&rest) - cost(first);
        *first = Arc::new(rest);
        self.released = self.released.max(number);
    }

    fn take_spare(&mut self) -> Option<Batch> {
        self.spares.take()
    }

    fn free_spares(&mut self) -> bool {
        self.spares.free_all()
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn begin(&self) -> u64 {
        self.batches.front().map_or(self.end, |batch| batch.first_number().max(self.released))
    }

    fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn delivered_bytes_max(&self) -> u64 {
        self.bytes_max as u64 / 4
    }

    fn is_persistent(&self) -> bool {
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

    /// A batch of `messages` messages of 100 bytes each.
    fn batch(messages: usize) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..messages {
            batch.bytes_mut().extend_from_slice(&[b'x'; 100]);
            batch.end_message();
        }
        batch
    }

    /// A batch with one message for each class; the text is the class in decimal.
    fn of_classes(classes: impl IntoIterator<Item = u16>) -> Batch {
        let mut batch = Batch::new();
        for class in classes {
            batch.set_class(class);
            batch.bytes_mut().extend_from_slice(format!("{class:0100}").as_bytes());
            batch.end_message();
        }
        batch
    }

    /// Returns how many messages of a class wait.
    fn waiting(store: &MemoryStore, class: u16) -> u64 {
        let runs = store.batches.iter().flat_map(|batch| batch.class_runs());
        runs.filter(|(other, _)| *other == class).map(|(_, messages)| messages).sum()
    }

    /// Only the class that floods loses messages, at either end.
    #[test]
    fn a_flood_of_one_class_drops_none_of_others() {
        for when_full in [WhenFull::DropOldest, WhenFull::DropNewest] {
            let mut store = MemoryStore::new(64 << 10);
            let (mut pushed, mut dropped) = (0, 0);
            for number in 0..1000 {
                let classes = (0..100).map(|at| if at == 50 && number % 10 == 0 { 2 } else { 1 });
                let PushOutcome::Kept { dropped: now } = store.push(of_classes(classes), when_full, 0) else {
                    panic!()
                };
                (pushed, dropped) = (pushed + 100, dropped + now);
                assert!(store.bytes() <= 64 << 10, "{}", store.bytes());
            }
            assert_eq!(waiting(&store, 2), 100);
            assert_eq!(waiting(&store, 1) + waiting(&store, 2) + dropped, pushed);
            assert!(store.batches.len() < 100, "small rests are put together: {}", store.batches.len());
            let mut number = 0;
            while let Some(batch) = store.get(number).unwrap() {
                assert!(batch.first_number() >= number);
                number = batch.end();
            }
            // The first messages are still there with `DropNewest`.
            let first = store.batches[0].message(0).unwrap().to_vec();
            assert_eq!(store.begin() == 0, when_full == WhenFull::DropNewest || first.ends_with(b"2"));
        }
    }

    #[test]
    fn what_is_being_delivered_is_left_alone() {
        let mut store = MemoryStore::new(3000);
        store.push(of_classes([1; 10]), WhenFull::DropOldest, 0);
        store.push(of_classes([1, 2, 1, 1]), WhenFull::DropOldest, 10);
        let dropped = store.push(of_classes([1; 10]), WhenFull::DropOldest, 10);
        assert!(matches!(dropped, PushOutcome::Kept { dropped: 3 }), "{dropped:?}");
        assert_eq!(store.get(0).unwrap().unwrap().len(), 10);
        let rest = store.get(10).unwrap().unwrap();
        assert_eq!((rest.first_number(), rest.len(), rest.has_class(1)), (10, 1, false));
        assert_eq!(store.get(11).unwrap().unwrap().first_number(), 14);
    }

    #[test]
    fn what_is_needed_no_more_takes_no_memory() {
        let mut store = MemoryStore::new(1 << 20);
        (0..3).for_each(|_| _ = store.push(batch(10), WhenFull::Block, 0));
        let (full, third) = (store.bytes(), store.get(20).unwrap().unwrap());
        for (number, begin) in [(0, 0), (7, 7), (7, 7), (10, 7), (25, 7)] {
            store.shrink(number);
            assert_eq!((store.begin(), store.batches.len()), (begin, 3), "{number}");
        }
        assert_eq!(full - store.bytes(), 7 * 104);
        let first = store.get(7).unwrap().unwrap();
        assert_eq!((first.first_number(), first.len(), first.message(2)), (7, 3, Some(&[b'x'; 100][..])));
        store.release(10).unwrap();
        store.release(20).unwrap();
        store.shrink(25);
        assert_eq!((store.begin(), third.len(), store.get(25).unwrap().unwrap().len()), (25, 10, 5));
        store.release(30).unwrap();
        assert_eq!((store.bytes(), store.begin()), (0, 30));
    }

    fn firsts(store: &mut MemoryStore) -> Vec<u64> {
        let mut firsts = Vec::new();
        let mut number = 0;
        while let Some(batch) = store.get(number).unwrap() {
            firsts.push(batch.first_number());
            number = batch.end();
        }
        firsts
    }

    #[test]
    fn what_waits_is_bounded_and_numbered() {
        let mut store = MemoryStore::new(3 * 1300);
        for _ in 0..3 {
            assert!(matches!(store.push(batch(10), WhenFull::Block, 0), PushOutcome::Kept { dropped: 0 }));
        }
        assert!(matches!(store.push(batch(10), WhenFull::Block, 0), PushOutcome::Full { dropped: 0, .. }));
        assert_eq!((store.begin(), store.end(), firsts(&mut store)), (0, 30, vec![0, 10, 20]));
        // The first batch is being delivered, so the second one is dropped.
        assert!(matches!(store.push(batch(10), WhenFull::DropOldest, 10), PushOutcome::Kept { dropped: 10 }));
        assert_eq!(firsts(&mut store), [0, 20, 30]);
        store.release(25).unwrap();
        assert_eq!((store.begin(), firsts(&mut store)), (25, vec![20, 30]));
        store.release(40).unwrap();
        assert_eq!((store.begin(), store.end(), store.bytes()), (40, 40, 0));
        assert!(
            matches!(store.push(batch(100), WhenFull::Block, 40), PushOutcome::Kept { dropped: 0 }),
            "a large one alone"
        );
    }
}
