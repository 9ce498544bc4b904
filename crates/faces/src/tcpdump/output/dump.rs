//! The bytes of a packet after its line: `-x`, `-X`, `-A`.

use super::options::Dump;
use record::text::put_hex;

const BYTES_A_LINE: usize = 16;
/// Columns of the hexadecimal part of a full line that has text after it.
const HEX_COLUMNS: usize = 40;

/// Appends lines of bytes in the format `dump`, each after `begin` (a line feed and the indentation).
pub(super) fn put_dump(out: &mut Vec<u8>, begin: &str, dump: Dump, bytes: &[u8]) {
    match dump {
        Dump::None => {}
        Dump::Hex => put_hex_lines(out, begin, bytes, false),
        Dump::HexAndText => put_hex_lines(out, begin, bytes, true),
        Dump::Text => put_text(out, bytes),
    }
}

/// Appends lines of sixteen bytes in hexadecimal: offset, eight groups of two bytes; `text` adds two blanks and the
/// printable characters.
pub(super) fn put_hex_lines(out: &mut Vec<u8>, begin: &str, bytes: &[u8], text: bool) {
    for (nth, row) in bytes.chunks(BYTES_A_LINE).enumerate() {
        out.extend_from_slice(begin.as_bytes());
        out.extend_from_slice(b"0x");
        put_offset(out, nth * BYTES_A_LINE);
        out.extend_from_slice(b": ");
        let start = out.len();
        for pair in row.chunks(2) {
            out.push(b' ');
            for byte in pair {
                put_byte(out, *byte);
            }
        }
        if text {
            while out.len() < start + HEX_COLUMNS {
                out.push(b' ');
            }
            out.extend_from_slice(b"  ");
            out.extend(row.iter().map(|byte| if byte.is_ascii_graphic() { *byte } else { b'.' }));
        }
    }
}

/// Appends bytes as text, beginning on the next line: line feeds and blanks unchanged, a dot for bytes that are not
/// printable.
fn put_text(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'\n');
    for (nth, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' if bytes.get(nth + 1).is_none_or(|next| *next == b'\n') => {}
            // If the last byte follows a carriage return, tcpdump omits it.
            b'\r' if nth + 2 == bytes.len() => return out.push(b'.'),
            b'\t' | b'\n' | b' ' => out.push(byte),
            _ if byte.is_ascii_graphic() => out.push(byte),
            _ => out.push(b'.'),
        }
    }
}

fn put_offset(out: &mut Vec<u8>, offset: usize) {
    if offset > 0xffff {
        return put_hex(out, offset as u64);
    }
    put_byte(out, (offset >> 8) as u8);
    put_byte(out, offset as u8);
}

fn put_byte(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}
