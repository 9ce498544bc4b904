//! Text that repeats in every row: keys with their punctuation.

use record::text::{Cursor, Line};

/// A text that is prepared once. A short one is written with one store of fixed width.
pub(crate) struct FixedText {
    text: Vec<u8>,
    /// The text padded to the width of one store, if it fits.
    short: Option<[u8; Line::SHORT]>,
}

impl FixedText {
    /// Joins these parts.
    pub(crate) fn new(parts: &[&[u8]]) -> FixedText {
        let text = parts.concat();
        let mut short = [0; Line::SHORT];
        let fits = short.get_mut(..text.len()).map(|slot| slot.copy_from_slice(&text)).is_some();
        FixedText { short: fits.then_some(short), text }
    }

    /// True if the text is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Appends it to `line`, which has room ([`Cursor::make_room`]), or to `out` after it if it is long.
    #[inline(always)]
    pub(crate) fn put(&self, line: &mut Cursor<'_>, out: &mut Vec<u8>) {
        match &self.short {
            Some(short) => line.put_prepared(short, self.text.len()),
            None => line.with_line(|line| put_piece(line, out, &self.text)),
        }
    }
}

/// Appends our own text to `line`, or to `out` after it if it is long.
#[inline]
pub(crate) fn put_piece(line: &mut Line, out: &mut Vec<u8>, text: &[u8]) {
    line.make_room(out);
    if text.len() <= Line::SHORT {
        return line.put_short(text);
    }
    line.drain(out);
    out.extend_from_slice(text);
}
