//! A minimal lexer of Rust that separates code from comments and strings.

use std::ops::Range;

/// A part of a source that is not code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Comment,
    Text,
    Character,
}

/// The source with every comment, string and character literal blanked out; lines and columns are unchanged.
pub(super) fn code_only(source: &str) -> String {
    let mut out = source.as_bytes().to_vec();
    for (_, range) in parts(source.as_bytes()) {
        out[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The string literals of a source with their offsets, quotes included.
pub(super) fn strings(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let texts = parts(source.as_bytes()).into_iter().filter(|(part, _)| *part == Part::Text);
    texts.filter_map(|(_, range)| Some((range.start, source.get(range)?)))
}

fn parts(bytes: &[u8]) -> Vec<(Part, Range<usize>)> {
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (part, end) = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => (Part::Comment, line_end(bytes, at)),
            b'/' if bytes.get(at + 1) == Some(&b'*') => (Part::Comment, comment_end(bytes, at)),
            b'"' => (Part::Text, string_end(bytes, at)),
            b'r' if !is_word_before(bytes, at) => (Part::Text, raw_end(bytes, at)),
            b'\'' => (Part::Character, char_end(bytes, at)),
            _ => (Part::Text, at),
        };
        if end > at {
            parts.push((part, at..end));
        }
        at = end.max(at + 1);
    }
    parts
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n)
}

/// Block comments nest.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i < bytes.len() {
        match bytes.get(i..i + 2) {
            Some(b"/*") => (depth, i) = (depth + 1, i + 2),
            Some(b"*/") => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

/// End of `r"…"` or `r#"…"#`; `at` itself if it is an identifier.
fn raw_end(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at + 1..].iter().take_while(|b| **b == b'#').count();
    if bytes.get(at + 1 + hashes) != Some(&b'"') {
        return at;
    }
    let close: Vec<u8> = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let body = at + 2 + hashes;
    let found = bytes[body..].windows(close.len()).position(|window| window == close);
    found.map_or(bytes.len(), |n| body + n + close.len())
}

/// End of a character literal; `at` itself if it is a lifetime.
fn char_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'\\') {
        let close = bytes[at + 3..].iter().position(|b| *b == b'\'');
        return close.map_or(bytes.len(), |n| at + 3 + n + 1);
    }
    // One character of one to four bytes, then the quote.
    (2..=5)
        .map(|n| at + n)
        .find(|i| bytes.get(*i) == Some(&b'\''))
        .filter(|end| one_char(&bytes[at + 1..*end]))
        .map_or(at, |end| end + 1)
}

fn one_char(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().count() == 1)
}

fn is_word_before(bytes: &[u8], at: usize) -> bool {
    // The `b` of br"…" is part of the literal's prefix.
    let before = at.checked_sub(1).map(|i| bytes[i]);
    let prefix = before == Some(b'b') && !at.checked_sub(2).is_some_and(|i| is_word(bytes[i]));
    before.is_some_and(is_word) && !prefix
}

/// True for a byte of an identifier.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Offsets of `word` in `code` where it is a whole word.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).map(|i| bytes[i]);
        let after = bytes.get(at + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Line number, from 1.
pub(super) fn line_of(code: &str, at: usize) -> usize {
    code.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn strings_and_comments_vanish_and_lines_stay() {
        let source = "a // unsafe\n\"unsafe \\\" {\" b /* /* x */ \n*/ c r#\"un\"safe\"# 'x' '\\n' '\"' 'static '{' d \
            br\"}\" e\n";
        let code = code_only(source);
        assert_eq!(code.len(), source.len());
        assert_eq!(code.lines().count(), source.lines().count());
        let left: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(left, ["a", "b", "c", "'static", "d", "b", "e"]);
    }

    #[test]
    fn strings_have_their_offsets() {
        let found: Vec<_> = strings("f(\"a\\\"b\", 'c', r\"d\"); // \"e\"").collect();
        assert_eq!(found, [(2, "\"a\\\"b\""), (15, "r\"d\"")]);
    }

    #[test]
    fn words_stand_alone() {
        let found: Vec<usize> = words("unsafe x_unsafe unsafely unsafe", "unsafe").collect();
        assert_eq!(found, [0, 25]);
    }
}
