//! Texts with holes for numbers, for messages that differ only in numbers.
//!
//! The holes are found by comparing two texts in which one known number differs. So the text comes from the code that
//! writes whole messages, in any format.

use record::text::{SliceWriter, put_u64, put_v4};
use record::{Addr, NUMBERS};

/// Bytes of a short text, which is written with one store.
const CHUNK: usize = 32;
/// Longest text of a number, in bytes.
const NUMBER: usize = 16;
/// Bytes that the last stores may write beyond the text.
const SLACK: usize = 64;

/// The form of a number in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoleForm {
    /// A decimal number.
    Decimal,
    /// An IPv4 address.
    Address,
    /// Nanoseconds of a second, nine digits.
    Nanoseconds,
    /// Microseconds of a second, six digits.
    Microseconds,
}

/// The position of a number in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hole {
    at: usize,
    bytes: usize,
    /// The number's index among all numbers.
    number: usize,
    form: HoleForm,
}

/// A text without some numbers.
pub struct HoledText {
    /// The text without the contents of the holes, and [`CHUNK`] more bytes.
    shared: Vec<u8>,
    pieces: Vec<TextPiece>,
    /// Length of the longest text, with some reserve.
    bytes_max: usize,
}

/// A part of the shared text, and the hole after it, which the last part does not have.
struct TextPiece {
    begin: usize,
    bytes: usize,
    hole: Option<(usize, HoleForm)>,
}

impl HoleForm {
    /// Appends the number.
    fn put(self, n: u32, out: &mut Vec<u8>) {
        match self {
            HoleForm::Decimal => put_u64(out, n.into()),
            HoleForm::Address => put_v4(out, n.to_be_bytes()),
            HoleForm::Nanoseconds => out.extend_from_slice(format!("{n:09}").as_bytes()),
            HoleForm::Microseconds => out.extend_from_slice(format!("{:06}", n / 1000).as_bytes()),
        }
    }
}

/// Finds the holes of a number in `text`; `varied` is the same text with `other` in place of `value`. The texts of the
/// two numbers must differ in the first byte in each of the `forms` that the number may have. Returns `None` if the
/// texts differ elsewhere.
pub fn find_holes(
    (text, value): (&[u8], u32),
    (varied, other): (&[u8], u32),
    number: usize,
    forms: &[HoleForm],
    holes: &mut Vec<Hole>,
) -> Option<()> {
    let (mut at, mut varied_at) = (0, 0);
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    loop {
        let (rest, varied_rest) = (text.get(at..)?, varied.get(varied_at..)?);
        let same = rest.iter().zip(varied_rest).take_while(|(byte, other)| byte == other).count();
        let (rest, varied_rest) = (rest.get(same..)?, varied_rest.get(same..)?);
        if rest.is_empty() && varied_rest.is_empty() {
            return Some(());
        }
        let form = forms.iter().find(|form| {
            own.clear();
            theirs.clear();
            form.put(value, &mut own);
            form.put(other, &mut theirs);
            rest.starts_with(&own) && varied_rest.starts_with(&theirs)
        })?;
        holes.push(Hole { at: at + same, bytes: own.len(), number, form: *form });
        (at, varied_at) = (at + same + own.len(), varied_at + same + theirs.len());
    }
}

impl HoledText {
    /// Builds `text` without the contents of the holes; `None` if two of them overlap.
    pub fn new(text: &[u8], holes: &mut [Hole]) -> Option<HoledText> {
        holes.sort_unstable_by_key(|hole| hole.at);
        let (mut shared, mut pieces, mut at) = (Vec::with_capacity(text.len() + CHUNK), Vec::new(), 0);
        for hole in holes {
            let before = text.get(at..hole.at)?;
            let hole_of = Some((hole.number, hole.form));
            pieces.push(TextPiece { begin: shared.len(), bytes: before.len(), hole: hole_of });
            shared.extend_from_slice(before);
            at = hole.at + hole.bytes;
        }
        let last = text.get(at..)?;
        pieces.push(TextPiece { begin: shared.len(), bytes: last.len(), hole: None });
        shared.extend_from_slice(last);
        let bytes_max = shared.len() + pieces.len() * NUMBER + SLACK;
        shared.extend_from_slice(&[0; CHUNK]);
        Some(HoledText { shared, pieces, bytes_max })
    }

    /// Appends the text with these numbers.
    #[inline]
    pub fn put(&self, numbers: &[u32; NUMBERS], out: &mut Vec<u8>) {
        let begin = out.len();
        // One check for room; the zeros cost little.
        out.resize(begin + self.bytes_max, 0);
        let Some(place) = out.get_mut(begin..) else { return };
        let mut writer = SliceWriter::new(place);
        for piece in &self.pieces {
            self.put_shared(piece, &mut writer);
            let Some((number, form)) = piece.hole else { continue };
            let n = numbers.get(number).copied().unwrap_or(0);
            match form {
                HoleForm::Decimal => writer.decimal(n.into()),
                HoleForm::Address => writer.addr(Addr::V4(n.to_be_bytes())),
                HoleForm::Nanoseconds => writer.fraction(n, 9),
                HoleForm::Microseconds => writer.fraction(n, 6),
            }
        }
        let end = begin + writer.written();
        out.truncate(end);
    }

    /// Appends a short text with one store, whose end is overwritten by the following text.
    #[inline(always)]
    fn put_shared(&self, piece: &TextPiece, writer: &mut SliceWriter<'_>) {
        let Some(text) = self.shared.get(piece.begin..) else { return };
        match text.first_chunk::<CHUNK>().filter(|_| piece.bytes <= CHUNK) {
            Some(chunk) => writer.chunk(chunk, piece.bytes),
            None => writer.text(text.get(..piece.bytes).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ADDRESS: u32 = 0xc000_0201;

    /// The text of a message with an address twice, a number and a time.
    fn message(address: u32, port: u32, ns: u32) -> Vec<u8> {
        let [a, b, c, d] = address.to_be_bytes();
        format!("{ns:09}Z {}Z {a}.{b}.{c}.{d}:{port} 1192.0.2.1 {a}.{b}.{c}.{d}", &format!("{ns:09}")[..6]).into_bytes()
    }

    fn holed(holes: &mut Vec<Hole>) -> Option<HoledText> {
        let text = message(ADDRESS, 443, 7);
        let forms = [HoleForm::Nanoseconds, HoleForm::Microseconds];
        let other = 0x2900_0201;
        find_holes((&text, ADDRESS), (&message(other, 443, 7), other), 0, &[HoleForm::Address], holes)?;
        find_holes((&text, 443), (&message(ADDRESS, 143, 7), 143), 1, &[HoleForm::Decimal], holes)?;
        find_holes((&text, 7), (&message(ADDRESS, 443, 100_000_007), 100_000_007), 14, &forms, holes)?;
        HoledText::new(&text, holes)
    }

    #[test]
    fn numbers_go_where_they_were_found() {
        let mut holes = Vec::new();
        let holed = holed(&mut holes).unwrap();
        assert_eq!(holes.len(), 5);
        for (address, port, ns) in
            [(ADDRESS, 443, 7), (0, 0, 0), (u32::MAX, 65_535, 999_999_999), (0x0102_0304, 80, 123_456_789)]
        {
            let (mut out, mut numbers) = (Vec::new(), [0; NUMBERS]);
            (numbers[0], numbers[1], numbers[14]) = (address, port, ns);
            holed.put(&numbers, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(message(address, port, ns)).unwrap());
        }
    }

    #[test]
    fn what_differs_otherwise_has_no_holes() {
        let mut holes = Vec::new();
        let find = |text: &str, varied: &str, holes: &mut Vec<Hole>| {
            find_holes((text.as_bytes(), 80), (varied.as_bytes(), 180), 3, &[HoleForm::Decimal], holes)
        };
        assert_eq!(find("port http", "port 180", &mut holes), None);
        assert_eq!(find("port 80", "port 180 ", &mut holes), None);
        holes.clear();
        assert_eq!((find("same", "same", &mut holes), holes.len()), (Some(()), 0));
        let two = Hole { at: 1, bytes: 4, number: 0, form: HoleForm::Decimal };
        assert!(HoledText::new(b"1234567", &mut [two, Hole { at: 3, ..two }]).is_none(), "they overlap");
    }

    #[test]
    fn long_texts_are_whole() {
        let text = |n: u32| [vec![b'x'; 3000], n.to_string().into_bytes(), vec![b'y'; 2000]].concat();
        let mut holes = Vec::new();
        find_holes((&text(5), 5), (&text(15), 15), 2, &[HoleForm::Decimal], &mut holes).unwrap();
        let holed = HoledText::new(&text(5), &mut holes).unwrap();
        let (mut out, mut numbers) = (b"before".to_vec(), [0; NUMBERS]);
        numbers[2] = 77;
        holed.put(&numbers, &mut out);
        assert_eq!(out, [b"before".to_vec(), text(77)].concat());
    }
}
