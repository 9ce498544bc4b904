//! Names at the end of a block: kind, number, length, text of each.
use crate::error::DropsError;

/// Kinds of names.
pub(crate) const REASON: u8 = 0;
pub(crate) const FUNCTION: u8 = 1;

/// Appends a name.
pub(crate) fn put_name(into: &mut Vec<u8>, kind: u8, number: u64, name: &[u8]) {
    let name = name.get(..usize::from(u16::MAX)).unwrap_or(name);
    into.push(kind);
    into.extend_from_slice(&number.to_ne_bytes());
    into.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_ne_bytes());
    into.extend_from_slice(name);
}

/// Decodes names and survives any bytes without panicking: calls back with kind, number and text of each name. Fails if
/// they are cut short.
pub(crate) fn read_names<'b>(mut bytes: &'b [u8], mut each: impl FnMut(u8, u64, &'b [u8])) -> Result<(), DropsError> {
    const CUT: DropsError = DropsError::Malformed("a name is truncated");
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<11>().ok_or(CUT)?;
        let [kind, number @ .., low, high] = *head;
        let (name, rest) = rest.split_at_checked(usize::from(u16::from_ne_bytes([low, high]))).ok_or(CUT)?;
        each(kind, u64::from_ne_bytes(number), name);
        bytes = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_come_back_and_cut_ones_are_refused() {
        let mut bytes = Vec::new();
        put_name(&mut bytes, REASON, 3, b"NO_SOCKET");
        put_name(&mut bytes, FUNCTION, u64::MAX, b"");
        let mut read = Vec::new();
        read_names(&bytes, |kind, number, name| read.push((kind, number, name))).unwrap();
        assert_eq!(read, [(REASON, 3, &b"NO_SOCKET"[..]), (FUNCTION, u64::MAX, b"")]);
        let whole = 11 + b"NO_SOCKET".len();
        for length in (1..bytes.len()).filter(|length| *length != whole) {
            assert!(read_names(&bytes[..length], |_, _, _| {}).is_err(), "{length} bytes");
        }
    }
}
