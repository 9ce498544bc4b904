//! The Internet checksum (RFC 1071).

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
        for (to, from) in last.iter_mut().zip(words.remainder()) {
            *to = *from;
        }
        total += u64::from(u32::from_be_bytes(last));
    }
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Returns the correct checksum for data that contains the checksum `found` and has the total sum `sum`.
pub(super) fn should_be(found: u16, sum: u16) -> u16 {
    let total = u32::from(found) + u32::from(!sum);
    ((total & 0xffff) + (total >> 16)) as u16
}

/// True if a sum over everything, checksum included, means that the checksum is correct.
pub(super) fn is_right(sum: u16) -> bool {
    sum == 0xffff
}
