//! Hashing of addresses and ports that remote peers choose: a few nanoseconds each, with a secret per run.

use record::hash::{mix_into, mix_words};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Builds hashers that start with the same secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SecretHash(u64);

impl Default for SecretHash {
    fn default() -> SecretHash {
        SecretHash(RandomState::new().hash_one(0u8))
    }
}

impl BuildHasher for SecretHash {
    type Hasher = MixHasher;

    #[inline]
    fn build_hasher(&self) -> MixHasher {
        MixHasher(self.0)
    }
}

/// Folds the hashed data into one number.
pub(crate) struct MixHasher(u64);

impl Hasher for MixHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix_words(self.0, bytes);
        let rest = bytes.get(bytes.len() & !7..).unwrap_or_default();
        if !rest.is_empty() {
            let number = rest.iter().fold(1u64, |number, byte| number << 8 | u64::from(*byte));
            self.0 = mix_into(self.0, number);
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.0 = mix_into(self.0, number.into());
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.0 = mix_into(self.0, number.into());
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = mix_into(self.0, number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = mix_into(self.0, number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.0 = mix_into(self.0, number as u64);
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.0 = mix_into(self.0, number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Addr;
    use std::collections::HashSet;

    #[test]
    fn neighbours_have_other_hashes_in_every_run() {
        let hash = SecretHash::default();
        let of = |port: u16, last: u8| hash.hash_one((1u64, 6u8, Addr::V4([10, 0, 0, last]), port));
        let hashes: HashSet<u64> =
            (0..1000).flat_map(|port| (0..100).map(move |last| (port, last))).map(|(p, l)| of(p, l)).collect();
        assert_eq!(hashes.len(), 100_000);
        // Hash tables use both ends of the hash.
        let low: HashSet<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
        let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert!(low.len() > 45_000 && high.len() == 128, "{} {}", low.len(), high.len());
        assert_ne!(hash.hash_one(1u64), SecretHash::default().hash_one(1u64));
        let texts: HashSet<u64> =
            [&b"a"[..], b"b", b"", b"\0", b"12345678", b"123456789"].map(|text| hash.hash_one(text)).into();
        assert_eq!(texts.len(), 6);
    }
}
