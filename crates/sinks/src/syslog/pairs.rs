//! The cells of a row with their names: parameters of an element, or `key=value` for people.

use super::words;
use crate::native::{Form, put_piece};
use record::text::Line;
use record::{Column, Columns, Kind, Value};

/// How names and values stand together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    /// ` name="value"`, with a backslash before `"`, `\` and `]` (RFC 5424, 6.3.3).
    Params,
    /// `name=value` with a blank between; values with a blank, `=` or `"` inside stand between quotation marks.
    Text,
}

/// Longest name of a parameter.
const NAME_MAX: usize = 32;

/// Writes the cells that are set. Texts from outside are escaped as in `-o text` first, then as the style wants it.
pub(super) struct Pairs {
    style: Style,
    /// One for each column.
    columns: Vec<Pair>,
    /// A rare cell as text, before it is escaped for the style.
    scratch: Vec<u8>,
}

struct Pair {
    /// What stands between the value before and this one, `" name="` or ` name=`; empty for a column that is left out.
    key: Vec<u8>,
    /// The same, if it fits.
    short_key: Option<[u8; Line::SHORT]>,
    hex: bool,
    form: Form,
}

impl Pair {
    fn new(style: Style, name: Option<&str>, column: &Column, form: Form) -> Pair {
        let key = name.map_or_else(Vec::new, |name| {
            let name = words::name(name, NAME_MAX);
            match style {
                Style::Params => [b"\" ", &name[..], b"=\""].concat(),
                Style::Text => [b" ", &name[..], b"="].concat(),
            }
        });
        let mut short_key = [0; Line::SHORT];
        let fits = short_key.get_mut(..key.len()).map(|slot| slot.copy_from_slice(&key)).is_some();
        Pair { short_key: fits.then_some(short_key), key, hex: column.kind == Kind::Hex, form }
    }

    /// Appends the key: that of the first pair has no value before it.
    #[inline(always)]
    fn put_key(&self, line: &mut Line, out: &mut Vec<u8>, is_first: bool) {
        match &self.short_key {
            Some(key) if !is_first => {
                line.make_room(out);
                line.prepared(key, self.key.len());
            }
            _ => put_piece(line, out, self.key.get(usize::from(is_first)..).unwrap_or_default()),
        }
    }
}

impl Pairs {
    /// Pairs of these columns; `rename` gives the name of a column, or `None` to leave it out.
    pub(super) fn new<'c>(style: Style, columns: &'c Columns, rename: impl Fn(&'c Column) -> Option<&'c str>) -> Pairs {
        let forms = Form::of(columns, |_| "-");
        let pairs = columns.0.iter().zip(forms);
        let columns = pairs.map(|(column, form)| Pair::new(style, rename(column), column, form)).collect();
        Pairs { style, columns, scratch: Vec::new() }
    }

    /// Appends all cells that are set to `line`, or to `out` behind it.
    #[inline]
    pub(super) fn put(&mut self, line: &mut Line, out: &mut Vec<u8>, cells: &[Value<'_>]) {
        let mut is_first = true;
        for (pair, &cell) in self.columns.iter().zip(cells) {
            if cell.is_null() || pair.key.is_empty() {
                continue;
            }
            pair.put_key(line, out, is_first);
            is_first = false;
            match cell {
                Value::U64(n) if !pair.hex => line.decimal(n),
                Value::U64(n) => {
                    line.short(b"0x");
                    line.hex(n);
                }
                Value::Name(word) if word.len() <= Line::SHORT => line.short(word.as_bytes()),
                Value::Addr(addr) => line.addr(addr),
                Value::Bits(bits, names) if bits != 0 => put_bits(line, out, bits, names),
                Value::Bytes(text) if text.len() <= Line::SHORT && self.style.takes(text) => line.short(text),
                rare => {
                    line.drain(out);
                    self.scratch.clear();
                    pair.form.put(&mut self.scratch, rare);
                    self.style.put_escaped(out, &self.scratch);
                }
            }
        }
        if self.style == Style::Params && !is_first {
            line.byte(b'"');
        }
    }
}

#[inline]
fn put_bits(line: &mut Line, out: &mut Vec<u8>, bits: u32, names: &'static [&'static str]) {
    for (i, word) in Value::Bits(bits, names).words().iter().enumerate() {
        if i > 0 {
            line.byte(b',');
        }
        put_piece(line, out, word);
    }
}

/// True if `text` is printable ASCII without the bytes `but`: eight bytes at a time.
#[inline]
fn has_only_plain<const N: usize>(text: &[u8], but: [u8; N]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte that is zero, and maybe of one above such a byte.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let is_plain = |bytes: &[u8; 8]| {
        let word = u64::from_le_bytes(*bytes);
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let special =
            but.iter().fold(word | below_space, |found, byte| found | zeros(word ^ (ONES * u64::from(*byte))));
        (special | zeros(word ^ (ONES * 0x7f))) & HIGH == 0
    };
    let mut words = text.chunks_exact(8);
    // What is less than a word is filled up with a byte that every text may have.
    let mut last = [b'a'; 8];
    for (slot, byte) in last.iter_mut().zip(words.remainder()) {
        *slot = *byte;
    }
    words.all(|word| word.first_chunk().is_some_and(is_plain)) && is_plain(&last)
}

impl Style {
    /// True if there is nothing to escape: printable ASCII without the bytes that the style or an escape uses.
    #[inline]
    fn takes(self, text: &[u8]) -> bool {
        match self {
            Style::Params => has_only_plain(text, *b"\"\\]"),
            Style::Text => has_only_plain(text, *b"\"\\ =") && !text.is_empty(),
        }
    }

    /// Appends printable text.
    fn put_escaped(self, out: &mut Vec<u8>, text: &[u8]) {
        let is_special = |byte: &u8| match self {
            Style::Params => matches!(byte, b'"' | b'\\' | b']'),
            // Backslashes were doubled when control bytes got theirs.
            Style::Text => *byte == b'"',
        };
        let needs_quotes = || text.is_empty() || text.iter().any(|byte| matches!(byte, b' ' | b'=' | b'"'));
        let quotes: &[u8] = if self == Style::Text && needs_quotes() { b"\"" } else { b"" };
        out.extend_from_slice(quotes);
        let mut parts = text.split(is_special);
        let mut at = parts.next().map_or(0, |first| {
            out.extend_from_slice(first);
            first.len()
        });
        for part in parts {
            out.push(b'\\');
            out.extend(text.get(at));
            out.extend_from_slice(part);
            at += 1 + part.len();
        }
        out.extend_from_slice(quotes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_text_is_found_by_words(text in "[ -~]{0,32}", at: usize, byte: u8) {
            let slow = |text: &[u8]| text.iter().all(|byte| (0x20..0x7f).contains(byte) && !b"\"\\]".contains(byte));
            let mut text = text.into_bytes();
            prop_assert_eq!(has_only_plain(&text, *b"\"\\]"), slow(&text));
            text.retain(|byte| !b"\"\\]".contains(byte));
            prop_assert!(has_only_plain(&text, *b"\"\\]"));
            text.insert(at % (text.len() + 1), byte);
            prop_assert_eq!(has_only_plain(&text, *b"\"\\]"), slow(&text), "{:?}", text);
        }
    }
}
