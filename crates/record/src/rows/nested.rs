//! Nested attributes that a row passes on undecoded: (length, kind, payload), padded to four bytes.
//!
//! The sources have a reader that reports errors; here malformed attributes are ignored.

/// `NLA_TYPE_MASK` (include/uapi/linux/netlink.h).
const KIND_MASK: u16 = 0x3fff;

/// The payload of the last attribute of this kind.
pub(super) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).filter(|(k, _)| *k == kind).map(|(_, payload)| payload).last()
}

/// The attribute's payload as a number of 1, 2, 4 or 8 bytes.
pub(super) fn number(bytes: &[u8], kind: u16) -> Option<u64> {
    let payload = find(bytes, kind)?;
    match payload.len() {
        1 => payload.first().map(|&n| n.into()),
        2 => payload.try_into().ok().map(|b| u16::from_ne_bytes(b).into()),
        4 => u32_at(payload, 0).map(u64::from),
        8 => u64_at(payload, 0),
        _ => None,
    }
}

/// Iterates over kind and payload of the attributes; ends at the first malformed one.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, _) = bytes.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let payload = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([head[2], head[3]]) & KIND_MASK, payload))
    })
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_ne_bytes)
}
