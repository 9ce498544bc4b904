//! A short line under construction: cells are stored with fixed-width writes into a small array.
//!
//! Appending to a `Vec` costs a capacity check and a call of `memcpy` for every few bytes, which is most of the cost
//! of a row. Here every piece is stored as whole words and the end position is then set to the real end of the piece;
//! one copy moves the line to the output. Before this, rows of ten default columns took 90 ns; see `row_cost` among
//! the examples of `sinks` for the current time.

use super::TextBuffer;
use super::TimestampWriter;
use super::address::put_any;
use super::decimal::{ASCII_ZEROS, EIGHT_DIGITS, eight_digits, hex_group, padded_digits, put_decimal, put_hex_digits};
use crate::Addr;

/// Capacity of a line in bytes.
const SIZE: usize = 1024;
/// The maximum length of a piece, including the excess of its last store.
const PIECE: usize = 64;

/// The pieces appended since the last [`Line::drain`].
pub struct Line {
    pub(super) bytes: [u8; SIZE],
    pub(super) at: usize,
    timestamps: TimestampWriter,
}

impl TextBuffer for Line {
    /// Writes nothing beyond the end of the array, which means that a call of [`Line::make_room`] is missing.
    #[inline]
    fn room<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        let slot = self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut());
        debug_assert!(slot.is_some(), "a call of make_room is missing");
        if let Some(slot) = slot {
            self.at += write(slot);
        }
    }
}

impl Default for Line {
    fn default() -> Line {
        Line::new()
    }
}

impl Line {
    /// The maximum length of a text that is appended as one piece.
    pub const SHORT: usize = 32;
    /// The maximum number of bytes that [`Line::hex_pairs`] writes.
    pub const HEX_PAIRS: usize = 20;

    /// An empty line.
    pub fn new() -> Line {
        Line { bytes: [0; SIZE], at: 0, timestamps: TimestampWriter::new() }
    }

    /// Moves the contents to `out` unless there is room for a few more pieces (a key, quotation marks, a cell).
    #[inline]
    pub fn make_room(&mut self, out: &mut Vec<u8>) {
        if !Line::has_room(self.at) {
            self.drain(out);
        }
    }

    /// True if there is room for a few pieces after `at`.
    #[inline(always)]
    pub(super) fn has_room(at: usize) -> bool {
        at <= SIZE - 4 * PIECE
    }

    /// Moves the contents to `out`.
    #[inline]
    pub fn drain(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes.get(..self.at).unwrap_or_default());
        self.at = 0;
    }

    /// Stores all of `chunk` and counts its first `len` bytes.
    #[inline]
    fn store<const N: usize>(&mut self, chunk: [u8; N], len: usize) {
        self.room(|slot| {
            *slot = chunk;
            len
        });
    }

    /// Appends one byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.store([byte], 1);
    }

    /// Appends at most [`Line::SHORT`] bytes, with two stores that may overlap.
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

    /// Appends the first `len` bytes of `text` with one store: for texts that occur repeatedly, such as keys.
    #[inline(always)]
    pub fn put_prepared(&mut self, text: &[u8; Line::SHORT], len: usize) {
        self.store(*text, len.min(Line::SHORT));
    }

    /// Appends a text of `N` to `2 * N` bytes by storing its first and its last `N` bytes.
    #[inline]
    fn put_both_ends<const N: usize>(&mut self, text: &[u8]) {
        if let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) {
            self.store(*first, text.len() - N);
            self.store(*last, N);
        }
    }

    /// Appends a number in decimal.
    #[inline]
    pub fn decimal(&mut self, n: u64) {
        put_decimal(self, n);
    }

    /// Appends a number in lower-case hexadecimal, without a prefix.
    #[inline]
    pub fn hex(&mut self, n: u64) {
        put_hex_digits(self, n);
    }

    /// Appends `name`, a number in decimal and a blank, with one capacity check: `SPT=443 `. The name has at most 16
    /// bytes and should be known at compile time.
    #[inline(always)]
    pub fn item(&mut self, name: &[u8], n: u32) {
        if n >= EIGHT_DIGITS || name.len() > 16 {
            return self.long_item(name, n);
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

    #[inline(never)]
    pub(super) fn long_item(&mut self, name: &[u8], n: u32) {
        self.put_short(name);
        let n = u64::from(n);
        if n >= u64::from(EIGHT_DIGITS) {
            // One or two digits, then eight.
            let (high, low) = (n / u64::from(EIGHT_DIGITS), n % u64::from(EIGHT_DIGITS));
            self.decimal(high);
            return self.store((u128::from(eight_digits(low) | ASCII_ZEROS) | u128::from(b' ') << 64).to_le_bytes(), 9);
        }
        self.decimal(n);
        self.byte(b' ');
    }

    /// Appends the first `len` bytes of `chunk` with one fixed-width store.
    #[inline(always)]
    pub fn chunk<const N: usize>(&mut self, chunk: &[u8; N], len: usize) {
        self.room(|slot| {
            *slot = *chunk;
            len.min(N)
        });
    }

    /// Appends a number as four bytes of lower-case hexadecimal, including leading zeros: `0800`.
    #[inline]
    pub fn hex4(&mut self, n: u16) {
        self.store(hex_group(n).0.to_le_bytes(), 4);
    }

    /// Appends a byte as two digits of upper-case hexadecimal: `1E`.
    #[inline]
    pub fn upper_hex2(&mut self, byte: u8) {
        let digit = |n: u8| if n < 10 { b'0' + n } else { b'A' - 10 + n };
        self.store([digit(byte >> 4), digit(byte & 15)], 2);
    }

    /// Appends a few bytes as pairs of lower-case hexadecimal separated by `:`, such as `02:00:00:00:00:01`. Writes at
    /// most [`Line::HEX_PAIRS`] bytes.
    #[inline]
    pub fn hex_pairs(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().take(Self::HEX_PAIRS) {
            let (digits, _) = hex_group((*byte).into());
            // The digits are the upper half; a colon follows them.
            self.store(((digits >> 16) | u32::from(b':') << 16).to_le_bytes(), 3);
        }
        if !bytes.is_empty() {
            self.at = self.at.saturating_sub(1);
        }
    }

    /// Appends a point in time, see [`TimestampWriter`].
    #[inline]
    pub fn timestamp(&mut self, ns: u64) {
        let text = *self.timestamps.text(ns);
        self.put_short(&text);
    }

    /// Appends an address, IPv6 as in RFC 5952.
    #[inline]
    pub fn addr(&mut self, addr: Addr) {
        put_any(self, addr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{self, Cursor};
    use proptest::prelude::*;

    /// Writes the same piece with a line and with `record::text`.
    fn both(put: impl FnOnce(&mut Line), as_text: impl FnOnce(&mut Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
        let (mut line, mut here, mut there) = (Line::new(), Vec::new(), Vec::new());
        put(&mut line);
        line.drain(&mut here);
        as_text(&mut there);
        (here, there)
    }

    proptest! {
        #[test]
        fn pieces_are_what_record_writes(n: u64, octets: [u8; 16], zeros: u16, mapped: bool, word in "[ -~]{0,32}") {
            let (here, there) = both(|l| l.decimal(n), |o| text::put_u64(o, n));
            prop_assert_eq!(here, there);
            let mut prepared = [b'.'; Line::SHORT];
            prepared[..word.len()].copy_from_slice(word.as_bytes());
            let (here, there) =
                both(|l| l.put_prepared(&prepared, word.len()), |o| o.extend_from_slice(word.as_bytes()));
            prop_assert_eq!(here, there);
            let (here, there) = both(|l| l.hex(n), |o| text::put_hex(o, n));
            prop_assert_eq!(here, there);
            let (here, there) = both(|l| l.put_short(word.as_bytes()), |o| o.extend_from_slice(word.as_bytes()));
            prop_assert_eq!(here, there);
            let mut holed = octets;
            for (i, octet) in holed.iter_mut().enumerate() {
                if zeros >> i & 1 == 1 || mapped && i < 10 { *octet = 0; }
                if mapped && (i == 10 || i == 11) { *octet = 0xff; }
            }
            let four = [octets[0], octets[1], octets[2], octets[3]];
            for addr in [Addr::V6(octets), Addr::V6(holed), Addr::V4(four)] {
                let (here, there) = both(|l| l.addr(addr), |o| text::put_addr(o, addr));
                prop_assert_eq!(here, there);
            }
        }

        #[test]
        fn a_cursor_puts_the_same_pieces(n: u64, octets: [u8; 16], word in "[ -~]{0,32}", before in "[a-z]{0,32}") {
            for n in [n, n % 100_000_000, n % 65_536, n % 12] {
                for addr in [Addr::V6(octets), Addr::V4([octets[0], octets[1], octets[2], octets[3]])] {
                    let mut prepared = [b'.'; Line::SHORT];
                    prepared[..before.len()].copy_from_slice(before.as_bytes());
                    let put = |line: &mut Line| {
                        let mut cursor = Cursor::new(line);
                        cursor.put_prepared(&prepared, before.len());
                        cursor.decimal(n);
                        cursor.byte(b' ');
                        cursor.addr(addr);
                        cursor.put_short(word.as_bytes());
                        cursor.hex(n);
                        cursor.item(before.as_bytes(), n as u32);
                        cursor.chunk(&prepared, before.len());
                        cursor.finish();
                    };
                    let (here, there) = both(put, |out| {
                        let item = n as u32;
                        out.extend(format!("{before}{n} {addr}{word}{n:x}{before}{item} {before}").into_bytes());
                    });
                    prop_assert_eq!(here, there);
                }
            }
        }

        #[test]
        fn a_cursor_moves_on(pieces in proptest::collection::vec("[a-z]{0,32}", 0..200)) {
            let (mut line, mut out) = (Line::new(), Vec::new());
            let mut cursor = Cursor::new(&mut line);
            for piece in &pieces {
                cursor.make_room(&mut out);
                cursor.put_short(piece.as_bytes());
            }
            cursor.finish();
            line.drain(&mut out);
            prop_assert_eq!(out, pieces.concat().into_bytes());
        }

        #[test]
        fn items(n: u32, small: u16, name in "[A-Z]{0,20}=") {
            for n in [n, n % 1_000_000_000, u32::from(small), u32::from(small) % 12] {
                let wanted = format!("{name}{n} ");
                let (here, there) = both(|l| l.item(name.as_bytes(), n), |o| o.extend_from_slice(wanted.as_bytes()));
                prop_assert_eq!(here, there);
            }
        }

        #[test]
        fn hexadecimal(n: u32, small: u16, byte: u8, bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            for n in [n, u32::from(small), u32::from(byte)] {
                let (here, there) = both(|l| l.hex(n.into()), |o| text::put_hex(o, n.into()));
                prop_assert_eq!(here, there);
            }
            let write = |text: String| move |out: &mut Vec<u8>| out.extend_from_slice(text.as_bytes());
            let (here, there) = both(|l| l.hex4(small), write(format!("{small:04x}")));
            prop_assert_eq!(here, there);
            let (here, there) = both(|l| l.upper_hex2(byte), write(format!("{byte:02X}")));
            prop_assert_eq!(here, there);
            let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let (here, there) = both(|l| l.hex_pairs(&bytes), write(pairs.join(":")));
            prop_assert_eq!(here, there);
        }

        #[test]
        fn a_full_line_moves_on(pieces in proptest::collection::vec("[a-z]{0,32}", 0..200)) {
            let (mut line, mut out) = (Line::new(), Vec::new());
            for piece in &pieces {
                line.make_room(&mut out);
                line.put_short(piece.as_bytes());
            }
            line.drain(&mut out);
            prop_assert_eq!(out, pieces.concat().into_bytes());
        }
    }
}
