//! Splits a terminal's output into pieces: characters, controls, sequences.

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputPiece {
    /// A visible character.
    Char(char),
    /// A control character.
    Control(u8),
    /// `ESC`, intermediate bytes, a letter: `ESC 7`, `ESC ( B`.
    Escape(Vec<u8>),
    /// `CSI`: the private mark (`?`, `>` …) or 0, numbers, the final byte.
    Csi {
        /// `?`, `>`, `=`, or 0 for none.
        mark: u8,
        /// The numbers; 0 for an omitted one.
        numbers: Vec<usize>,
        /// The final byte, which selects the operation.
        last: u8,
    },
}

/// Parses bytes incrementally; a piece may be cut at any position.
#[derive(Default)]
pub(super) struct SequenceParser {
    waiting: Vec<u8>,
}

/// The first piece in some bytes.
enum FirstPiece {
    Piece(OutputPiece, usize),
    /// A string for the terminal (such as a title), which is not displayed.
    Ignored(usize),
    /// More bytes are needed.
    Part,
}

impl SequenceParser {
    /// Returns the pieces completed by these bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<OutputPiece> {
        self.waiting.extend_from_slice(bytes);
        let (mut pieces, mut at) = (Vec::new(), 0);
        while at < self.waiting.len() {
            match split_first(&self.waiting[at..]) {
                FirstPiece::Piece(piece, length) => {
                    pieces.push(piece);
                    at += length;
                }
                FirstPiece::Ignored(length) => at += length,
                FirstPiece::Part => break,
            }
        }
        self.waiting.drain(..at);
        pieces
    }
}

fn split_first(bytes: &[u8]) -> FirstPiece {
    match bytes {
        [0x1b] => FirstPiece::Part,
        [0x1b, b'[', rest @ ..] => csi(rest),
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => string(rest),
        [0x1b, rest @ ..] => {
            let between = rest.iter().take_while(|b| (0x20..0x30).contains(*b)).count();
            match rest.get(..=between) {
                Some(escape) => FirstPiece::Piece(OutputPiece::Escape(escape.to_vec()), between + 2),
                None => FirstPiece::Part,
            }
        }
        [control @ (0..=0x1f | 0x7f), ..] => FirstPiece::Piece(OutputPiece::Control(*control), 1),
        _ => character(bytes),
    }
}

fn csi(rest: &[u8]) -> FirstPiece {
    let Some(end) = rest.iter().position(|b| (0x40..0x7f).contains(b)) else { return FirstPiece::Part };
    let (mark, digits) = match rest[..end].split_first() {
        Some((mark @ b'<'..=b'?', digits)) => (*mark, digits),
        _ => (0, &rest[..end]),
    };
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let numbers = digits.split(|b| *b == b';').map(number).collect();
    FirstPiece::Piece(OutputPiece::Csi { mark, numbers, last: rest[end] }, end + 3)
}

/// Parses a string, which ends with BEL or `ESC \`.
fn string(rest: &[u8]) -> FirstPiece {
    let end = rest.iter().position(|b| *b == 7 || *b == 0x1b);
    match end {
        Some(end) if rest[end] == 7 => FirstPiece::Ignored(end + 3),
        Some(end) if rest.len() > end + 1 => FirstPiece::Ignored(end + 4),
        _ => FirstPiece::Part,
    }
}

fn character(bytes: &[u8]) -> FirstPiece {
    let length = match bytes[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let Some(encoded) = bytes.get(..length) else { return FirstPiece::Part };
    match std::str::from_utf8(encoded).ok().and_then(|text| text.chars().next()) {
        Some(c) => FirstPiece::Piece(OutputPiece::Char(c), length),
        None => FirstPiece::Piece(OutputPiece::Char(char::REPLACEMENT_CHARACTER), 1),
    }
}
