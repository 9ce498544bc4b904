//! A short line under construction: cells as stores of fixed width into a small array.
//!
//! Appending to a `Vec` costs a capacity check and a call of `memcpy` for every few bytes, which is most of what a
//! row costs. Here every piece is stored as whole words and the end is moved back to where the piece ends; one copy
//! then takes the line to the output. Measured on rows of ten default columns: 90 ns before, see
//! `examples/row_cost.rs` for now.

use record::Addr;

/// Bytes of a line that are kept here.
const SIZE: usize = 1024;
/// No piece is longer, with the slack that its last store may take.
const PIECE: usize = 64;
/// Texts up to this length are pieces.
pub(super) const SHORT: usize = 32;

/// The pieces put since the last [`Line::drain`].
pub(super) struct Line {
    bytes: [u8; SIZE],
    at: usize,
}

impl Line {
    /// An empty line.
    pub(super) fn new() -> Line {
        Line { bytes: [0; SIZE], at: 0 }
    }

    /// Moves what stands here to `out` unless there is room for a few more pieces (a key, quotation marks, a cell).
    #[inline]
    pub(super) fn make_room(&mut self, out: &mut Vec<u8>) {
        if self.at > SIZE - 4 * PIECE {
            self.drain(out);
        }
    }

    /// Moves everything to `out`.
    #[inline]
    pub(super) fn drain(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes.get(..self.at).unwrap_or_default());
        self.at = 0;
    }

    /// Stores `chunk`, of which `len` bytes count. Beyond the end nothing happens: [`Line::make_room`] was forgotten.
    #[inline]
    fn store<const N: usize>(&mut self, chunk: [u8; N], len: usize) {
        if let Some(slot) = self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            *slot = chunk;
            self.at += len;
        }
    }

    /// One byte.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.store([byte], 1);
    }

    /// At most [`SHORT`] bytes, by two stores that may overlap.
    #[inline]
    pub(super) fn short(&mut self, text: &[u8]) {
        match text.len() {
            0 => {}
            1 => self.ends::<1>(text),
            2..=3 => self.ends::<2>(text),
            4..=7 => self.ends::<4>(text),
            8..=15 => self.ends::<8>(text),
            _ => self.ends::<16>(text),
        }
    }

    /// The first and the last `N` bytes of a text of `N` to `2 * N` bytes.
    #[inline]
    fn ends<const N: usize>(&mut self, text: &[u8]) {
        if let (Some(first), Some(last)) = (text.first_chunk::<N>(), text.last_chunk::<N>()) {
            self.store(*first, text.len() - N);
            self.store(*last, N);
        }
    }

    /// A number in decimal.
    #[inline]
    pub(super) fn decimal(&mut self, n: u64) {
        if n < 10 {
            return self.byte(b'0' + n as u8);
        }
        const EIGHT: u64 = 100_000_000;
        if n < EIGHT {
            return self.head(n);
        }
        let (high, low) = (n / EIGHT, n % EIGHT);
        if high < EIGHT {
            self.head(high);
        } else {
            self.head(high / EIGHT);
            self.store((eight_digits(high % EIGHT) | ASCII_ZEROS).to_le_bytes(), 8);
        }
        self.store((eight_digits(low) | ASCII_ZEROS).to_le_bytes(), 8);
    }

    /// Up to eight digits, not 0, without leading zeros.
    #[inline]
    fn head(&mut self, n: u64) {
        let digits = eight_digits(n);
        let leading = digits.trailing_zeros() / 8;
        self.store(((digits | ASCII_ZEROS) >> (leading * 8 % 64)).to_le_bytes(), 8 - leading as usize);
    }

    /// An address, IPv6 by RFC 5952.
    #[inline]
    pub(super) fn addr(&mut self, addr: Addr) {
        match addr {
            Addr::V4(octets) => self.v4(octets),
            Addr::V6(octets) => self.v6(octets),
        }
    }

    #[inline]
    fn v4(&mut self, octets: [u8; 4]) {
        for octet in octets {
            let (digits, len) = OCTETS[octet as usize];
            self.store(digits, len as usize);
        }
        self.at = self.at.saturating_sub(1); // the last dot
    }

    fn v6(&mut self, octets: [u8; 16]) {
        let groups: [u16; 8] = std::array::from_fn(|i| u16::from_be_bytes([octets[i * 2], octets[i * 2 + 1]]));
        let (start, len) = longest_zero_run(&groups);
        // Mapped (`::ffff:a.b.c.d`) and compatible addresses end in IPv4.
        let v4_tail = start == 0 && (len == 6 || len == 5 && groups[5] == 0xffff);
        let end = if v4_tail { 6 } else { 8 };
        let mut i = 0;
        while i < end {
            if i == start {
                self.store(*b"::", 2);
                i += len;
                continue;
            }
            if i > 0 && i != start + len {
                self.byte(b':');
            }
            self.group(groups[i]);
            i += 1;
        }
        if v4_tail {
            if len == 5 {
                self.byte(b':');
            }
            self.v4([octets[12], octets[13], octets[14], octets[15]]);
        }
    }

    /// Up to four hexadecimal digits, without leading zeros.
    #[inline]
    fn group(&mut self, group: u16) {
        let n = u32::from(group);
        // One digit a byte, the highest in the lowest byte: that is the order in memory.
        let digits = n >> 12 | (n >> 8 & 15) << 8 | (n >> 4 & 15) << 16 | (n & 15) << 24;
        // 16 - 10 = 6: adding it carries into bit 4 for the digits a to f, which stand 39 further on in ASCII.
        let letters = (digits + 0x0606_0606) >> 4 & 0x0101_0101;
        let ascii = digits + 0x3030_3030 + letters * 39;
        let leading = (digits.trailing_zeros() / 8).min(3);
        self.store((ascii >> (leading * 8)).to_le_bytes(), 4 - leading as usize);
    }
}

const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight decimal digits of `n` (below 10^8), one a byte, the highest in the lowest byte.
///
/// Halves the number three times with all halves worked on at once: four digits in each half of the word, then two in
/// each quarter, then one in each byte. The multiplications are divisions by 100 and 10, exact for so few digits.
#[inline]
fn eight_digits(n: u64) -> u64 {
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// `.`-terminated decimal of every octet: text and its length with the dot.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([0; 4], 0); 256];
    let mut n = 0;
    while n < 256 {
        let (hundreds, tens, ones) = (b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8);
        table[n] = match n {
            100.. => ([hundreds, tens, ones, b'.'], 4),
            10.. => ([tens, ones, b'.', 0], 3),
            _ => ([ones, b'.', 0, 0], 2),
        };
        n += 1;
    }
    table
};

/// Start and length of the longest run of two or more zero groups, the first of equals; (8, 0) if there is none.
#[inline]
fn longest_zero_run(groups: &[u16; 8]) -> (usize, usize) {
    // Bit i: a run of `len` zero groups starts at group i.
    let mut runs = groups.iter().rev().fold(0u32, |bits, &g| bits << 1 | u32::from(g == 0));
    let mut len = 1;
    while runs & runs >> 1 != 0 {
        runs &= runs >> 1;
        len += 1;
    }
    if len < 2 { (8, 0) } else { (runs.trailing_zeros() as usize, len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use record::text;

    /// The same piece here and by `record::text`.
    fn both(put: impl FnOnce(&mut Line), as_text: impl FnOnce(&mut Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
        let (mut line, mut here, mut there) = (Line::new(), Vec::new(), Vec::new());
        put(&mut line);
        line.drain(&mut here);
        as_text(&mut there);
        (here, there)
    }

    #[test]
    fn numbers_at_every_edge() {
        let powers = (0..20).map(|e| 10u64.pow(e));
        for n in powers.flat_map(|p| [p - 1, p, p + 1, p.wrapping_mul(9)]).chain([u64::MAX, 0]).chain(0..70_000) {
            let (here, there) = both(|l| l.decimal(n), |o| text::put_u64(o, n));
            assert_eq!(here, there, "{n}");
        }
    }

    proptest! {
        #[test]
        fn pieces_are_what_record_writes(n: u64, octets: [u8; 16], zeros: u16, mapped: bool, word in "[ -~]{0,32}") {
            let (here, there) = both(|l| l.decimal(n), |o| text::put_u64(o, n));
            prop_assert_eq!(here, there);
            let (here, there) = both(|l| l.short(word.as_bytes()), |o| o.extend_from_slice(word.as_bytes()));
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
        fn a_full_line_moves_on(pieces in proptest::collection::vec("[a-z]{0,32}", 0..200)) {
            let (mut line, mut out) = (Line::new(), Vec::new());
            for piece in &pieces {
                line.make_room(&mut out);
                line.short(piece.as_bytes());
            }
            line.drain(&mut out);
            prop_assert_eq!(out, pieces.concat().into_bytes());
        }
    }
}
