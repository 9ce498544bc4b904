//! Messages of Protocol Buffers: fields that are appended, and fields that are read.

/// The wire types of fields.
const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;
const FIXED32: u8 = 5;

/// Appends a number of 7 bits a byte, the lowest first.
pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes such a number; `None` if it is incomplete or too large.
pub(super) fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..70).step_by(7) {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_tag(out: &mut Vec<u8>, field: u32, wire: u8) {
    put_varint(out, u64::from(field << 3) | u64::from(wire));
}

/// Appends a field with a number.
pub(super) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    put_tag(out, field, VARINT);
    put_varint(out, number);
}

/// Appends a field of eight bytes.
pub(super) fn put_fixed(out: &mut Vec<u8>, field: u32, bytes: [u8; 8]) {
    put_tag(out, field, FIXED64);
    out.extend_from_slice(&bytes);
}

/// Appends a field with text, bytes or a message.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_tag(out, field, BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValue<'m> {
    Number(u64),
    Bytes(&'m [u8]),
    /// Eight or four bytes.
    Fixed,
}

fn take_bytes<'m>(rest: &mut &'m [u8], length: u64) -> Option<&'m [u8]> {
    let (taken, more) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = more;
    Some(taken)
}

/// Iterates over the fields of a message: their numbers and values. Ends early if the bytes are malformed.
pub(super) fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, FieldValue<'_>)> {
    std::iter::from_fn(move || {
        let tag = take_varint(&mut rest)?;
        let value = match (tag & 7) as u8 {
            VARINT => FieldValue::Number(take_varint(&mut rest)?),
            FIXED64 => take_bytes(&mut rest, 8).map(|_| FieldValue::Fixed)?,
            FIXED32 => take_bytes(&mut rest, 4).map(|_| FieldValue::Fixed)?,
            BYTES => {
                let length = take_varint(&mut rest)?;
                FieldValue::Bytes(take_bytes(&mut rest, length)?)
            }
            _ => return None,
        };
        Some((tag >> 3, value))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_fixed(&mut out, 11, [7; 8]);
        put_bytes(&mut out, 2, b"text");
        let all: Vec<_> = fields(&out).collect();
        let expected = [(1, FieldValue::Number(u64::MAX)), (11, FieldValue::Fixed), (2, FieldValue::Bytes(b"text"))];
        assert_eq!(all, expected);
        assert_eq!(fields(&[0x0a, 5, b'x']).count(), 0, "the text is cut off");
        assert_eq!(take_varint(&mut &[0xff; 10][..]), None);
    }

    proptest! {
        #[test]
        fn numbers_keep_their_value(number: u64, bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            prop_assert_eq!(take_varint(&mut &out[..]), Some(number));
            prop_assert!(fields(&bytes).count() <= bytes.len());
        }
    }
}
