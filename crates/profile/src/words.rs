//! Blocks of bytes: numbers of 64 bits one after the other.
use crate::error::ProfileError;

/// Appends numbers.
pub(crate) fn put(into: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| into.extend_from_slice(&word.to_ne_bytes()));
}

/// Removes `N` numbers from the beginning of `bytes`.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u64; N], ProfileError> {
    let mut words = [0; N];
    for word in &mut words {
        let (first, rest) = bytes.split_first_chunk().ok_or(ProfileError::Malformed("a block is cut short"))?;
        *word = u64::from_ne_bytes(*first);
        *bytes = rest;
    }
    Ok(words)
}
