//! The values of Kafka's protocol, as in <https://kafka.apache.org/protocol>: big-endian numbers, strings and arrays
//! with their length in front.

use std::io::{self, ErrorKind};

/// Appends a string.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&i16::try_from(text.len()).unwrap_or(i16::MAX).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Appends the length of an array or of bytes.
pub(super) fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
}

/// Appends a number in base 128 after mapping small negative numbers to small positive ones (zigzag), as in records.
pub(super) fn put_varint(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The number of bytes that [`put_varint`] appends.
pub(super) fn varint_len(number: i64) -> usize {
    let bits = 64 - (((number << 1) ^ (number >> 63)) as u64 | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// An answer that is read value by value.
pub(super) struct Answer<'a>(pub(super) &'a [u8]);

impl<'a> Answer<'a> {
    fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.first_chunk().copied().ok_or_else(malformed)
    }

    pub(super) fn i8(&mut self) -> io::Result<i8> {
        self.chunk().map(i8::from_be_bytes)
    }

    pub(super) fn i16(&mut self) -> io::Result<i16> {
        self.chunk().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> io::Result<i32> {
        self.chunk().map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> io::Result<i64> {
        self.chunk().map(i64::from_be_bytes)
    }

    /// Reads a string; a null string is empty.
    pub(super) fn string(&mut self) -> io::Result<&'a str> {
        let length = self.i16()?.max(0) as usize;
        std::str::from_utf8(self.take(length)?).map_err(|_| malformed())
    }

    /// Reads bytes; null bytes are empty.
    pub(super) fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.i32()?.max(0)).map_err(|_| malformed())?;
        self.take(length)
    }

    /// Reads an array: calls `each` for each element. A null array is empty.
    pub(super) fn array(&mut self, mut each: impl FnMut(&mut Answer<'a>) -> io::Result<()>) -> io::Result<()> {
        // No element is smaller than a byte, so the length is limited by the answer.
        for _ in 0..self.i32()? {
            each(self)?;
        }
        Ok(())
    }
}

/// The error of an answer that is not as the protocol says.
pub(super) fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "an answer of the broker is malformed")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        for (number, bytes) in [
            (0, &[0][..]),
            (-1, &[1]),
            (63, &[126]),
            (-64, &[127]),
            (64, &[0x80, 1]),
            (300, &[0xd8, 4]),
            (i64::MIN, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!((&*out, varint_len(number)), (bytes, bytes.len()), "{number}");
        }
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let mut answer = Answer(&[0, 2, b'a', b'b', 255, 255, 255, 255, 0, 0, 0, 1, 7, 0, 9]);
        assert_eq!((answer.string().unwrap(), answer.bytes().unwrap()), ("ab", &[][..]));
        answer.array(|each| each.i8().map(|byte| assert_eq!(byte, 7))).unwrap();
        assert!(answer.string().is_err() && answer.i64().is_err());
        let mut endless = Answer(&[127, 255, 255, 255, 1]);
        assert!(endless.array(|each| each.i8().map(drop)).is_err());
    }
}
