//! Memory of delivered batches, kept for reuse: fresh memory costs a page fault for every 4 KiB.

use crate::Batch;
use std::sync::Arc;

/// Most batches that are kept: one is filled while another is written, and a burst needs a few more.
const SPARES_MAX: usize = 4;

/// Batches that are no longer needed.
#[derive(Debug, Default)]
pub(crate) struct SpareBatches(Vec<Batch>);

impl SpareBatches {
    /// Keeps the memory of `batch`, unless it is still shared, is small, or enough batches are kept.
    pub(crate) fn put(&mut self, batch: Arc<Batch>) {
        if self.0.len() < SPARES_MAX {
            self.0.extend(Arc::into_inner(batch).filter(Batch::has_room));
        }
    }

    /// Returns one of them, emptied.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        self.0.pop().map(Batch::clear)
    }

    /// Frees all; returns true if there were some.
    pub(crate) fn free_all(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_unused_batches_are_kept() {
        let mut spares = SpareBatches::default();
        let held = Arc::new(Batch::new());
        spares.put(Arc::clone(&held));
        spares.put(Arc::new(Batch::default()));
        assert_eq!(spares.take(), None, "one is held, the other has no room");
        let mut used = Batch::new();
        used.bytes_mut().extend_from_slice(b"message");
        used.end_message();
        used.number_from(7);
        (0..=SPARES_MAX).for_each(|_| spares.put(Arc::new(Batch::new())));
        assert_eq!(spares.0.len(), SPARES_MAX);
        spares.take();
        spares.put(Arc::new(used));
        let again = spares.take().unwrap_or_default();
        assert_eq!((again.len(), again.first_number(), again.has_room()), (0, 0, true));
        assert_eq!((spares.free_all(), spares.free_all(), spares.take()), (true, false, None));
    }
}
