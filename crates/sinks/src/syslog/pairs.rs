//! The cells of a row with their names: parameters of an element, or `key=value` for people.

use super::words;
use crate::native::{FixedText, Form, put_piece};
use record::text::{Cursor, Line, is_plain_without};
use record::{Column, Columns, Kind, RowCells, Value};

/// The notation of names and values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    /// ` name="value"`, with a backslash before `"`, `\` and `]` (RFC 5424, 6.3.3).
    Params,
    /// `name=value`, separated by blanks; values with a blank, `=` or `"` inside are in quotation marks.
    Text,
}

/// Longest name of a parameter.
const NAME_MAX: usize = 32;

/// Writes the cells that are set. Texts from outside are escaped like in `-o text` first, then for the style.
pub(super) struct Pairs {
    style: Style,
    /// One pair for each column.
    columns: Vec<Pair>,
    /// A rare cell as text, before it is escaped for the style.
    scratch: Vec<u8>,
}

struct Pair {
    /// The text between the previous value and this one, `" name="` or ` name=`; empty for an omitted column.
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

    /// Appends the key; for the first pair, without the end of a previous value.
    #[inline(always)]
    fn put_key(&self, line: &mut Cursor<'_>, out: &mut Vec<u8>, is_first: bool) {
        line.make_room(out);
        if is_first {
            let key = self.key.text().get(1..).unwrap_or_default();
            return line.with_line(|line| put_piece(line, out, key));
        }
        self.key.put(line, out);
    }

    #[inline(always)]
    fn put_value(
        &self,
        style: Style,
        cell: &Value<'_>,
        scratch: &mut Vec<u8>,
        line: &mut Cursor<'_>,
        out: &mut Vec<u8>,
    ) {
        match *cell {
            Value::U64(n) if !self.hex => line.decimal(n),
            Value::U64(n) => {
                line.put_short(b"0x");
                line.hex(n);
            }
            Value::Name(word) if word.len() <= Line::SHORT => line.put_short(word.as_bytes()),
            Value::Addr(addr) => line.addr(addr),
            Value::Bytes(text) if text.len() <= Line::SHORT && style.is_unescaped(text) => line.put_short(text),
            rare => line.with_line(|line| put_rare(self, style, scratch, line, out, rare)),
        }
    }
}

impl Pairs {
    /// Pairs of these columns; `rename` returns the name of a column, or `None` to omit it.
    pub(super) fn new<'c>(style: Style, columns: &'c Columns, rename: impl Fn(&'c Column) -> Option<&'c str>) -> Pairs {
        let forms = Form::from_columns(columns, |_| "-");
        let pairs = columns.0.iter().zip(forms);
        let columns = pairs.map(|(column, form)| Pair::new(style, rename(column), column, form)).collect();
        Pairs { style, columns, scratch: Vec::new() }
    }

    /// Appends all cells that are set to `line`, or to `out` after it.
    #[inline]
    pub(super) fn put(&mut self, line: &mut Line, out: &mut Vec<u8>, cells: &mut dyn RowCells) {
        let Pairs { style, columns, scratch } = self;
        let mut cursor = Cursor::new(line);
        let mut is_first = true;
        for (pair, cell) in columns.iter().zip(cells.all_cells()) {
            if cell.is_null() || pair.key.is_empty() {
                continue;
            }
            pair.put_key(&mut cursor, out, is_first);
            pair.put_value(*style, cell, scratch, &mut cursor, out);
            is_first = false;
        }
        cursor.finish();
        if *style == Style::Params && !is_first {
            line.byte(b'"');
        }
    }
}

/// Appends a cell that is rare or needs escaping.
#[inline(never)]
fn put_rare(pair: &Pair, style: Style, scratch: &mut Vec<u8>, line: &mut Line, out: &mut Vec<u8>, cell: Value<'_>) {
    match cell {
        Value::Bits(bits, names) if bits != 0 => put_bits(line, out, bits, names),
        Value::FirstOf(text, _) => put_rare(pair, style, scratch, line, out, Value::Bytes(text)),
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
    /// True if nothing needs escaping: printable ASCII without the bytes that the style or an escape uses.
    #[inline]
    fn is_unescaped(self, text: &[u8]) -> bool {
        match self {
            Style::Params => is_plain_without(text, *b"\"\\]"),
            Style::Text => is_plain_without(text, *b"\"\\ =") && !text.is_empty(),
        }
    }

    /// Appends printable text.
    fn put_escaped(self, out: &mut Vec<u8>, text: &[u8]) {
        let is_special = |byte: &u8| match self {
            Style::Params => matches!(byte, b'"' | b'\\' | b']'),
            // Backslashes were already doubled when control bytes were escaped.
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
