//! The cells of a row with their names: parameters of an element, or `key=value` for people.

use super::words;
use crate::native::{FixedText, Form, put_piece};
use record::text::{Cursor, Line, is_plain_but};
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
    key: FixedText,
    hex: bool,
    form: Form,
}

impl Pair {
    fn new(style: Style, name: Option<&str>, column: &Column, form: Form) -> Pair {
        let name = name.map(|name| words::name(name, NAME_MAX));
        let key = match (&name, style) {
            (None, _) => FixedText::new(&[]),
            (Some(name), Style::Params) => FixedText::new(&[b"\" ", name, b"=\""]),
            (Some(name), Style::Text) => FixedText::new(&[b" ", name, b"="]),
        };
        Pair { key, hex: column.kind == Kind::Hex, form }
    }

    /// Appends the key: that of the first pair has no value before it.
    #[inline(always)]
    fn put_key(&self, line: &mut Cursor<'_>, out: &mut Vec<u8>, is_first: bool) {
        line.make_room(out);
        if is_first {
            let key = self.key.text().get(1..).unwrap_or_default();
            return line.with_line(|line| put_piece(line, out, key));
        }
        self.key.put(line, out);
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
        let mut line = Cursor::new(line);
        for (pair, cell) in self.columns.iter().zip(cells) {
            if cell.is_null() || pair.key.is_empty() {
                continue;
            }
            pair.put_key(&mut line, out, is_first);
            is_first = false;
            match *cell {
                Value::U64(n) if !pair.hex => line.decimal(n),
                Value::Name(word) if word.len() <= Line::SHORT => line.short(word.as_bytes()),
                Value::Addr(addr) => line.addr(addr),
                Value::Bytes(text) if text.len() <= Line::SHORT && self.style.takes(text) => line.short(text),
                rare => line.with_line(|line| put_rare(pair, self.style, &mut self.scratch, line, out, rare)),
            }
        }
        if self.style == Style::Params && !is_first {
            line.byte(b'"');
        }
        line.done();
    }
}

/// Appends a cell that is rare or needs escaping.
#[inline(never)]
fn put_rare(pair: &Pair, style: Style, scratch: &mut Vec<u8>, line: &mut Line, out: &mut Vec<u8>, cell: Value<'_>) {
    match cell {
        Value::U64(n) if pair.hex => {
            line.short(b"0x");
            line.hex(n);
        }
        Value::Bits(bits, names) if bits != 0 => put_bits(line, out, bits, names),
        rare => {
            line.drain(out);
            scratch.clear();
            pair.form.put(scratch, rare);
            style.put_escaped(out, scratch);
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

impl Style {
    /// True if there is nothing to escape: printable ASCII without the bytes that the style or an escape uses.
    #[inline]
    fn takes(self, text: &[u8]) -> bool {
        match self {
            Style::Params => is_plain_but(text, *b"\"\\]"),
            Style::Text => is_plain_but(text, *b"\"\\ =") && !text.is_empty(),
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
