//! Words and hexadecimal numbers of the kernel's text files.

/// The words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// 32 hexadecimal digits as 16 bytes.
pub(crate) fn hex16(word: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if word.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(word.chunks_exact(2)) {
        *byte = hex_u8(pair)?;
    }
    Some(bytes)
}

/// A hexadecimal number of at most eight bits.
pub(crate) fn hex_u8(word: &[u8]) -> Option<u8> {
    hex_u32(word)?.try_into().ok()
}

/// A hexadecimal number of at most 32 bits, without a sign.
pub(crate) fn hex_u32(word: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(word).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(hex_u8(b"7f"), Some(0x7f));
        assert_eq!(
            (hex_u8(b"100"), hex_u8(b""), hex_u8(b"+1"), hex_u8(b"-1"), hex_u8(b"g")),
            (None, None, None, None, None)
        );
        assert_eq!(hex_u32(b"FFFFFFFF"), Some(u32::MAX));
        assert_eq!(hex_u32(b"100000000"), None);
        assert_eq!(hex16(b"000102030405060708090a0b0c0d0e0f"), Some(std::array::from_fn(|i| i as u8)));
        assert_eq!((hex16(b"00"), hex16(&[b'0'; 33]), hex16(&[b'x'; 32])), (None, None, None));
        assert_eq!(words(b" a\tb  c \n").count(), 3);
    }
}
