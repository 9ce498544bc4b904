//! Texts in cells of a fixed width, and numbers in few columns.

use crate::cut::{shorten_middle, width_of};
use record::text::put_text;

/// Escapes text from outside for a terminal.
pub(super) fn escape_bytes(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    put_text(&mut text, bytes);
    String::from_utf8_lossy(&text).into_owned()
}

/// Pads a text with blanks, or cuts it in the middle, to exactly `columns`.
pub(super) fn cell(text: &str, columns: usize) -> String {
    let mut out = shorten_middle(text, columns).into_owned();
    out.extend(std::iter::repeat_n(' ', columns.saturating_sub(width_of(&out))));
    out
}

/// Formats a number in at most five columns: `9999`, `10.0k`, `123M`.
pub(super) fn format_short(n: u64) -> String {
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
    fn a_cell_has_its_width() {
        assert_eq!(cell("ab", 4), "ab  ");
        assert_eq!(cell("日本語", 4), "日… ");
        assert_eq!(escape_bytes(b"a\x1b[2J\n"), "a\\x1b[2J\\n");
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [0, 9_999, 10_000, 123_456, 1_500_000, 999_999_999, 12_300_000_000, u64::MAX];
        assert_eq!(
            numbers.map(format_short),
            ["0", "9999", "10.0k", "123k", "1.5M", "999M", "12.3G", "18446744T"].map(str::to_owned)
        );
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text: String, columns in 1usize..90) {
            prop_assert_eq!(width_of(&cell(&escape_bytes(text.as_bytes()), columns)), columns);
        }
    }
}
