//! Which class has how much of what waits: when something must go, the class that has most gives it (docs/adr/0020).

use crate::Batch;
use std::collections::HashMap;

/// Bytes of each class.
#[derive(Debug, Default)]
pub(crate) struct ClassWeights(HashMap<u16, u64>);

impl ClassWeights {
    /// The weights of these batches together.
    pub(crate) fn of<'b>(batches: impl Iterator<Item = &'b Batch>) -> ClassWeights {
        let mut weights = ClassWeights::default();
        batches.for_each(|batch| weights.add(batch));
        weights
    }

    pub(crate) fn add(&mut self, batch: &Batch) {
        for (class, bytes) in batch.class_bytes() {
            *self.0.entry(class).or_insert(0) += bytes;
        }
    }

    /// The class that has most.
    pub(crate) fn heaviest(&self) -> Option<u16> {
        self.0.iter().max_by_key(|(class, bytes)| (**bytes, **class)).map(|(class, _)| *class)
    }

    /// So many bytes of a class are gone.
    pub(crate) fn take(&mut self, class: u16, bytes: u64) {
        if let Some(own) = self.0.get_mut(&class) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.0.remove(&class);
            }
        }
    }
}
