//! Escaping of text from outside: process names, paths, interface and host names. Such text is hostile until it has
//! been escaped here.

/// True if every byte is printable ASCII except backslash and quotation mark: no format needs to escape it.
#[inline]
pub fn is_plain(text: &[u8]) -> bool {
    is_plain_without(text, *b"\"\\")
}

/// True if `text` is printable ASCII without the bytes in `but`. Tests eight bytes at a time.
#[inline]
pub fn is_plain_without<const N: usize>(text: &[u8], but: [u8; N]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte that is zero, and possibly of a byte above such a byte.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let is_plain = |word: u64| {
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let special =
            but.iter().fold(word | below_space, |found, byte| found | zeros(word ^ (ONES * u64::from(*byte))));
        (special | zeros(word ^ (ONES * 0x7f))) & HIGH == 0
    };
    let word_of = |chunk: &[u8]| chunk.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    text.chunks_exact(8).all(|chunk| is_plain(word_of(chunk))) && is_plain(last_word(text))
}

/// The last eight bytes, with some of them repeated or `a` as filler if the text is shorter. Uses loads of fixed
/// width: if the bytes were assembled in memory and then loaded as one word, the load would stall.
#[inline]
fn last_word(text: &[u8]) -> u64 {
    const FILL: u64 = u64::from_le_bytes([b'a'; 8]);
    if let Some(last) = text.last_chunk() {
        return u64::from_le_bytes(*last);
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    match *text {
        [a, b, c] => u64::from_le_bytes([a, b, c, b'a', b'a', b'a', b'a', b'a']),
        [a, b] => u64::from_le_bytes([a, b, b'a', b'a', b'a', b'a', b'a', b'a']),
        [a] => FILL & !0xff | u64::from(a),
        _ => FILL,
    }
}

/// Appends text for terminals, pipes and CSV. Writes `\n`, `\t`, `\xNN` for control bytes and invalid UTF-8, `\u{…}`
/// for characters that reorder text or are invisible (bidi controls, zero width, line separators), `\\` for a
/// backslash.
pub fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    if is_plain(text) {
        return out.extend_from_slice(text);
    }
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            put_text_char(out, c);
        }
        chunk.invalid().iter().for_each(|&b| put_x(out, b));
    }
}

fn put_text_char(out: &mut Vec<u8>, c: char) {
    match c {
        '\n' => out.extend_from_slice(b"\\n"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\0'..='\x1f' | '\x7f' => put_x(out, c as u8),
        _ if is_deceptive(c) => {
            out.extend_from_slice(b"\\u{");
            super::put_hex(out, u64::from(u32::from(c)));
            out.push(b'}');
        }
        _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Appends one byte as `\xNN`, as [`put_text`] writes control bytes: for bytes that a format uses as separators.
pub fn put_x(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[b'\\', b'x', DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]);
}

/// Appends text for logs in the format of other tools: `\xNN` for each byte of control characters, of deceptive
/// characters and of invalid UTF-8, so that no text can end a line. All other text, including a backslash, is
/// unchanged.
pub fn put_log_text(out: &mut Vec<u8>, text: &[u8]) {
    if text.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return out.extend_from_slice(text);
    }
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            if c.is_control() || is_deceptive(c) {
                bytes.iter().for_each(|&byte| put_x(out, byte));
            } else {
                out.extend_from_slice(bytes);
            }
        }
        chunk.invalid().iter().for_each(|&byte| put_x(out, byte));
    }
}

/// C1 controls, bidi controls, zero-width characters, line and paragraph separators, tags.
fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Appends text between the quotation marks of a JSON string (RFC 8259); invalid UTF-8 becomes U+FFFD.
pub fn put_json(out: &mut Vec<u8>, text: &[u8]) {
    if is_plain(text) {
        return out.extend_from_slice(text);
    }
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            put_json_char(out, c);
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

fn put_json_char(out: &mut Vec<u8>, c: char) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\0'..='\x1f' | '\x7f' => put_json_u(out, c as u16),
        // Terminals also show JSON, so deceptive characters are escaped although the format allows them.
        _ if is_deceptive(c) => c.encode_utf16(&mut [0; 2]).iter().for_each(|&u| put_json_u(out, u)),
        _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn put_json_u(out: &mut Vec<u8>, unit: u16) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(DIGITS[(unit >> shift & 15) as usize]);
    }
}

/// Appends text in the format of other tools: `?` for control characters, deceptive characters and bytes that are not
/// UTF-8, all other text unchanged. With `raw` everything is unchanged.
pub fn put_face(out: &mut Vec<u8>, text: &[u8], raw: bool) {
    if raw || is_plain(text) {
        return out.extend_from_slice(text);
    }
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let shown = if c.is_control() || is_deceptive(c) { '?' } else { c };
            out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
        }
        out.extend(chunk.invalid().iter().map(|_| b'?'));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_text_is_found_by_words(text in "[ -~]{0,32}", at: usize, byte: u8) {
            let slow = |text: &[u8]| text.iter().all(|byte| (0x20..0x7f).contains(byte) && !b"\"\\]".contains(byte));
            let mut text = text.into_bytes();
            prop_assert_eq!(is_plain_without(&text, *b"\"\\]"), slow(&text));
            text.retain(|byte| !b"\"\\]".contains(byte));
            prop_assert!(is_plain_without(&text, *b"\"\\]") && is_plain(&text));
            text.insert(at % (text.len() + 1), byte);
            prop_assert_eq!(is_plain_without(&text, *b"\"\\]"), slow(&text), "{:?}", text);
            prop_assert_eq!(is_plain(&text), slow(&text) || byte == b']', "{:?}", text);
        }
    }

    #[test]
    fn nothing_hostile_gets_through() {
        let mut out = Vec::new();
        put_text(&mut out, b"a\x1b[31m\n\t\\\xff\xe2\x80\xae\xc2\x9b");
        assert_eq!(String::from_utf8(out).unwrap(), r"a\x1b[31m\n\t\\\xff\u{202e}\u{9b}");
        let mut out = Vec::new();
        put_json(&mut out, b"a\"\x1b\n\xff\xe2\x80\xae");
        assert_eq!(String::from_utf8(out).unwrap(), "a\\\"\\u001b\\n\u{fffd}\\u202e");
        let mut out = Vec::new();
        put_face(&mut out, b"a\x1b\n\"b\xff\xe2\x80\xae", false);
        assert_eq!(out, b"a??\"b??");
        let mut out = Vec::new();
        put_log_text(&mut out, b"a\\\x1b\n\"\xc3\xa9\xff\xe2\x80\xae");
        assert_eq!(String::from_utf8(out).unwrap(), "a\\\\x1b\\x0a\"é\\xff\\xe2\\x80\\xae");
    }

    #[test]
    fn ordinary_unicode_stays() {
        let mut out = Vec::new();
        put_text(&mut out, "größe 表".as_bytes());
        assert_eq!(String::from_utf8(out).unwrap(), "größe 表");
    }
}
