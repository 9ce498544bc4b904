//! Words and numbers of a /proc/net line.
//!
//! The files look as if they had columns of fixed width, but do not: `sl` grows past 9999, uids and inodes past their
//! widths. So a line is only split at spaces.
use netlink::DecodeError;

/// The words of a line, separated by spaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'l> {
    rest: &'l [u8],
}

impl<'l> Words<'l> {
    pub(crate) fn new(line: &'l [u8]) -> Words<'l> {
        Words { rest: line }
    }

    /// The next word; without one, the error contains `column`.
    #[inline]
    pub(crate) fn word(&mut self, column: &'static str) -> Result<&'l [u8], DecodeError> {
        let start = self.rest.iter().position(|byte| *byte != b' ').ok_or(DecodeError::Word(column))?;
        let rest = self.rest.get(start..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        Ok(word)
    }

    /// The next word as a decimal number.
    #[inline]
    pub(crate) fn decimal(&mut self, column: &'static str) -> Result<u64, DecodeError> {
        decimal(self.word(column)?).ok_or(DecodeError::Word(column))
    }

    /// The next word as a hexadecimal number.
    #[inline]
    pub(crate) fn hex(&mut self, column: &'static str) -> Result<u64, DecodeError> {
        hex(self.word(column)?).ok_or(DecodeError::Word(column))
    }

    /// The next word as two hexadecimal numbers separated by a colon.
    #[inline]
    pub(crate) fn hex_pair(&mut self, column: &'static str) -> Result<(u64, u64), DecodeError> {
        let (left, right) = split_colon(self.word(column)?).ok_or(DecodeError::Word(column))?;
        hex(left).zip(hex(right)).ok_or(DecodeError::Word(column))
    }

    /// The rest after the single space that follows the last word, including spaces; `None` if the line ends there.
    pub(crate) fn tail(&self) -> Option<&'l [u8]> {
        self.rest.strip_prefix(b" ")
    }
}

/// The parts before and after the first colon.
#[inline]
pub(crate) fn split_colon(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = word.iter().position(|byte| *byte == b':')?;
    Some((word.get(..colon)?, word.get(colon + 1..)?))
}

/// A decimal number of up to 19 digits.
#[inline]
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut number = 0u64;
    for digit in digits {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

/// A hexadecimal number of up to 16 digits.
#[inline]
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut number = 0u64;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16)?;
        number = number << 4 | u64::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn words_and_numbers() {
        let mut words = Words::new(b"  10000: 0A:1f  077 x");
        assert_eq!(words.word("sl"), Ok(&b"10000:"[..]));
        assert_eq!(words.hex_pair("p"), Ok((10, 31)));
        assert_eq!(words.decimal("n"), Ok(77));
        assert_eq!(words.hex("h"), Err(DecodeError::Word("h")));
        assert_eq!(words.word("none"), Err(DecodeError::Word("none")));
        assert_eq!(decimal(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        assert_eq!(decimal(b"10000000000000000000"), None);
        assert_eq!(hex(b"ffffffffffffffff"), Some(u64::MAX));
        assert_eq!(hex(b"+1"), None);
    }

    #[test]
    fn a_tail_keeps_its_blanks() {
        let mut words = Words::new(b"a  b c ");
        words.word("a").unwrap();
        assert_eq!(words.tail(), Some(&b" b c "[..]));
        assert_eq!(Words::new(b"").tail(), None);
    }
}
