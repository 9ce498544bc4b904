//! 64-bit keys of rows, computed from the numbers that identify a row. Each takes a few nanoseconds.
//!
//! Remote peers choose ports, addresses and similar values. A key must start from a random secret if the code treats
//! two rows with equal keys as the same row.
use crate::Addr;

/// Folds `with` into `key` with a folded multiplication: every bit of both affects every bit of the result. (After a
/// plain multiplication, an attacker who chooses two of the words could find others with the same result, regardless
/// of the secret.)
#[inline(always)]
pub fn mix_into(key: u64, with: u64) -> u64 {
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * u128::from(with ^ 0xe703_7ed1_a0b4_28db);
    (product as u64) ^ (product >> 64) as u64
}

/// Folds an address into `key`.
#[inline]
pub fn mix_addr(key: u64, addr: &Addr) -> u64 {
    match addr {
        Addr::V4(octets) => mix_into(key, u32::from_ne_bytes(*octets).into()),
        Addr::V6(octets) => {
            let both = u128::from_ne_bytes(*octets);
            mix_into(mix_into(key, both as u64), (both >> 64) as u64)
        }
    }
}

/// Folds bytes into `key`, 8 at a time; a remainder of fewer than 8 bytes is ignored.
#[inline(always)]
pub fn mix_words(key: u64, bytes: &[u8]) -> u64 {
    bytes
        .chunks_exact(8)
        .filter_map(<[u8]>::first_chunk)
        .fold(key, |key, word| mix_into(key, u64::from_ne_bytes(*word)))
}
