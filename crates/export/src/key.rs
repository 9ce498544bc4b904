//! Keys of records: 128 bits that outsiders cannot predict.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// Makes keys from bytes: two SipHashes, each with its own random seed from the kernel. A sender that chooses the
/// bytes can find neither two inputs with the same key nor keys that collide in a table.
#[derive(Debug, Clone)]
pub struct KeyMaker {
    seeds: [RandomState; 2],
}

impl Default for KeyMaker {
    fn default() -> KeyMaker {
        KeyMaker { seeds: [RandomState::new(), RandomState::new()] }
    }
}

impl KeyMaker {
    /// Returns the key of `bytes`.
    pub fn key(&self, bytes: &[u8]) -> u128 {
        let [high, low] = [&self.seeds[0], &self.seeds[1]].map(|seed| {
            let mut hasher = seed.build_hasher();
            hasher.write(bytes);
            hasher.finish()
        });
        u128::from(high) << 64 | u128::from(low)
    }
}

/// A map by keys, which are already random.
pub(crate) type KeyMap<V> = HashMap<u128, V, BuildHasherDefault<KeyHasher>>;

/// Uses a key as its own hash.
#[derive(Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = (key >> 64) as u64 ^ key as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_stay() {
        let maker = KeyMaker::default();
        assert_eq!(maker.key(b"a"), maker.key(b"a"));
        assert_ne!(maker.key(b"a"), maker.key(b"b"));
        assert_ne!(maker.key(b"a"), KeyMaker::default().key(b"a"), "seeded anew");
        assert_ne!((maker.key(b"a") >> 64) as u64, maker.key(b"a") as u64);
    }
}
