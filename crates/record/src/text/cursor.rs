//! A line under construction whose end position is in a register.

use super::address::v4;
use super::decimal::{EIGHT_DIGITS, head, padded_digits};
use super::{Line, TextBuffer};
use crate::Addr;

/// Appends pieces to a [`Line`]; the line contains them once [`Cursor::finish`] has been called.
///
/// If a line's end position is in memory, each piece waits for the store of the previous one: five cycles, three times
/// per cell. Here all common operations are inlined, and rare ones go through [`Cursor::with_line`]. No method passes
/// the cursor to a call, because that would move the end position back to memory. Before this, records as JSON took
/// 160 ns.
pub struct Cursor<'l> {
    line: &'l mut Line,
    at: usize,
}

impl TextBuffer for Cursor<'_> {
    #[inline(always)]
    fn room<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        if let Some(slot) = self.line.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            self.at += write(slot);
        }
    }
}

impl<'l> Cursor<'l> {
    /// Continues at the end of the line.
    #[inline(always)]
    pub fn new(line: &'l mut Line) -> Cursor<'l> {
        let at = line.at;
        Cursor { line, at }
    }

    /// Lets `put` append to the line: for rare or long pieces.
    #[inline(always)]
    pub fn with_line(&mut self, put: impl FnOnce(&mut Line)) {
        self.line.at = self.at;
        put(self.line);
        self.at = self.line.at;
    }

    /// Stores the end position, so that the line contains all pieces.
    #[inline(always)]
    pub fn finish(self) {
        self.line.at = self.at;
    }

    /// See [`Line::make_room`].
    #[inline(always)]
    pub fn make_room(&mut self, out: &mut Vec<u8>) {
        if !Line::has_room(self.at) {
            self.with_line(|line| line.drain(out));
        }
    }

    /// Appends one byte.
    #[inline(always)]
    pub fn byte(&mut self, byte: u8) {
        self.room(|slot| {
            *slot = [byte];
            1
        });
    }

    /// See [`Line::put_prepared`].
    #[inline(always)]
    pub fn put_prepared(&mut self, text: &[u8; Line::SHORT], len: usize) {
        self.room(|slot| {
            *slot = *text;
            len.min(Line::SHORT)
        });
    }

    /// See [`Line::put_short`].
    #[inline(always)]
    pub fn put_short(&mut self, text: &[u8]) {
        match text.len() {
            0 => {}
            1 => self.put_both_ends::<1>(text),
            2..=3 => self.put_both_ends::<2>(text),
            4..=7 => self.put_both_ends::<4>(text),
            8..=15 => self.put_both_ends::<8>(text),
            _ => self.put_both_ends::<16>(text),
        }
    }

    #[inline(always)]
    fn put_both_ends<const N: usize>(&mut self, text: &[u8]) {
        if let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) {
            let rest = text.len() - N;
            if let Some(slot) = self.line.bytes.get_mut(self.at..).and_then(|place| place.first_chunk_mut::<N>()) {
                *slot = *first;
            }
            if let Some(slot) = self.line.bytes.get_mut(self.at + rest..).and_then(|place| place.first_chunk_mut()) {
                *slot = *last;
                self.at += text.len();
            }
        }
    }

    /// Appends a number in decimal.
    #[inline(always)]
    pub fn decimal(&mut self, n: u64) {
        if n < 10 {
            return self.byte(b'0' + n as u8);
        }
        if n >= u64::from(EIGHT_DIGITS) {
            return self.with_line(|line| line.decimal(n));
        }
        let (digits, len) = head(n);
        self.room(|slot| {
            *slot = digits;
            len
        });
    }

    /// See [`Line::item`].
    #[inline(always)]
    pub fn item(&mut self, name: &[u8], n: u32) {
        if n >= EIGHT_DIGITS || name.len() > 16 {
            return self.with_line(|line| line.long_item(name, n));
        }
        let (digits, len) = padded_digits(n);
        self.room(|slot: &mut [u8; 32]| {
            if let Some(place) = slot.get_mut(..name.len()) {
                place.copy_from_slice(name);
            }
            if let Some(place) = slot.get_mut(name.len()..).and_then(|rest| rest.first_chunk_mut()) {
                // The byte after the eight digits is stored separately.
                *place = (u128::from(digits) | u128::from(b' ') << 64).to_le_bytes();
            }
            name.len() + len + 1
        });
    }

    /// See [`Line::chunk`].
    #[inline(always)]
    pub fn chunk<const N: usize>(&mut self, chunk: &[u8; N], len: usize) {
        self.room(|slot| {
            *slot = *chunk;
            len.min(N)
        });
    }

    /// Appends a number in lower-case hexadecimal, without a prefix.
    #[inline(always)]
    pub fn hex(&mut self, n: u64) {
        if n < 10 {
            return self.byte(b'0' + n as u8);
        }
        self.with_line(|line| line.hex(n));
    }

    /// Appends an address.
    #[inline(always)]
    pub fn addr(&mut self, addr: Addr) {
        match addr {
            Addr::V4(octets) => self.room(|slot| v4(slot, octets)),
            Addr::V6(_) => self.with_line(|line| line.addr(addr)),
        }
    }
}
