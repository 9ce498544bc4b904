//! The cells of a row with their names: parameters of an element, or `key=value` for people.

use super::words;
use crate::native::{Around, CellForm, CellPen, FixedText, Form, Templates, put_piece};
use record::text::{Cursor, Line, is_plain_but};
use record::{Column, Columns, Kind, Likeness, RowCells, Value, Varying};

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
    /// Templates, if the caller says which rows are alike.
    templates: Option<Templates>,
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
}

impl Pairs {
    /// Pairs of these columns; `rename` returns the name of a column, or `None` to omit it.
    pub(super) fn new<'c>(style: Style, columns: &'c Columns, rename: impl Fn(&'c Column) -> Option<&'c str>) -> Pairs {
        let forms = Form::of(columns, |_| "-");
        let pairs = columns.0.iter().zip(forms);
        let columns = pairs.map(|(column, form)| Pair::new(style, rename(column), column, form)).collect();
        Pairs { style, columns, scratch: Vec::new(), templates: None }
    }

    /// Prepares for rows of which many are alike; `varying` returns how the cells of a column then vary.
    pub(super) fn alike(self, columns: &Columns, varying: fn(&str) -> Varying) -> Pairs {
        Pairs { templates: Some(Templates::new(columns, varying)), ..self }
    }

    /// Appends all cells that are set to `line`, or to `out` after it. With a likeness, formats only the cells that
    /// vary.
    #[inline]
    pub(super) fn put(
        &mut self,
        line: &mut Line,
        out: &mut Vec<u8>,
        cells: &mut dyn RowCells,
        likeness: Option<&Likeness<'_>>,
    ) {
        let Pairs { style, columns, scratch, templates } = self;
        let mut pen = PairPen { style: *style, columns, scratch: &mut *scratch, is_first: true };
        if let (Some(likeness), Some(templates)) = (likeness, templates) {
            if templates.put(likeness, cells, &mut pen, line, out) {
                return pen.end(line);
            }
        }
        pen.is_first = true;
        let mut cursor = Cursor::new(line);
        for (column, cell) in cells.all().iter().enumerate() {
            pen.put_cell(column, cell, &mut cursor, out);
        }
        cursor.done();
        pen.end(line);
    }
}

/// Writes single cells with their names.
struct PairPen<'p> {
    style: Style,
    columns: &'p [Pair],
    scratch: &'p mut Vec<u8>,
    /// True before the first cell.
    is_first: bool,
}

impl PairPen<'_> {
    /// Closes the last value.
    #[inline(always)]
    fn end(&self, line: &mut Line) {
        if self.style == Style::Params && !self.is_first {
            line.byte(b'"');
        }
    }
}

impl CellPen for PairPen<'_> {
    #[inline(always)]
    fn put_cell(&mut self, column: usize, cell: &Value<'_>, line: &mut Cursor<'_>, out: &mut Vec<u8>) {
        let Some(pair) = self.columns.get(column).filter(|pair| !cell.is_null() && !pair.key.is_empty()) else {
            return;
        };
        pair.put_key(line, out, self.is_first);
        self.is_first = false;
        match *cell {
            Value::U64(n) if !pair.hex => line.decimal(n),
            Value::U64(n) => {
                line.short(b"0x");
                line.hex(n);
            }
            Value::Name(word) if word.len() <= Line::SHORT => line.short(word.as_bytes()),
            Value::Addr(addr) => line.addr(addr),
            Value::Bytes(text) if text.len() <= Line::SHORT && self.style.takes(text) => line.short(text),
            rare => line.with_line(|line| put_rare(pair, self.style, self.scratch, line, out, rare)),
        }
    }

    fn around(&self, column: usize, cell: &Value<'_>) -> Option<Around<'_>> {
        let pair = self.columns.get(column).filter(|pair| !pair.key.is_empty())?;
        let (form, prefix): (_, &[u8]) = match cell {
            Value::Addr(_) => (CellForm::Addr, b""),
            Value::U64(_) if pair.hex => (CellForm::Hex, b"0x"),
            Value::U64(_) => (CellForm::Number, b""),
            _ => return None,
        };
        Some(Around { form, before: [pair.key.text(), prefix], behind: None })
    }

    fn leaves_out(&self, column: usize) -> bool {
        self.columns.get(column).is_none_or(|pair| pair.key.is_empty())
    }

    /// The first pair is written without the end of a previous value.
    fn may_be_first(&self, column: usize) -> bool {
        !self.leaves_out(column)
    }

    fn go_on(&mut self) {
        self.is_first = false;
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
