//! The parts of a block's layout that are needed here: where its rows are, and which bytes identify a row.
use super::wanted::AF_INET6;

/// Bytes of a region before the first row; offset in the head of the number that says where in a row its addresses
/// begin.
pub(super) const HEAD_BYTES: usize = 32;
pub(super) const ADDRESSES_AT: usize = 24;
/// Parts of a row that, together with its original addresses, identify it: family and protocol, ports, zone and its
/// direction, namespace.
const FAMILY: usize = 12;
const TELLING: [std::ops::Range<usize>; 3] = [12..14, 20..27, 32..36];

/// Rows of a block, with the offset of their addresses.
pub(super) fn rows(block: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let word = block.get(ADDRESSES_AT..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; 4]);
    let at = u32::from_ne_bytes(word) as usize;
    let mut rest = block.get(HEAD_BYTES..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (row, behind) =
            rest.split_at_checked(usize::from(*rest.first()?) * 4).filter(|(row, _)| !row.is_empty())?;
        rest = behind;
        Some((row, at))
    })
}

/// The bytes that identify a row.
pub(super) fn identifying_bytes(row: &[u8], addresses_at: usize) -> Vec<u8> {
    let addresses = if row.get(FAMILY) == Some(&AF_INET6) { 32 } else { 8 };
    let parts = TELLING.into_iter().chain(std::iter::once(addresses_at..addresses_at + addresses));
    parts.flat_map(|part| row.get(part).unwrap_or_default().iter().copied()).collect()
}
