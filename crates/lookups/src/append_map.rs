//! A map that only grows while it is shared, so that its values do not move and cells can borrow them.

use std::cell::{Cell, OnceCell};
use std::hash::{BuildHasher, Hash, RandomState};

/// Number of hash chains.
const CHAINS: usize = 1 << 12;

/// Maps keys to values; the newest value of a key counts. Entries can only be removed all together.
pub(crate) struct AppendMap<K, V> {
    /// Allocated with the first entry, because most maps of most runs stay empty.
    chains: OnceCell<Vec<Slot<K, V>>>,
    length: Cell<usize>,
    hasher: RandomState,
}

type Slot<K, V> = OnceCell<Box<Node<K, V>>>;

struct Node<K, V> {
    key: K,
    value: V,
    next: Slot<K, V>,
}

impl<K: Hash + Eq, V> AppendMap<K, V> {
    /// Creates an empty map.
    pub(crate) fn new() -> AppendMap<K, V> {
        AppendMap { chains: OnceCell::new(), length: Cell::new(0), hasher: RandomState::new() }
    }

    /// The number of values, including superseded ones.
    pub(crate) fn len(&self) -> usize {
        self.length.get()
    }

    /// The newest value of `key`.
    pub(crate) fn newest(&self, key: &K) -> Option<&V> {
        let mut place = self.chain(self.chains.get()?, key)?;
        let mut newest = None;
        while let Some(link) = place.get() {
            if link.key == *key {
                newest = Some(&link.value);
            }
            place = &link.next;
        }
        newest
    }

    /// Adds a value, which becomes the newest of `key`.
    pub(crate) fn push(&self, key: K, value: V) -> Option<&V> {
        let chains = self.chains.get_or_init(|| std::iter::repeat_with(OnceCell::new).take(CHAINS).collect());
        let mut place = self.chain(chains, &key)?;
        while let Some(link) = place.get() {
            place = &link.next;
        }
        self.length.set(self.length.get() + 1);
        Some(&place.get_or_init(|| Box::new(Node { key, value, next: OnceCell::new() })).value)
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.chains.get_mut().into_iter().flatten().for_each(empty);
        self.length.set(0);
    }

    fn chain<'c>(&self, chains: &'c [Slot<K, V>], key: &K) -> Option<&'c Slot<K, V>> {
        // Uses only some bits of the hash, on purpose.
        chains.get(self.hasher.hash_one(key) as usize % CHAINS)
    }
}

impl<K, V> Drop for AppendMap<K, V> {
    fn drop(&mut self) {
        self.chains.get_mut().into_iter().flatten().for_each(empty);
    }
}

/// Drops a chain link by link, because the default recursive drop of a long chain would overflow the stack.
fn empty<K, V>(place: &mut Slot<K, V>) {
    let mut next = place.take();
    while let Some(mut link) = next {
        next = link.next.take();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_newest_counts_and_what_was_given_out_stays() {
        let mut map = AppendMap::new();
        assert_eq!((map.newest(&1), map.len()), (None, 0));
        map.clear();
        let first = map.push(1, "one".to_owned()).unwrap();
        for key in 2..10_000 {
            map.push(key, key.to_string());
        }
        assert_eq!(map.push(1, "new".to_owned()).unwrap(), "new");
        assert_eq!((first.as_str(), map.newest(&1).unwrap().as_str()), ("one", "new"));
        assert_eq!((map.newest(&9_999).unwrap().as_str(), map.newest(&10_000)), ("9999", None));
        assert_eq!(map.len(), 10_000);
        map.clear();
        assert_eq!((map.newest(&1), map.len()), (None, 0));
    }
}
