//! Names in the tool's format: labels, pointers to earlier labels, and bit labels (RFC 2673).

use super::super::bytes::{Cut, Printed, at_most, behind, part, u8_at};
use super::super::line::Line;
use super::super::pieces::{HexWide, PacketText, put};

/// The two highest bits of a length byte, which are the type of the label.
const KIND: u8 = 0xc0;
const POINTER: u8 = 0xc0;
const EXTENDED: u8 = 0x40;
const BIT_LABEL: u8 = 0x41;

/// Most bytes of a name's text; longer names are cut. Pointers of a hostile message could make its text many times as
/// long as the message.
///
/// Bound: bytes of a DNS name in tcpdump's text (`protocols::hostile_names_make_no_endless_text`). Beyond: the line
/// ends with `[|domain]`. By: any sender of packets.
const TEXT_MAX: usize = 4 << 10;

/// Returns the offset after a name that begins at `at`.
pub(super) fn skip_name(bytes: &[u8], mut at: usize) -> Printed<usize> {
    loop {
        let length = u8_at(bytes, at)?;
        at += 1;
        match length {
            0 => return Ok(at),
            _ if length & KIND == POINTER => return Ok(at + 1),
            BIT_LABEL => at += 1 + bit_bytes(bytes, at)?,
            _ if length & KIND != 0 => return Err(Cut),
            _ => at += usize::from(length),
        }
    }
}

/// Returns the number of bytes of the bits of a bit label, whose number of bits is at `at`.
fn bit_bytes(bytes: &[u8], at: usize) -> Printed<usize> {
    Ok(bits(bytes, at)?.div_ceil(8))
}

fn bits(bytes: &[u8], at: usize) -> Printed<usize> {
    let bits = usize::from(u8_at(bytes, at)?);
    Ok(if bits == 0 { 256 } else { bits })
}

/// Most characters of a name that are shown.
const CHARACTERS_MAX: usize = 255;

/// Appends a name with its last dot; returns the offset after the name and its pointer. Like in the tool, the name
/// ends at a length byte that is the last captured byte.
pub(super) fn put_name(line: &mut Line<'_>, bytes: &[u8], start: usize) -> Printed<usize> {
    put_name_from(line, bytes, 0, start)
}

/// Prints a name whose pointers are offsets from `base`, even if `base` is after the name.
pub(in super::super) fn put_name_from(line: &mut Line<'_>, bytes: &[u8], base: usize, start: usize) -> Printed<usize> {
    // A pointer must lead to an offset before the previous pointer's target, so that the loop ends. The first pointer
    // of a name before `base` may lead anywhere.
    let mut bound = start.wrapping_sub(base);
    let mut characters = 0;
    let mut after = None;
    let mut length = u8_at(bytes, start)?;
    let mut at = start + 1;
    check_kind(line, bytes, at, length)?;
    if length & KIND == POINTER {
        u8_at(bytes, at)?;
    }
    if length == 0 {
        put!(line, ".");
    }
    let limit = line.out.len() + TEXT_MAX;
    while length != 0 && at < bytes.len() {
        if line.out.len() > limit {
            return Err(Cut);
        }
        if length & KIND == POINTER {
            after = after.or(Some(at + 1));
            let target = usize::from(length & !KIND) << 8 | usize::from(u8_at(bytes, at)?);
            if target >= bound {
                put!(line, "<BAD PTR>");
                return Err(Cut);
            }
            bound = target;
            at = base + target;
        } else {
            at += put_label(line, bytes, at, length, &mut characters)?;
            if characters <= CHARACTERS_MAX {
                put!(line, ".");
            }
            characters += 1;
        }
        length = u8_at(bytes, at)?;
        at += 1;
        check_kind(line, bytes, at, length)?;
    }
    if characters > CHARACTERS_MAX {
        put!(line, "<DOMAIN NAME TOO LONG>");
    }
    let skipped = match length & KIND {
        POINTER => 1,
        _ => usize::from(length),
    };
    Ok(after.unwrap_or(at + skipped))
}

/// Checks the type of a label, and prints what is wrong with it. A bit label's second byte must have been captured.
fn check_kind(line: &mut Line<'_>, bytes: &[u8], at: usize, length: u8) -> Printed {
    match length & KIND {
        0 | POINTER => return Ok(()),
        _ if length == BIT_LABEL => return u8_at(bytes, at).map(|_| ()),
        EXTENDED => put!(line, "<ELT ", length & !KIND, ">"),
        _ => put!(line, "<BAD LABEL TYPE>"),
    }
    Err(Cut)
}

/// Appends the label after a length byte, until the name is too long; returns the length of the label. Adds it to
/// `characters`.
fn put_label(line: &mut Line<'_>, bytes: &[u8], at: usize, length: u8, characters: &mut usize) -> Printed<usize> {
    if length == BIT_LABEL {
        return put_bit_label(line, bytes, at);
    }
    let length = usize::from(length);
    put_characters(line, bytes, at, length.min(CHARACTERS_MAX.saturating_sub(*characters)))?;
    *characters += length;
    Ok(length)
}

/// Appends `count` bytes of text, or the part of them that was captured.
pub(super) fn put_characters(line: &mut Line<'_>, bytes: &[u8], at: usize, count: usize) -> Printed {
    put!(line, PacketText(at_most(behind(bytes, at), count)));
    part(bytes, at, count).map(|_| ())
}

fn put_bit_label(line: &mut Line<'_>, bytes: &[u8], at: usize) -> Printed<usize> {
    let bits = bits(bytes, at)?;
    put!(line, "\\[x");
    for n in 0..bits / 8 {
        put!(line, HexWide(u8_at(bytes, at + 1 + n)?, 2));
    }
    let left = bits % 8;
    if left > 0 {
        let byte = u8_at(bytes, at + 1 + bits / 8)? & (0xffu16 << (8 - left)) as u8;
        put!(line, if left > 4 { HexWide(byte, 2) } else { HexWide(byte >> 4, 1) });
    }
    put!(line, "/", bits, "]");
    Ok(1 + bits.div_ceil(8))
}
