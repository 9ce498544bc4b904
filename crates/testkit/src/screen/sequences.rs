//! Bytes of a terminal's output in pieces: characters, controls, sequences.

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A character that is shown.
    Char(char),
    /// A control character.
    Control(u8),
    /// `ESC`, bytes between, a letter: `ESC 7`, `ESC ( B`.
    Escape(Vec<u8>),
    /// `CSI`: the private mark (`?`, `>` …) or 0, numbers, the last byte.
    Csi {
        /// `?`, `>`, `=`, or 0 for none.
        mark: u8,
        /// The numbers; 0 for one that is left out.
        numbers: Vec<usize>,
        /// What is done.
        last: u8,
    },
}

/// Takes bytes as they come; a piece may be cut anywhere.
#[derive(Default)]
pub(super) struct Pieces {
    waiting: Vec<u8>,
}

/// What stands at the beginning of the bytes.
enum Found {
    Piece(Piece, usize),
    /// A string to the terminal (titles and the like), which nobody shows.
    Ignored(usize),
    /// More bytes are needed.
    Part,
}

impl Pieces {
    /// The pieces that are complete with these bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Piece> {
        self.waiting.extend_from_slice(bytes);
        let (mut pieces, mut at) = (Vec::new(), 0);
        while at < self.waiting.len() {
            match first(&self.waiting[at..]) {
                Found::Piece(piece, length) => {
                    pieces.push(piece);
                    at += length;
                }
                Found::Ignored(length) => at += length,
                Found::Part => break,
            }
        }
        self.waiting.drain(..at);
        pieces
    }
}

fn first(bytes: &[u8]) -> Found {
    match bytes {
        [0x1b] => Found::Part,
        [0x1b, b'[', rest @ ..] => csi(rest),
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => string(rest),
        [0x1b, rest @ ..] => {
            let between = rest.iter().take_while(|b| (0x20..0x30).contains(*b)).count();
            match rest.get(..=between) {
                Some(escape) => Found::Piece(Piece::Escape(escape.to_vec()), between + 2),
                None => Found::Part,
            }
        }
        [control @ (0..=0x1f | 0x7f), ..] => Found::Piece(Piece::Control(*control), 1),
        _ => character(bytes),
    }
}

fn csi(rest: &[u8]) -> Found {
    let Some(end) = rest.iter().position(|b| (0x40..0x7f).contains(b)) else { return Found::Part };
    let (mark, digits) = match rest[..end].split_first() {
        Some((mark @ b'<'..=b'?', digits)) => (*mark, digits),
        _ => (0, &rest[..end]),
    };
    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let numbers = digits.split(|b| *b == b';').map(number).collect();
    Found::Piece(Piece::Csi { mark, numbers, last: rest[end] }, end + 3)
}

/// Ends with BEL or `ESC \`.
fn string(rest: &[u8]) -> Found {
    let end = rest.iter().position(|b| *b == 7 || *b == 0x1b);
    match end {
        Some(end) if rest[end] == 7 => Found::Ignored(end + 3),
        Some(end) if rest.len() > end + 1 => Found::Ignored(end + 4),
        _ => Found::Part,
    }
}

fn character(bytes: &[u8]) -> Found {
    let length = match bytes[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let Some(encoded) = bytes.get(..length) else { return Found::Part };
    match std::str::from_utf8(encoded).ok().and_then(|text| text.chars().next()) {
        Some(c) => Found::Piece(Piece::Char(c), length),
        None => Found::Piece(Piece::Char(char::REPLACEMENT_CHARACTER), 1),
    }
}
