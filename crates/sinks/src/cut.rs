//! Cutting of escaped text to a number of columns on a screen.
//!
//! A text is cut only between its units: an escape (`\x1b`, `\u{202e}`, `\\`) stays whole, and so does a character
//! with its combining characters. A cut text therefore never reads as another escape, and no accent moves to another
//! letter.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The sign in place of omitted text.
const CUT: char = '…';

/// Returns the columns of the screen that escaped text takes.
pub fn width_of(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Returns both ends of a text, with a sign in place of the omitted middle.
pub(crate) fn shorten_middle(text: &str, columns: usize) -> Cow<'_, str> {
    match split_ends(text, columns) {
        None => Cow::Borrowed(text),
        Some((head, tail)) => Cow::Owned([head, tail].join(&*CUT.encode_utf8(&mut [0; 4]))),
    }
}

/// Appends both ends of a text, like [`shorten_middle`], but without an allocation.
pub(crate) fn put_shortened_middle(out: &mut Vec<u8>, text: &str, columns: usize) {
    let (head, tail) = split_ends(text, columns).unwrap_or((text, ""));
    out.extend_from_slice(head.as_bytes());
    if head.len() < text.len() {
        out.extend_from_slice(CUT.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out.extend_from_slice(tail.as_bytes());
}

/// Returns both ends of a text that fit with the sign between them; `None` if all of it fits.
fn split_ends(text: &str, columns: usize) -> Option<(&str, &str)> {
    if width_of(text) <= columns {
        return None;
    }
    let room = columns.saturating_sub(1);
    let head = fitting_length(Units(text), room.div_ceil(2));
    let mut left = Units(text).map(width_of).sum::<usize>();
    let mut tail = 0;
    for unit in Units(text) {
        if left <= room / 2 && tail >= head {
            break;
        }
        (left, tail) = (left.saturating_sub(width_of(unit)), tail + unit.len());
    }
    Some((text.get(..head)?, text.get(tail..)?))
}

/// Returns the beginning of a text, with a sign in place of the omitted rest.
pub(crate) fn shorten_end(text: &str, columns: usize) -> Cow<'_, str> {
    if width_of(text) <= columns {
        return Cow::Borrowed(text);
    }
    let head = fitting_length(Units(text), columns.saturating_sub(1));
    let mut out = text.get(..head).unwrap_or_default().to_owned();
    out.push(CUT);
    Cow::Owned(out)
}

/// Appends the beginning of a text, like [`shorten_end`], but without an allocation.
pub(crate) fn put_beginning(out: &mut Vec<u8>, text: &str, columns: usize) {
    if width_of(text) <= columns {
        return out.extend_from_slice(text.as_bytes());
    }
    let head = fitting_length(Units(text), columns.saturating_sub(1));
    out.extend_from_slice(text.get(..head).unwrap_or_default().as_bytes());
    out.extend_from_slice(CUT.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Returns the length in bytes of the first units that fit.
fn fitting_length<'t>(units: impl Iterator<Item = &'t str>, columns: usize) -> usize {
    let (mut left, mut bytes) = (columns, 0);
    for unit in units {
        let Some(rest) = left.checked_sub(width_of(unit)) else { break };
        (left, bytes) = (rest, bytes + unit.len());
    }
    bytes
}

/// Iterates over the units of a text, between which it may be cut.
struct Units<'t>(&'t str);

impl<'t> Iterator for Units<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let first = self.0.chars().next()?;
        let escape = escape_len(self.0.as_bytes()).filter(|len| self.0.is_char_boundary(*len));
        let mut len = escape.unwrap_or(first.len_utf8());
        // A combining character has no width of its own.
        let behind = self.0.get(len..).unwrap_or_default().chars();
        len += behind.take_while(|c| c.width() == Some(0)).map(char::len_utf8).sum::<usize>();
        let (unit, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(unit)
    }
}

/// Returns the length of the escape at the beginning of the text, if there is one.
fn escape_len(text: &[u8]) -> Option<usize> {
    match text {
        [b'\\', b'x', _, _, ..] => Some(4),
        [b'\\', b'u', b'{', rest @ ..] => rest.iter().take(6).position(|byte| *byte == b'}').map(|at| at + 4),
        [b'\\', _, ..] => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &[u8]) -> String {
        let mut out = Vec::new();
        record::text::put_text(&mut out, text);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn texts_are_cut_where_they_may_be() {
        for (text, columns, cut) in [
            ("averyverylongname", 9, "aver…name"),
            ("日本語の名前です", 7, "日…す"),
            ("short", 5, "short"),
            ("short", 1, "…"),
            // The last escape needs four columns, but only three are left.
            ("\\x1b[2Jname\\x1b", 8, "\\x1b…"),
            ("\\x1b[2Jname\\x1b", 9, "\\x1b…\\x1b"),
            ("ab\\\\\\\\\\\\cd", 5, "ab…cd"),
            ("name\\u{202e}emanname", 12, "name…nname"),
            ("ee\u{301}\u{300}eeeeee", 5, "ee\u{301}\u{300}…ee"),
        ] {
            assert_eq!(shorten_middle(text, columns), cut, "{text} {columns}");
        }
        assert_eq!(shorten_end("a sentence that is long", 10), "a sentenc…");
        assert_eq!(shorten_end("name\\x1b", 7), "name…");
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text: String, columns in 1usize..90) {
            let text = escaped(text.as_bytes());
            prop_assert!(width_of(&shorten_middle(&text, columns)) <= columns);
            prop_assert!(width_of(&shorten_end(&text, columns)) <= columns);
        }

        #[test]
        fn no_escape_is_cut(bytes in proptest::collection::vec(0u8..0x30, 0..60), columns in 1usize..40) {
            let text = escaped(&bytes);
            let units: Vec<&str> = Units(&text).collect();
            prop_assert_eq!(units.concat(), text.clone());
            let cut = shorten_middle(&text, columns);
            for part in cut.split(CUT) {
                let kept: Vec<&str> = Units(part).collect();
                let is_known = units.starts_with(&kept) || units.ends_with(&kept);
                prop_assert!(is_known, "{:?} of {:?}", part, text);
            }
        }
    }
}
