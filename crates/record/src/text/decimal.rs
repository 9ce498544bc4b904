//! Numbers as text: eight digits at a time, computed in one word and stored with one write.

use super::TextBuffer;

/// Appends `n` in decimal. About 2 ns for a port.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, n: u64) {
    put_decimal(out, n);
}

/// Writes `n` in decimal to any [`TextBuffer`].
#[inline]
pub(super) fn put_decimal(out: &mut impl TextBuffer, n: u64) {
    if n < 10 {
        return out.room(|slot: &mut [u8; 1]| {
            *slot = [b'0' + n as u8];
            1
        });
    }
    if n < EIGHT {
        return put_eight(out, head(n));
    }
    put_long(out, n);
}

/// Stores `n` (below 10^8) at an offset in a prepared line, padded with blanks to eight bytes. Stores nothing if `n`
/// is larger or the bytes would extend beyond the line's end.
#[inline]
pub fn place_number(line: &mut [u8], at: usize, n: u32) {
    let Some(place) = line.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<8>()) else { return };
    if n >= EIGHT_DIGITS {
        return;
    }
    *place = padded_digits(n).0.to_le_bytes();
}

/// The digits of a number below [`EIGHT_DIGITS`], padded with blanks, with the first digit in the lowest byte; and the
/// number of digits.
#[inline(always)]
pub(super) fn padded_digits(n: u32) -> (u64, usize) {
    const BLANKS: u64 = 0x2020_2020_2020_2020;
    let digits = eight_digits(n.into());
    // The last digit of 0 is kept.
    let leading = (digits.trailing_zeros() / 8).min(7);
    let text = (digits | ASCII_ZEROS) >> (leading * 8);
    (text | BLANKS.checked_shl(64 - leading * 8).unwrap_or(0), 8 - leading as usize)
}

/// Writes numbers of nine to twenty digits: a head of up to eight, then eight at a time.
#[inline]
fn put_long(out: &mut impl TextBuffer, n: u64) {
    let (high, low) = (n / EIGHT, n % EIGHT);
    if high < EIGHT {
        put_eight(out, head(high));
    } else {
        put_eight(out, head(high / EIGHT));
        put_eight(out, ((eight_digits(high % EIGHT) | ASCII_ZEROS).to_le_bytes(), 8));
    }
    put_eight(out, ((eight_digits(low) | ASCII_ZEROS).to_le_bytes(), 8));
}

#[inline]
fn put_eight(out: &mut impl TextBuffer, (digits, len): ([u8; 8], usize)) {
    out.room(|slot: &mut [u8; 8]| {
        *slot = digits;
        len
    });
}

const EIGHT: u64 = 100_000_000;
/// The first number with more than eight digits.
pub(super) const EIGHT_DIGITS: u32 = 100_000_000;
pub(super) const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// Up to eight digits of a nonzero number, without leading zeros, and the number of digits.
#[inline(always)]
pub(super) fn head(n: u64) -> ([u8; 8], usize) {
    let digits = eight_digits(n);
    let leading = digits.trailing_zeros() / 8;
    (((digits | ASCII_ZEROS) >> (leading * 8 % 64)).to_le_bytes(), 8 - leading as usize)
}

/// The eight decimal digits of `n` (below 10^8), one per byte, the most significant in the lowest byte.
///
/// Splits the number in half three times and processes all halves at once: four digits in each half of the word, then
/// two in each quarter, then one in each byte. The multiplications are divisions by 100 and 10, which are exact for
/// this number of digits.
#[inline(always)]
pub(super) fn eight_digits(n: u64) -> u64 {
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// Appends `n` in decimal with its sign.
pub fn put_i64(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    put_u64(out, n.unsigned_abs());
}

/// Appends `n` in lower-case hexadecimal without a prefix and without leading zeros.
pub fn put_hex(out: &mut Vec<u8>, n: u64) {
    put_hex_digits(out, n);
}

/// Writes `n` in hexadecimal, as [`put_hex`] does, to any [`TextBuffer`].
#[inline]
pub(super) fn put_hex_digits(out: &mut impl TextBuffer, n: u64) {
    let groups = [n >> 48, n >> 32 & 0xffff, n >> 16 & 0xffff, n & 0xffff].map(|group| group as u16);
    let first = groups.iter().position(|&group| group != 0).unwrap_or(3);
    for (i, &group) in groups.iter().enumerate().skip(first) {
        let (digits, len) = hex_group(group);
        let len = if i == first { len } else { 4 };
        out.room(|slot: &mut [u8; 4]| {
            *slot = (digits >> (8 * (4 - len))).to_le_bytes();
            len
        });
    }
}

/// The four hexadecimal digits of `group` as text, the most significant in the lowest byte, and the number of digits
/// without leading zeros (at least one).
#[inline]
pub(super) fn hex_group(group: u16) -> (u32, usize) {
    let n = u32::from(group);
    let digits = n >> 12 | (n >> 8 & 15) << 8 | (n >> 4 & 15) << 16 | (n & 15) << 24;
    // 16 - 10 = 6: adding it carries into bit 4 for the digits a to f, which come 39 positions later in ASCII.
    let letters = (digits + 0x0606_0606) >> 4 & 0x0101_0101;
    let leading = (digits.trailing_zeros() / 8).min(3);
    (digits + 0x3030_3030 + letters * 39, 4 - leading as usize)
}

/// The number of decimal digits of `n`.
pub fn u64_len(n: u64) -> usize {
    n.checked_ilog10().map_or(1, |l| l as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn at_every_edge() {
        let powers = (0..20).map(|e| 10u64.pow(e));
        let near = powers.flat_map(|p| [p - 1, p, p + 1, p.wrapping_mul(9)]);
        let bits = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1]);
        for n in near.chain(bits).chain([u64::MAX, 0]).chain(0..70_000) {
            assert_eq!(text(|o| put_u64(o, n)), n.to_string());
            assert_eq!(text(|o| put_hex(o, n)), format!("{n:x}"));
        }
    }

    #[test]
    fn placed_in_a_line() {
        for (n, expected) in
            [(0, "..0       ."), (7, "..7       ."), (65_535, "..65535   ."), (99_999_999, "..99999999.")]
        {
            let mut line = [b'.'; 11];
            place_number(&mut line, 2, n);
            assert_eq!(String::from_utf8_lossy(&line), expected);
        }
        let mut line = [b'.'; 9];
        place_number(&mut line, 2, 1);
        place_number(&mut line, 1, 100_000_000);
        place_number(&mut line, usize::MAX, 1);
        assert_eq!(&line, b".........");
    }

    proptest! {
        #[test]
        fn as_std_writes_them(n: u64, i: i64, small in 0u64..70_000) {
            for n in [n, small] {
                prop_assert_eq!(text(|o| put_u64(o, n)), n.to_string());
                prop_assert_eq!(text(|o| put_hex(o, n)), format!("{n:x}"));
                prop_assert_eq!(u64_len(n), n.to_string().len());
            }
            prop_assert_eq!(text(|o| put_i64(o, i)), i.to_string());
        }
    }
}
