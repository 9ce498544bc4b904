//! Names and texts in messages.

use record::text::put_text;

/// Converts a name for a header or an element (RFC 5424: PRINTUSASCII, and for names in elements without `=`, `]` and
/// `"`): at most `max` bytes, with `?` for all other characters; `-` for an empty name.
pub(super) fn name(text: &str, max: usize) -> Vec<u8> {
    let fine = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"');
    let name: Vec<u8> = text.bytes().take(max).map(|byte| if fine(byte) { byte } else { b'?' }).collect();
    if name.is_empty() { b"-".to_vec() } else { name }
}

/// Appends a text for people as one line of UTF-8. Control bytes and bytes that are not UTF-8 become `\n`, `\t`,
/// `\xNN`, deceptive characters `\u{…}`; a line feed at its end is omitted. Backslashes stay single, because most
/// texts were already escaped.
#[inline]
pub(super) fn put_line_of_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if is_printable_ascii(text) {
        return out.extend_from_slice(text);
    }
    put_escaped(out, text);
}

/// Does the same for the text in `out` from `begin` on. If it is empty, the blank before it is also removed.
#[inline]
pub(super) fn settle_text(out: &mut Vec<u8>, begin: usize) {
    let text = out.get(begin..).unwrap_or_default();
    if text.last() == Some(&b'\n') {
        out.pop();
    }
    let text = out.get(begin..).unwrap_or_default();
    if text.is_empty() {
        out.truncate(begin.saturating_sub(1));
    } else if !is_printable_ascii(text) {
        let text = text.to_vec();
        out.truncate(begin);
        put_escaped(out, &text);
    }
}

#[cold]
fn put_escaped(out: &mut Vec<u8>, text: &[u8]) {
    // Split at backslashes, because `put_text` would double them.
    for (i, part) in text.split(|byte| *byte == b'\\').enumerate() {
        if i > 0 {
            out.push(b'\\');
        }
        put_text(out, part);
    }
}

/// Checks 32 bytes at a time: the compiler makes vector instructions of it.
#[inline]
fn is_printable_ascii(text: &[u8]) -> bool {
    let all = |bytes: &[u8]| bytes.iter().fold(true, |fine, byte| fine & (0x20..0x7f).contains(byte));
    let chunks = text.chunks_exact(32);
    all(chunks.remainder()) & chunks.fold(true, |fine, chunk| fine & all(chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit() {
        for (text, expected) in [("host", "host"), ("", "-"), ("a b", "a?b"), ("ä\n", "???"), ("a=\"]b", "a???b")] {
            assert_eq!(name(text, 32), expected.as_bytes());
        }
        assert_eq!(name(&"x".repeat(300), 255).len(), 255);
    }

    #[test]
    fn texts_are_one_line_of_utf8() {
        let long = "x".repeat(70);
        for (text, expected) in [
            (&b"IN=eth0 OUT= \n"[..], "IN=eth0 OUT= "),
            (b"a\nb\\x1b\\", "a\\nb\\x1b\\"),
            (b"\x1b\xff\x7f", "\\x1b\\xff\\x7f"),
            ("ä\u{202e}".as_bytes(), "ä\\u{202e}"),
            (long.as_bytes(), &long),
            (b"", ""),
        ] {
            let mut out = Vec::new();
            put_line_of_text(&mut out, text);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }
}
