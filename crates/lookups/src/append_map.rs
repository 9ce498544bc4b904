//! A map that only grows while it is shared, so that its values do not move and cells can borrow them.

use std::array;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::hash::Hash;
use std::iter::repeat_with;

/// Maps keys to a limited number of values; the newest value of a key counts. Entries can only be removed all together.
pub(crate) struct AppendMap<K, V> {
    /// The number of the newest value of each key.
    newest: RefCell<HashMap<K, usize>>,
    /// The values by number, in blocks that double in size: 1, 2, 4 …
    blocks: [OnceCell<Box<[OnceCell<V>]>>; 32],
    length: Cell<usize>,
    max: usize,
}

impl<K: Hash + Eq, V> AppendMap<K, V> {
    /// Creates an empty map for at most `max` values, including superseded ones.
    pub(crate) fn new(max: usize) -> AppendMap<K, V> {
        let blocks = array::from_fn(|_| OnceCell::new());
        AppendMap { newest: RefCell::default(), blocks, length: Cell::new(0), max }
    }

    /// True if no more values can be added.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.max
    }

    /// The number of values, including superseded ones.
    pub(crate) fn len(&self) -> usize {
        self.length.get()
    }

    /// The newest value of `key`.
    pub(crate) fn newest(&self, key: &K) -> Option<&V> {
        let number = *self.newest.borrow().get(key)?;
        self.slot(number)?.get()
    }

    /// Adds a value, which becomes the newest of `key`. If the map is full, `key` has no newest value any more, because
    /// the former one is outdated, and the result is `None`.
    pub(crate) fn push(&self, key: K, value: V) -> Option<&V> {
        let number = self.length.get();
        let Some(slot) = self.slot(number).filter(|_| !self.is_full()) else {
            self.newest.borrow_mut().remove(&key);
            return None;
        };
        self.length.set(number + 1);
        self.newest.borrow_mut().insert(key, number);
        Some(slot.get_or_init(|| value))
    }

    /// Removes everything if the map is more than half full. Called when no cell borrows from it.
    pub(crate) fn renew(&mut self) {
        if self.len() > self.max / 2 {
            self.clear();
        }
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        *self = AppendMap::new(self.max);
    }

    fn slot(&self, number: usize) -> Option<&OnceCell<V>> {
        let block = (number + 1).ilog2();
        let size = 1_usize << block;
        let slots = self.blocks.get(block as usize)?;
        slots.get_or_init(|| repeat_with(OnceCell::new).take(size).collect()).get(number + 1 - size)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_newest_counts_and_what_was_given_out_stays() {
        let mut map = AppendMap::new(10_000);
        assert_eq!((map.newest(&1), map.len()), (None, 0));
        map.clear();
        let first = map.push(1, "one".to_owned()).unwrap();
        for key in 2..10_000 {
            map.push(key, key.to_string());
        }
        assert_eq!(map.push(1, "new".to_owned()).unwrap(), "new");
        assert_eq!((first.as_str(), map.newest(&1).unwrap().as_str()), ("one", "new"));
        assert_eq!((map.newest(&9_999).unwrap().as_str(), map.newest(&10_000)), ("9999", None));
        assert_eq!((map.len(), map.is_full(), map.push(10_000, String::new())), (10_000, true, None));
        assert_eq!((map.push(1, "newer".to_owned()), map.newest(&1)), (None, None), "no outdated value");
        assert_eq!(map.newest(&2).unwrap(), "2");
        map.renew();
        assert_eq!((map.newest(&2), map.len()), (None, 0));
    }
}
