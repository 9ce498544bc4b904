//! The framing of messages in a stream (RFC 6587).

use record::text::{put_u64, u64_len};

/// Digits that are reserved for the length: most messages have 100 to 999 bytes.
const DIGITS: usize = 3;

/// Appends the bytes that `put` appends, after their length in decimal and a blank: octet counting. The bytes are
/// copied a second time only if they are fewer than 100 or more than 999.
#[inline]
pub fn frame_octets(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(b"000 ");
    let begin = out.len();
    put(out);
    let length = out.len().saturating_sub(begin) as u64;
    if u64_len(length) != DIGITS {
        return insert_length(out, start, length);
    }
    let digits = [length / 100, length / 10 % 10, length % 10].map(|digit| b'0' + digit as u8);
    if let Some(slot) = out.get_mut(start..start + DIGITS) {
        slot.copy_from_slice(&digits);
    }
}

#[cold]
fn insert_length(out: &mut Vec<u8>, start: usize, length: u64) {
    let mut digits = Vec::with_capacity(20);
    put_u64(&mut digits, length);
    let end = (start + DIGITS).min(out.len());
    out.splice(start.min(end)..end, digits);
}

/// Appends the bytes that `put` appends, and a line feed, for receivers that do not count octets. No message of this
/// module has a line feed inside.
#[inline]
pub fn frame_line(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    put(out);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_stands_before_the_message() {
        for length in [0, 1, 9, 10, 99, 100, 101, 999, 1000, 65_536] {
            let message = vec![b'x'; length];
            let mut out = b"before".to_vec();
            frame_octets(&mut out, |out| out.extend_from_slice(&message));
            frame_octets(&mut out, |out| out.extend_from_slice(b"behind"));
            let expected = [format!("before{length} ").as_bytes(), &message, b"6 behind"].concat();
            assert!(out == expected, "{length}");
        }
    }

    #[test]
    fn a_line_ends() {
        let mut out = Vec::new();
        frame_line(&mut out, |out| out.extend_from_slice(b"a"));
        assert_eq!(out, b"a\n");
    }
}
