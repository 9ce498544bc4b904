//! Reading from bytes that may end anywhere: what ends too early is said by `[|protocol]` in the line.

/// The packet ends before what is read. The line so far stays, `[|protocol]` follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut;

/// What a printer returns.
pub(super) type Printed<T = ()> = Result<T, Cut>;

/// `N` bytes at offset `at`.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Printed<[u8; N]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Cut)
}

/// One byte at offset `at`.
#[inline]
pub(super) fn u8_at(bytes: &[u8], at: usize) -> Printed<u8> {
    bytes.get(at).copied().ok_or(Cut)
}

/// Two bytes in network byte order.
#[inline]
pub(super) fn be16(bytes: &[u8], at: usize) -> Printed<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// Three bytes in network byte order.
#[inline]
pub(super) fn be24(bytes: &[u8], at: usize) -> Printed<u32> {
    array(bytes, at).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
}

/// Four bytes in network byte order.
#[inline]
pub(super) fn be32(bytes: &[u8], at: usize) -> Printed<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// Eight bytes in network byte order.
#[inline]
#[allow(dead_code, reason = "for the application protocols")]
pub(super) fn be64(bytes: &[u8], at: usize) -> Printed<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

/// `len` bytes at offset `at`.
#[inline]
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> Printed<&[u8]> {
    bytes.get(at..).and_then(|rest| rest.get(..len)).ok_or(Cut)
}

/// What stands behind offset `at`; nothing if the bytes end before it.
#[inline]
pub(super) fn behind(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

/// At most `len` bytes from the beginning.
#[inline]
pub(super) fn at_most(bytes: &[u8], len: usize) -> &[u8] {
    bytes.get(..len).unwrap_or(bytes)
}
