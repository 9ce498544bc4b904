//! The text that messages share: it has positions for the numbers in which they differ.
//!
//! A [`MarkedMessage`] finds the positions by comparing two messages in which one known number differs. So the text
//! comes from the code that writes whole messages, in any format. Only an [`UnverifiedText`] that yields the bytes of
//! a third message becomes a [`SharedText`].

use record::text::{SliceWriter, put_u64, put_v4, put_v6};
use record::{Addr, NUMBERS, v6_at};

/// Bytes of a short text, which is written with one store.
const CHUNK: usize = 32;
/// Bytes that the last stores may write beyond the text.
const SLACK: usize = 64;

/// The form of a number in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NumberForm {
    /// A decimal number.
    Decimal,
    /// An IPv4 address.
    Address,
    /// An IPv6 address.
    AddressV6,
    /// Nanoseconds of a second, nine digits.
    Nanoseconds,
    /// Microseconds of a second, six digits.
    Microseconds,
}

impl NumberForm {
    /// Longest text, in bytes.
    fn longest(self) -> usize {
        match self {
            NumberForm::AddressV6 => 48,
            NumberForm::Decimal | NumberForm::Address | NumberForm::Nanoseconds | NumberForm::Microseconds => 16,
        }
    }

    /// Appends the number with this index.
    fn put(self, number: usize, numbers: &[u32; NUMBERS], out: &mut Vec<u8>) {
        let n = numbers[number];
        match self {
            NumberForm::AddressV6 => put_v6(out, v6_at(numbers, number)),
            NumberForm::Decimal => put_u64(out, n.into()),
            NumberForm::Address => put_v4(out, n.to_be_bytes()),
            NumberForm::Nanoseconds => out.extend_from_slice(format!("{n:09}").as_bytes()),
            NumberForm::Microseconds => out.extend_from_slice(format!("{:06}", n / 1000).as_bytes()),
        }
    }
}

/// The position of a number in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Position {
    at: usize,
    bytes: usize,
    /// The number's index among all numbers.
    number: usize,
    form: NumberForm,
}

/// A message in which the positions of numbers are searched for.
pub(super) struct MarkedMessage<'m> {
    message: &'m [u8],
    positions: Vec<Position>,
}

impl<'m> MarkedMessage<'m> {
    /// Starts with a message and no positions.
    pub(super) fn new(message: &'m [u8]) -> MarkedMessage<'m> {
        MarkedMessage { message, positions: Vec::new() }
    }

    /// Finds the positions of the number with this index, one of the message's `numbers`; `varied` is the same message
    /// with the number from `others`. The texts of the two must differ in the first byte in each of the `forms` that
    /// the number may have. Returns `None` if the messages differ elsewhere.
    pub(super) fn find(
        mut self,
        (number, forms): (usize, &[NumberForm]),
        numbers: &[u32; NUMBERS],
        (varied, others): (&[u8], &[u32; NUMBERS]),
    ) -> Option<MarkedMessage<'m>> {
        let (mut at, mut varied_at) = (0, 0);
        let (mut text, mut varied_text) = (Vec::new(), Vec::new());
        loop {
            let (rest, varied_rest) = (self.message.get(at..)?, varied.get(varied_at..)?);
            let same = rest.iter().zip(varied_rest).take_while(|(byte, other)| byte == other).count();
            let (rest, varied_rest) = (rest.get(same..)?, varied_rest.get(same..)?);
            if rest.is_empty() && varied_rest.is_empty() {
                return Some(self);
            }
            let form = forms.iter().find(|form| {
                text.clear();
                varied_text.clear();
                form.put(number, numbers, &mut text);
                form.put(number, others, &mut varied_text);
                rest.starts_with(&text) && varied_rest.starts_with(&varied_text)
            })?;
            self.positions.push(Position { at: at + same, bytes: text.len(), number, form: *form });
            (at, varied_at) = (at + same + text.len(), varied_at + same + varied_text.len());
        }
    }

    /// Cuts the numbers out of the message; `None` if two of them overlap.
    pub(super) fn cut(mut self) -> Option<UnverifiedText> {
        self.positions.sort_unstable_by_key(|position| position.at);
        let (mut bytes, mut pieces, mut at) = (Vec::with_capacity(self.message.len() + CHUNK), Vec::new(), 0);
        for position in self.positions {
            let before = self.message.get(at..position.at)?;
            let number = Some((position.number, position.form));
            pieces.push(Piece { begin: bytes.len(), bytes: before.len(), number });
            bytes.extend_from_slice(before);
            at = position.at + position.bytes;
        }
        let last = self.message.get(at..)?;
        pieces.push(Piece { begin: bytes.len(), bytes: last.len(), number: None });
        bytes.extend_from_slice(last);
        let longest = pieces.iter().filter_map(|piece| Some(piece.number?.1.longest()));
        let bytes_max = bytes.len() + longest.sum::<usize>() + SLACK;
        bytes.extend_from_slice(&[0; CHUNK]);
        Some(UnverifiedText(SharedText { bytes, pieces, bytes_max }))
    }
}

/// A text whose positions may be wrong: a number may have occurred in the message by chance.
pub(super) struct UnverifiedText(SharedText);

impl UnverifiedText {
    /// Returns the text if it yields `message` with these numbers.
    pub(super) fn verify(self, numbers: &[u32; NUMBERS], message: &[u8]) -> Option<SharedText> {
        let UnverifiedText(text) = self;
        text.yields(numbers, message).then_some(text)
    }
}

/// The text that messages share, without their numbers.
pub(super) struct SharedText {
    /// The text without the numbers, and [`CHUNK`] more bytes.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Length of the longest message, with some reserve.
    bytes_max: usize,
}

/// A part of the shared text, and the number after it, which the last part does not have.
struct Piece {
    begin: usize,
    bytes: usize,
    number: Option<(usize, NumberForm)>,
}

impl SharedText {
    /// Appends the message with these numbers.
    #[inline]
    pub(super) fn put(&self, numbers: &[u32; NUMBERS], out: &mut Vec<u8>) {
        let begin = out.len();
        // One check for room; the zeros cost little.
        out.resize(begin + self.bytes_max, 0);
        let Some(place) = out.get_mut(begin..) else { return };
        let mut writer = SliceWriter::new(place);
        for piece in &self.pieces {
            self.put_piece(piece, &mut writer);
            let Some((number, form)) = piece.number else { continue };
            let n = numbers.get(number).copied().unwrap_or(0);
            match form {
                NumberForm::Decimal => writer.decimal(n.into()),
                NumberForm::Address => writer.addr(Addr::V4(n.to_be_bytes())),
                NumberForm::AddressV6 => writer.addr(Addr::V6(v6_at(numbers, number))),
                NumberForm::Nanoseconds => writer.fraction(n, 9),
                NumberForm::Microseconds => writer.fraction(n, 6),
            }
        }
        let end = begin + writer.bytes_written();
        out.truncate(end);
    }

    /// True if `message` is the message with these numbers.
    pub(super) fn yields(&self, numbers: &[u32; NUMBERS], message: &[u8]) -> bool {
        let mut out = Vec::new();
        self.put(numbers, &mut out);
        out == message
    }

    /// Appends a short text with one store, whose end is overwritten by the following text.
    #[inline(always)]
    fn put_piece(&self, piece: &Piece, writer: &mut SliceWriter<'_>) {
        let Some(text) = self.bytes.get(piece.begin..) else { return };
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
    const DECIMAL: &[NumberForm] = &[NumberForm::Decimal];

    /// A message with an address twice, a number and a time.
    fn message(address: u32, port: u32, ns: u32) -> Vec<u8> {
        let [a, b, c, d] = address.to_be_bytes();
        format!("{ns:09}Z {}Z {a}.{b}.{c}.{d}:{port} 1192.0.2.1 {a}.{b}.{c}.{d}", &format!("{ns:09}")[..6]).into_bytes()
    }

    fn numbers(address: u32, port: u32, ns: u32) -> [u32; NUMBERS] {
        let mut numbers = [0; NUMBERS];
        (numbers[0], numbers[1], numbers[14]) = (address, port, ns);
        numbers
    }

    #[test]
    fn numbers_are_written_at_their_positions() {
        let text = message(ADDRESS, 443, 7);
        let times = [NumberForm::Nanoseconds, NumberForm::Microseconds];
        let (other, other_ns) = (0x2900_0201, 100_000_007);
        let own = numbers(ADDRESS, 443, 7);
        let marked = MarkedMessage::new(&text)
            .find((0, &[NumberForm::Address]), &own, (&message(other, 443, 7), &numbers(other, 443, 7)))
            .and_then(|marked| marked.find((1, DECIMAL), &own, (&message(ADDRESS, 143, 7), &numbers(ADDRESS, 143, 7))))
            .and_then(|marked| {
                marked.find((14, &times), &own, (&message(ADDRESS, 443, other_ns), &numbers(ADDRESS, 443, other_ns)))
            })
            .unwrap();
        assert_eq!(marked.positions.len(), 5);
        let expected = message(other, 143, other_ns);
        let shared = marked.cut().unwrap().verify(&numbers(other, 143, other_ns), &expected).unwrap();
        for (address, port, ns) in
            [(ADDRESS, 443, 7), (0, 0, 0), (u32::MAX, 65_535, 999_999_999), (0x0102_0304, 80, 123_456_789)]
        {
            let mut out = Vec::new();
            shared.put(&numbers(address, port, ns), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(message(address, port, ns)).unwrap());
        }
    }

    #[test]
    fn other_differences_have_no_positions() {
        let find = |text: &'static str, varied: &str| {
            MarkedMessage::new(text.as_bytes())
                .find((1, DECIMAL), &numbers(0, 80, 0), (varied.as_bytes(), &numbers(0, 180, 0)))
                .map(|marked| marked.positions)
        };
        assert_eq!(find("port http", "port 180"), None);
        assert_eq!(find("port 80", "port 180 "), None);
        assert_eq!(find("same", "same"), Some(Vec::new()));
        let one = Position { at: 1, bytes: 4, number: 0, form: NumberForm::Decimal };
        let overlapping = MarkedMessage { message: b"1234567", positions: vec![one, Position { at: 3, ..one }] };
        assert!(overlapping.cut().is_none());
    }

    #[test]
    fn a_text_that_yields_another_message_is_not_shared() {
        let marked = MarkedMessage::new(b"port 80")
            .find((1, DECIMAL), &numbers(0, 80, 0), (b"port 180", &numbers(0, 180, 0)))
            .unwrap();
        assert!(marked.cut().unwrap().verify(&numbers(0, 443, 0), b"port https").is_none());
    }

    #[test]
    fn long_texts_are_whole() {
        let text = |n: u32| [vec![b'x'; 3000], n.to_string().into_bytes(), vec![b'y'; 2000]].concat();
        let five = text(5);
        let marked =
            MarkedMessage::new(&five).find((1, DECIMAL), &numbers(0, 5, 0), (&text(15), &numbers(0, 15, 0))).unwrap();
        let shared = marked.cut().unwrap().verify(&numbers(0, 77, 0), &text(77)).unwrap();
        let mut out = b"before".to_vec();
        shared.put(&numbers(0, 8, 0), &mut out);
        assert_eq!(out, [b"before".to_vec(), text(8)].concat());
    }
}
