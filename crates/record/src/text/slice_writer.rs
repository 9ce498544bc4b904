//! Writes text into existing memory.

use super::TextBuffer;
use super::address::put_any;
use super::decimal::{ASCII_ZEROS, eight_digits, put_decimal};
use crate::Addr;

/// Writes pieces one after another into a slice. A piece that does not fit is omitted, so the caller must provide room
/// for the longest text plus 64 bytes, which is enough for every store.
pub struct SliceWriter<'s> {
    bytes: &'s mut [u8],
    at: usize,
}

impl TextBuffer for SliceWriter<'_> {
    #[inline(always)]
    fn room<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        if let Some(slot) = self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            self.at += write(slot);
        }
    }
}

impl<'s> SliceWriter<'s> {
    /// Starts at the first byte.
    #[inline]
    pub fn new(bytes: &'s mut [u8]) -> SliceWriter<'s> {
        SliceWriter { bytes, at: 0 }
    }

    /// Number of bytes written so far.
    #[inline]
    pub fn bytes_written(&self) -> usize {
        self.at
    }

    /// Appends a text of any length.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + text.len()) {
            place.copy_from_slice(text);
            self.at += text.len();
        }
    }

    /// Appends the first `len` bytes of `chunk` by storing all of it.
    #[inline(always)]
    pub fn chunk<const N: usize>(&mut self, chunk: &[u8; N], len: usize) {
        self.room(|slot| {
            *slot = *chunk;
            len.min(N)
        });
    }

    /// Appends a number in decimal.
    #[inline]
    pub fn decimal(&mut self, n: u64) {
        put_decimal(self, n);
    }

    /// Appends an address.
    #[inline]
    pub fn addr(&mut self, addr: Addr) {
        put_any(self, addr);
    }

    /// Appends the first `digits` of the nine digits of `ns`, the nanoseconds within a second.
    #[inline]
    pub fn fraction(&mut self, ns: u32, digits: usize) {
        let eight = eight_digits(u64::from(ns / 10)) | ASCII_ZEROS;
        // The byte after the first eight digits is the last digit.
        let nine = u128::from(eight) | u128::from(b'0' + (ns % 10) as u8) << 64;
        self.chunk(&nine.to_le_bytes(), digits.min(9));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_one_another() {
        let mut bytes = [0; 160];
        let mut writer = SliceWriter::new(&mut bytes);
        writer.text(b"at ");
        writer.fraction(7_654_321, 9);
        writer.chunk(b" from ", 6);
        writer.addr(Addr::V4([192, 0, 2, 1]));
        writer.chunk(b":port", 1);
        writer.decimal(4_294_967_295);
        writer.text(b" ");
        writer.fraction(999_999_999, 6);
        let written = writer.bytes_written();
        assert_eq!(String::from_utf8_lossy(&bytes[..written]), "at 007654321 from 192.0.2.1:4294967295 999999");
    }

    #[test]
    fn nothing_is_written_beyond_the_end() {
        let mut bytes = [b'.'; 4];
        let mut writer = SliceWriter::new(&mut bytes);
        writer.text(b"abcde");
        writer.decimal(12_345);
        writer.text(b"abc");
        assert_eq!((writer.bytes_written(), &bytes), (3, b"abc."));
    }
}
