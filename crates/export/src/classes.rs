//! Bytes per class of the messages that wait. If some must be dropped, the class with the most bytes loses them
//! (docs/adr/0020).

use crate::Batch;
use std::collections::HashMap;

/// Most classes whose bytes are counted for one file. The bytes of further classes count only in the total.
///
/// Bound: classes of messages in a file of a spool. Beyond: messages of further classes are dropped only with whole
/// files. This also affects other users. By: with `--all-netns`, anyone who may write thousands of rules.
const CLASSES_MAX: usize = 4096;

/// Bytes of each class.
#[derive(Debug, Default)]
pub(crate) struct ClassWeights(HashMap<u16, u64>);

impl ClassWeights {
    /// Sums the bytes of each class over these batches.
    pub(crate) fn from_batches<'b>(batches: impl Iterator<Item = &'b Batch>) -> ClassWeights {
        let mut weights = ClassWeights::default();
        batches.for_each(|batch| weights.add(batch.class_bytes()));
        weights
    }

    pub(crate) fn add(&mut self, bytes: impl Iterator<Item = (u16, u64)>) {
        for (class, bytes) in bytes {
            *self.0.entry(class).or_insert(0) += bytes;
        }
    }

    /// Returns the class with the most bytes.
    pub(crate) fn heaviest_class(&self) -> Option<u16> {
        self.0.iter().max_by_key(|(class, bytes)| (**bytes, **class)).map(|(class, _)| *class)
    }

    /// Subtracts bytes of a class that were removed.
    pub(crate) fn take(&mut self, class: u16, bytes: u64) {
        if let Some(own) = self.0.get_mut(&class) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.0.remove(&class);
            }
        }
    }

    /// Returns how many bytes each class has above a common level. The level is such that together this excess is a
    /// quarter of all bytes. Classes at or below the level are left out: among `n` classes, a class with less than
    /// three quarters of an equal share never appears.
    pub(crate) fn excess(&self) -> HashMap<u16, u64> {
        let wanted = self.0.values().sum::<u64>() / 4;
        let mut falling: Vec<u64> = self.0.values().copied().collect();
        falling.sort_unstable_by(|a, b| b.cmp(a));
        let (mut level, mut above) = (0, 0);
        for (count, next) in (1..).zip(falling.iter().skip(1).copied().chain([0])) {
            above += falling.get(count - 1).copied().unwrap_or(0);
            if above - next * count as u64 >= wanted {
                level = (above - wanted) / count as u64;
                break;
            }
        }
        let over = |bytes: u64| bytes.checked_sub(level).filter(|over| *over > 0);
        self.0.iter().filter_map(|(class, bytes)| Some((*class, over(*bytes)?))).collect()
    }
}

/// Bytes of each class in a file, stored compactly.
#[derive(Debug, Default)]
pub(crate) struct ClassBytes {
    /// Class and bytes, sorted by class.
    by_class: Vec<(u16, u64)>,
    total: u64,
}

impl ClassBytes {
    pub(crate) fn add(&mut self, class: u16, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        match self.by_class.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => {
                if let Some((_, own)) = self.by_class.get_mut(at) {
                    *own = own.saturating_add(bytes);
                }
            }
            Err(at) if self.by_class.len() < CLASSES_MAX => self.by_class.insert(at, (class, bytes)),
            Err(_) => {}
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.by_class.iter().copied()
    }

    /// Bytes of all classes.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excess(bytes: &[u64]) -> Vec<u64> {
        let mut weights = ClassWeights::default();
        weights.add((0..).zip(bytes.iter().copied()));
        let excess = weights.excess();
        (0..bytes.len()).map(|class| excess.get(&(class as u16)).copied().unwrap_or(0)).collect()
    }

    #[test]
    fn the_heaviest_class_is_above_the_level() {
        assert_eq!(excess(&[]), Vec::<u64>::new());
        assert_eq!(excess(&[0]), [0]);
        assert_eq!(excess(&[400]), [100]);
        assert_eq!(excess(&[5, 990, 5]), [0, 250, 0]);
        assert_eq!(excess(&[100; 4]), [25; 4]);
        assert_eq!(excess(&[200, 100, 100]), [100, 0, 0]);
        assert_eq!(excess(&[300, 300, 100, 100]), [100, 100, 0, 0]);
        assert_eq!(excess(&[500, 100, 30, 10]), [160, 0, 0, 0]);
    }

    #[test]
    fn classes_without_number_take_no_more_memory() {
        let mut bytes = ClassBytes::default();
        (0..=u16::MAX).chain(0..=u16::MAX).for_each(|class| bytes.add(class, 2));
        assert_eq!((bytes.by_class.len(), bytes.total()), (CLASSES_MAX, 262_144));
        assert!(bytes.iter().all(|(class, bytes)| usize::from(class) < CLASSES_MAX && bytes == 4));
    }
}
