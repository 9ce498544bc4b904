//! Reads from bytes that may end anywhere. If they end too early, the line ends in `[|protocol]`.

/// The packet ends before the bytes that are read. The line so far stays, and `[|protocol]` follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut;

/// The result of a printer.
pub(super) type Printed<T = ()> = Result<T, Cut>;

/// Returns `N` bytes at offset `at`.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Printed<[u8; N]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Cut)
}

/// Returns the byte at offset `at`.
#[inline]
pub(super) fn u8_at(bytes: &[u8], at: usize) -> Printed<u8> {
    bytes.get(at).copied().ok_or(Cut)
}

/// Returns two bytes in network byte order.
#[inline]
pub(super) fn be16(bytes: &[u8], at: usize) -> Printed<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// Returns three bytes in network byte order.
#[inline]
pub(super) fn be24(bytes: &[u8], at: usize) -> Printed<u32> {
    array(bytes, at).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
}

/// Returns four bytes in network byte order.
#[inline]
pub(super) fn be32(bytes: &[u8], at: usize) -> Printed<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// Returns eight bytes in network byte order.
#[inline]
pub(super) fn be64(bytes: &[u8], at: usize) -> Printed<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

/// Returns `len` bytes at offset `at`.
#[inline]
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> Printed<&[u8]> {
    bytes.get(at..).and_then(|rest| rest.get(..len)).ok_or(Cut)
}

/// Returns the bytes from offset `at` on; none if the bytes end before it.
#[inline]
pub(super) fn behind(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

/// Returns at most `len` bytes from the beginning.
#[inline]
pub(super) fn at_most(bytes: &[u8], len: usize) -> &[u8] {
    bytes.get(..len).unwrap_or(bytes)
}
