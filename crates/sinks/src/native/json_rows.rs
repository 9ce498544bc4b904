//! Rows as JSON, one object per line, for output to a terminal or a pipe and for the exports.

use super::fixed_text::{FixedText, put_piece};
use super::value::{put_endpoint, put_json_value};
use record::text::{Cursor, Line};
use record::{Columns, Value, text};
use std::ops::Range;

/// Writes rows as JSON objects, one per line, into any buffer: numbers are numbers (including marks), addresses text,
/// owners a list of objects; unknown values are null. Allocates only in the buffer.
pub struct JsonRows {
    keys: Vec<JsonKey>,
    line: Line,
}

/// The text before a column's cells: one store for the punctuation, the name, and the beginning of the cell.
struct JsonKey {
    /// `,"name":`
    plain: FixedText,
    /// `,"name":"`
    quoted: FixedText,
    /// `,"name":null`
    null: FixedText,
}

impl JsonKey {
    fn new(name: &str, is_first: bool) -> JsonKey {
        let mut key = if is_first { b"{\"".to_vec() } else { b",\"".to_vec() };
        text::put_json(&mut key, name.as_bytes());
        let with = |value: &[u8]| FixedText::new(&[&key, b"\":", value]);
        JsonKey { plain: with(b""), quoted: with(b"\""), null: with(b"null") }
    }

    /// Appends the key and the cell to `line`, or to `out` after it if the cell is long or needs escaping.
    #[inline(always)]
    fn put_with(&self, cell: &Value<'_>, line: &mut Cursor<'_>, out: &mut Vec<u8>) {
        line.make_room(out);
        match *cell {
            Value::Null => return self.null.put(line, out),
            Value::U64(n) => {
                self.plain.put(line, out);
                return line.decimal(n);
            }
            Value::Name(word) if word.len() <= Line::SHORT => {
                self.quoted.put(line, out);
                line.put_short(word.as_bytes());
            }
            Value::Addr(addr) => {
                self.quoted.put(line, out);
                line.addr(addr);
            }
            Value::Bytes(text) if text.len() <= Line::SHORT && text::is_plain(text) => {
                self.quoted.put(line, out);
                line.put_short(text);
            }
            rare => {
                self.plain.put(line, out);
                return line.with_line(|line| put_fast(line, out, rare));
            }
        }
        line.byte(b'"');
    }
}

impl JsonRows {
    /// A writer of rows with these columns.
    pub fn new(columns: &Columns) -> JsonRows {
        let keys = columns.0.iter().enumerate().map(|(i, column)| JsonKey::new(&column.name, i == 0)).collect();
        JsonRows { keys, line: Line::new() }
    }

    /// Appends the object of one row and a newline to `out`.
    #[inline(always)]
    pub fn put(&mut self, cells: &[Value<'_>], out: &mut Vec<u8>) {
        let mut line = Cursor::new(&mut self.line);
        for (key, cell) in self.keys.iter().zip(cells) {
            key.put_with(cell, &mut line, out);
        }
        line.finish();
        self.end_row(cells, out);
    }

    /// Appends the object of one row; returns the position in `out` of the cell of the column `hole`.
    #[inline(always)]
    pub(super) fn put_with_hole(
        &mut self,
        cells: &[Value<'_>],
        hole: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Option<Range<usize>> {
        let mut line = Cursor::new(&mut self.line);
        let mut gap = None;
        for (i, (key, cell)) in self.keys.iter().zip(cells).enumerate() {
            if hole != Some(i) {
                key.put_with(cell, &mut line, out);
                continue;
            }
            line.make_room(out);
            key.plain.put(&mut line, out);
            line.with_line(|line| {
                line.drain(out);
                let start = out.len();
                put_fast(line, out, *cell);
                line.drain(out);
                gap = Some(start..out.len());
            });
        }
        line.finish();
        self.end_row(cells, out);
        gap
    }

    #[inline(always)]
    fn end_row(&mut self, cells: &[Value<'_>], out: &mut Vec<u8>) {
        let is_empty = self.keys.is_empty() || cells.is_empty();
        self.line.put_short(if is_empty { b"{}\n" } else { b"}\n" });
        self.line.drain(out);
    }

    /// Appends one cell without its key to `out`.
    pub(super) fn put_cell(&mut self, cell: Value<'_>, out: &mut Vec<u8>) {
        put_fast(&mut self.line, out, cell);
        self.line.drain(out);
    }
}

/// Appends the cell to `line`, or to `buf` after it if it is long or needs escaping.
#[inline(never)]
fn put_fast(line: &mut Line, buf: &mut Vec<u8>, cell: Value<'_>) {
    match cell {
        Value::U64(n) => line.decimal(n),
        Value::Name(word) if word.len() <= Line::SHORT => put_quoted(line, |line| line.put_short(word.as_bytes())),
        Value::Addr(addr) => put_quoted(line, |line| line.addr(addr)),
        Value::Time(ns) => put_quoted(line, |line| line.timestamp(ns)),
        Value::Endpoint(addr, port) => put_quoted(line, |line| put_endpoint(line, addr, port)),
        Value::Bits(bits, names) => put_bits(line, buf, bits, names),
        Value::Bytes(text) if text.len() <= Line::SHORT && text::is_plain(text) => {
            put_quoted(line, |line| line.put_short(text))
        }
        rare => {
            line.drain(buf);
            put_json_value(buf, rare);
        }
    }
}

/// Appends our own words, which need no escaping, as a list of texts.
fn put_bits(line: &mut Line, out: &mut Vec<u8>, bits: u32, names: &'static [&'static str]) {
    line.byte(b'[');
    for (i, word) in Value::Bits(bits, names).words().iter().enumerate() {
        line.put_short(if i == 0 { b"\"" } else { b",\"" });
        put_piece(line, out, word);
        line.byte(b'"');
    }
    line.byte(b']');
}

#[inline]
fn put_quoted(line: &mut Line, put: impl FnOnce(&mut Line)) {
    line.byte(b'"');
    put(line);
    line.byte(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Addr, Column, Kind};

    fn columns(names: &[&str]) -> Columns {
        Columns(names.iter().map(|name| Column { name: (*name).into(), kind: Kind::Text }).collect())
    }

    #[test]
    fn rows_follow_one_another_in_any_buffer() {
        let mut rows = JsonRows::new(&columns(&["src", "port", "prefix"]));
        let mut out = b"before ".to_vec();
        rows.put(&[Value::Addr(Addr::V4([192, 0, 2, 1])), Value::U64(53), Value::Bytes(b"a\"\n\xff")], &mut out);
        rows.put(&[Value::Null, Value::Null, Value::Null], &mut out);
        let expected = "before {\"src\":\"192.0.2.1\",\"port\":53,\"prefix\":\"a\\\"\\n\u{fffd}\"}\n\
                        {\"src\":null,\"port\":null,\"prefix\":null}\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn no_columns_are_an_empty_object() {
        let mut out = Vec::new();
        JsonRows::new(&columns(&[])).put(&[], &mut out);
        assert_eq!(out, b"{}\n");
    }
}
