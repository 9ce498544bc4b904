//! Texts under keys, in one piece of memory: what most lookups are.

/// Key → text. Two allocations, however many texts there are; a lookup is a binary search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Texts<K> {
    arena: Vec<u8>,
    /// Key, start and end of its text in `arena`; ascending by key.
    places: Vec<(K, u32, u32)>,
}

// By hand: a key needs no default.
impl<K> Default for Texts<K> {
    fn default() -> Texts<K> {
        Texts { arena: Vec::new(), places: Vec::new() }
    }
}

impl<K: Ord + Copy> Texts<K> {
    /// Texts that stand in `arena` at these places (key, start, end). Of two for one key the first stays; what does
    /// not lie inside is found as nothing.
    pub(crate) fn new(arena: Vec<u8>, mut places: Vec<(K, u32, u32)>) -> Texts<K> {
        places.sort_by_key(|place| place.0);
        places.dedup_by_key(|place| place.0);
        Texts { arena, places }
    }

    /// The text under `key`.
    pub(crate) fn get(&self, key: K) -> Option<&[u8]> {
        let at = self.places.binary_search_by_key(&key, |place| place.0).ok()?;
        let &(_, start, end) = self.places.get(at)?;
        self.arena.get(start as usize..end as usize)
    }

    /// Every text with its key, ascending by key.
    pub(crate) fn each(&self) -> impl Iterator<Item = (K, &[u8])> {
        let text = |&(key, start, end): &(K, u32, u32)| Some((key, self.arena.get(start as usize..end as usize)?));
        self.places.iter().filter_map(text)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The keys, ascending.
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
