//! Texts by key, in one piece of memory: the storage of most lookups.

/// Key → text. Uses two allocations for any number of texts; a lookup is a binary search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Texts<K> {
    arena: Vec<u8>,
    /// Key, start and end of its text in `arena`; in ascending order of keys.
    places: Vec<(K, u32, u32)>,
}

// Implemented manually, because a key needs no default.
impl<K> Default for Texts<K> {
    fn default() -> Texts<K> {
        Texts { arena: Vec::new(), places: Vec::new() }
    }
}

impl<K: Ord + Copy> Texts<K> {
    /// The texts in `arena` at these places (key, start, end). The first text of a key wins; a place outside of `arena`
    /// counts as missing.
    pub(crate) fn new(arena: Vec<u8>, mut places: Vec<(K, u32, u32)>) -> Texts<K> {
        places.sort_by_key(|place| place.0);
        places.dedup_by_key(|place| place.0);
        Texts { arena, places }
    }

    /// The text of `key`.
    pub(crate) fn get(&self, key: K) -> Option<&[u8]> {
        let at = self.places.binary_search_by_key(&key, |place| place.0).ok()?;
        let &(_, start, end) = self.places.get(at)?;
        self.arena.get(start as usize..end as usize)
    }

    /// Every text with its key, in ascending order of keys.
    pub(crate) fn each(&self) -> impl Iterator<Item = (K, &[u8])> {
        let text = |&(key, start, end): &(K, u32, u32)| Some((key, self.arena.get(start as usize..end as usize)?));
        self.places.iter().filter_map(text)
    }

    /// Number of texts.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The keys in ascending order.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = K> {
        self.places.iter().map(|place| place.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_key_and_the_first_of_two() {
        let texts = Texts::new(b"onetwo".to_vec(), vec![(7, 3, 6), (5, 0, 3), (7, 0, 3), (9, 4, 99)]);
        assert_eq!(texts.get(5), Some(&b"one"[..]));
        assert_eq!(texts.get(7), Some(&b"two"[..]));
        assert_eq!((texts.get(8), texts.get(9), texts.len()), (None, None, 3));
    }
}
