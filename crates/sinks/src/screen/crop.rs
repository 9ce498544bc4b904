//! Cutting of lines at the width of the terminal.

use unicode_width::UnicodeWidthChar;

/// Appends to `out` the part of a line that fits into `columns`; `width` is set to its columns.
///
/// Attributes (`ESC [ … m`) take no room; those after the cut are kept, so that no colour stays on. Bytes that are not
/// text and control characters, which our writers never leave in a line, are omitted, because they would move the
/// cursor.
pub fn put_cropped(line: &[u8], columns: usize, out: &mut Vec<u8>, width: &mut usize) {
    let mut rest = line;
    let mut is_full = false;
    while let Some(first) = rest.first() {
        if let Some(length) = attributes(rest) {
            let (sequence, behind) = rest.split_at(length);
            out.extend_from_slice(sequence);
            rest = behind;
            continue;
        }
        if (b' '..0x7f).contains(first) {
            is_full |= *width >= columns;
            if !is_full {
                out.push(*first);
                *width += 1;
            }
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let Some((c, length)) = character(rest) else {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        let (encoded, behind) = rest.split_at(length);
        rest = behind;
        let Some(takes) = c.width() else { continue };
        is_full |= *width + takes > columns;
        if !is_full {
            out.extend_from_slice(encoded);
            *width += takes;
        }
    }
}

/// Returns the length of the attributes at the beginning of the bytes.
fn attributes(bytes: &[u8]) -> Option<usize> {
    let numbers = bytes.strip_prefix(b"\x1b[")?;
    let length = numbers.iter().take_while(|b| b.is_ascii_digit() || **b == b';').count();
    (numbers.get(length) == Some(&b'm')).then_some(length + 3)
}

/// Returns the character at the beginning of the bytes, and its length.
fn character(bytes: &[u8]) -> Option<(char, usize)> {
    let begin = bytes.get(..4).unwrap_or(bytes);
    let text = match std::str::from_utf8(begin) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(begin.get(..error.valid_up_to())?).ok()?,
    };
    text.chars().next().map(|c| (c, c.len_utf8()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_end_where_the_screen_does() {
        for (line, columns, cropped, width) in [
            ("abcdef", 4, "abcd", 4),
            ("abc", 4, "abc", 3),
            ("字字字", 5, "字字", 4),
            ("字字字x", 3, "字", 2),
            ("e\u{301}fgh", 2, "e\u{301}f", 2),
            ("\x1b[1mabc\x1b[0mdef", 2, "\x1b[1mab\x1b[0m", 2),
            ("\x1b[31mab\x1b[0m", 2, "\x1b[31mab\x1b[0m", 2),
            ("a\x1b[2Jb\r\x08c", 9, "a[2Jbc", 6),
            ("", 9, "", 0),
            ("abc", 0, "", 0),
        ] {
            let (mut out, mut took) = (Vec::new(), 0);
            put_cropped(line.as_bytes(), columns, &mut out, &mut took);
            assert_eq!((String::from_utf8(out).unwrap().as_str(), took), (cropped, width), "{line:?}");
        }
        let mut out = Vec::new();
        put_cropped(b"a\xff\xe5\xadb", 9, &mut out, &mut 0);
        assert_eq!(out, b"ab");
    }
}
