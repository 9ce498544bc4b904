//! Texts cut to the columns that they may take, and numbers that take few.

use record::text::put_text;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The sign of what is left out.
const CUT: char = '…';

/// Text from outside as a terminal may have it.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    put_text(&mut text, bytes);
    String::from_utf8_lossy(&text).into_owned()
}

/// The beginning of a text, with a sign where the rest is left out.
pub(super) fn beginning(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = head(text.chars(), columns.saturating_sub(1));
    out.push(CUT);
    out
}

/// Both ends of a text, with a sign for what is left out between them.
pub(super) fn both_ends(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let mut out = head(text.chars(), room.div_ceil(2));
    out.push(CUT);
    out.extend(head(text.chars().rev(), room / 2).chars().rev());
    out
}

/// As many characters as fit.
fn head(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    let mut out = String::new();
    for c in chars {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(1)) else { break };
        left = rest;
        out.push(c);
    }
    out
}

/// A text with blanks behind it, or cut in the middle: exactly `columns` wide.
pub(super) fn cell(text: &str, columns: usize) -> String {
    let mut out = both_ends(text, columns);
    out.extend(std::iter::repeat_n(' ', columns.saturating_sub(out.width())));
    out
}

/// A number in five columns at most: `9999`, `10.0k`, `123M`.
pub(super) fn short(n: u64) -> String {
    let (unit, sign) = match n {
        0..10_000 => return n.to_string(),
        10_000..1_000_000 => (1_000, "k"),
        1_000_000..1_000_000_000 => (1_000_000, "M"),
        1_000_000_000..1_000_000_000_000 => (1_000_000_000, "G"),
        _ => (1_000_000_000_000, "T"),
    };
    match n / unit {
        whole @ 0..100 => format!("{whole}.{}{sign}", n / (unit / 10) % 10),
        whole => format!("{whole}{sign}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_cut_where_they_may_be() {
        assert_eq!(both_ends("averyverylongname", 9), "aver…name");
        assert_eq!(beginning("a sentence that is long", 10), "a sentenc…");
        assert_eq!(both_ends("日本語の名前です", 7), "日…す");
        assert_eq!(cell("ab", 4), "ab  ");
        assert_eq!(escaped(b"a\x1b[2J\n"), "a\\x1b[2J\\n");
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [0, 9_999, 10_000, 123_456, 1_500_000, 999_999_999, 12_300_000_000, u64::MAX];
        assert_eq!(
            numbers.map(short),
            ["0", "9999", "10.0k", "123k", "1.5M", "999M", "12.3G", "18446744T"].map(str::to_owned)
        );
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text: String, columns in 1usize..90) {
            let text = escaped(text.as_bytes());
            prop_assert!(both_ends(&text, columns).width() <= columns.max(1));
            prop_assert!(beginning(&text, columns).width() <= columns.max(1));
            prop_assert!(cell(&text, columns).width() <= columns.max(1));
        }
    }
}
