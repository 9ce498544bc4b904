//! As much of a block as must be known here: where its rows are, and what tells one from all others.
use super::wanted::AF_INET6;

/// Bytes of a region before the first row; where the head says how far into a row its addresses begin.
pub(super) const HEAD: usize = 32;
pub(super) const ADDRESSES_AT: usize = 24;
/// Members of a row that, with its original addresses, tell it from all others: family and protocol, ports, zone and
/// its direction, namespace.
const FAMILY: usize = 12;
const TELLING: [std::ops::Range<usize>; 3] = [12..14, 20..27, 32..36];

/// Rows of a block, with the place of their addresses.
pub(super) fn rows(block: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let word = block.get(ADDRESSES_AT..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; 4]);
    let at = u32::from_ne_bytes(word) as usize;
    let mut rest = block.get(HEAD..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (row, behind) =
            rest.split_at_checked(usize::from(*rest.first()?) * 4).filter(|(row, _)| !row.is_empty())?;
        rest = behind;
        Some((row, at))
    })
}

/// What tells a row from all others.
pub(super) fn telling(row: &[u8], addresses_at: usize) -> Vec<u8> {
    let addresses = if row.get(FAMILY) == Some(&AF_INET6) { 32 } else { 8 };
    let parts = TELLING.into_iter().chain(std::iter::once(addresses_at..addresses_at + addresses));
    parts.flat_map(|part| row.get(part).unwrap_or_default().iter().copied()).collect()
}
