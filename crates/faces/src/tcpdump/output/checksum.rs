//! The Internet checksum (RFC 1071).

use super::bytes::{Printed, be16};

/// Returns the ones' complement sum of parts, each of which begins at an even offset; 0xffff if they include a correct
/// checksum.
pub(super) fn sum(parts: &[&[u8]]) -> u16 {
    let mut total: u64 = 0;
    for part in parts {
        let mut words = part.chunks_exact(4);
        for word in words.by_ref() {
            total += u64::from(word.first_chunk().copied().map_or(0, u32::from_be_bytes));
        }
        let mut last = [0; 4];
        last.iter_mut().zip(words.remainder()).for_each(|(to, from)| *to = *from);
        total += u64::from(u32::from_be_bytes(last));
    }
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The sum over everything, checksum included, if the checksum is correct.
pub(super) const RIGHT: u16 = 0xffff;

/// Returns the checksum at offset `at` and the correct one, unless the sum over everything shows that it is correct.
pub(super) fn wrong(sum: u16, bytes: &[u8], at: usize) -> Printed<Option<(u16, u16)>> {
    if sum == RIGHT {
        return Ok(None);
    }
    let found = be16(bytes, at)?;
    let total = u32::from(found) + u32::from(!sum);
    Ok(Some((found, ((total & 0xffff) + (total >> 16)) as u16)))
}
