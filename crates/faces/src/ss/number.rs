//! Parses numbers like C: decimal, `0x` hexadecimal, `0` octal.

/// Parses a whole word as a number with an optional sign; None for anything else.
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let word = word.trim_ascii_start();
    let (number, rest) = leading(word)?;
    rest.is_empty().then_some(number)
}

/// The number at the start of a word, and the bytes after it.
pub(super) fn leading(word: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, digits) = match word {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, word),
    };
    let (radix, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => (16, rest),
        [b'0', ..] => (8, digits),
        _ => (10, digits),
    };
    let len = digits.iter().take_while(|b| (**b as char).is_digit(radix)).count();
    let (number, rest) = digits.split_at_checked(len)?;
    let number = i64::from_str_radix(std::str::from_utf8(number).ok()?, radix).ok()?;
    Some((if negative { -number } else { number }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_three_bases() {
        for (word, expected) in [
            ("80", Some(80)),
            ("0x50", Some(80)),
            ("0120", Some(80)),
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("+7", Some(7)),
            (" 7", Some(7)),
            ("7 ", None),
            ("", None),
            ("ssh", None),
            ("08", None),
            ("0x", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(integer(word.as_bytes()), expected, "{word}");
        }
        assert_eq!(leading(b"0x10/0xf0"), Some((16, &b"/0xf0"[..])));
    }
}
