//! Rows as JSON, one object a line: what the output on a terminal or a pipe and the exports share.

use super::value::{put_endpoint, put_json_value};
use record::text::Line;
use record::{Columns, Value, text};
use std::ops::Range;

/// Writes rows as JSON objects, one a line, into any buffer: numbers are numbers (marks too), addresses text, owners a
/// list of objects, null where unknown. No allocation but that of the buffer.
pub struct JsonRows {
    /// All keys behind one another, each with its punctuation and `null`: `{"proto":null`, then `,"state":null`.
    keys: Vec<u8>,
    /// Where each key ends in `keys`, with the `null` behind it.
    ends: Vec<usize>,
    line: Line,
}

/// Length of the `null` behind each key.
const NULL: usize = 4;

impl JsonRows {
    /// A writer of rows that have these columns.
    pub fn new(columns: &Columns) -> JsonRows {
        let (mut keys, mut ends) = (Vec::new(), Vec::new());
        for (i, column) in columns.0.iter().enumerate() {
            keys.extend_from_slice(if i == 0 { b"{\"" } else { b",\"" });
            text::put_json(&mut keys, column.name.as_bytes());
            keys.extend_from_slice(b"\":null");
            ends.push(keys.len());
        }
        JsonRows { keys, ends, line: Line::new() }
    }

    /// Appends the object of one row and a newline to `out`.
    #[inline(always)]
    pub fn put(&mut self, cells: &[Value<'_>], out: &mut Vec<u8>) {
        self.put_with_hole(cells, None, out);
    }

    /// The same; returns where in `out` the cell of the column `hole` stands.
    #[inline(always)]
    pub(super) fn put_with_hole(
        &mut self,
        cells: &[Value<'_>],
        hole: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Option<Range<usize>> {
        let line = &mut self.line;
        let (mut from, mut gap) = (0, None);
        for (i, (&end, &cell)) in self.ends.iter().zip(cells).enumerate() {
            // Half of the cells of a wide row are null: key and null are one piece.
            let is_null = cell.is_null() && hole != Some(i);
            let key_end = if is_null { end } else { end - NULL };
            put_piece(line, out, self.keys.get(from..key_end).unwrap_or_default());
            if hole == Some(i) {
                line.drain(out);
                let start = out.len();
                put_fast(line, out, cell);
                line.drain(out);
                gap = Some(start..out.len());
            } else if !is_null {
                put_fast(line, out, cell);
            }
            from = end;
        }
        line.short(if from == 0 { b"{}\n" } else { b"}\n" });
        line.drain(out);
        gap
    }

    /// Appends one cell without its key to `out`.
    pub(super) fn put_cell(&mut self, cell: Value<'_>, out: &mut Vec<u8>) {
        put_fast(&mut self.line, out, cell);
        self.line.drain(out);
    }
}

/// Appends our own text to `line`, or to `out` behind it if it is long.
#[inline]
pub(crate) fn put_piece(line: &mut Line, out: &mut Vec<u8>, text: &[u8]) {
    line.make_room(out);
    if text.len() <= Line::SHORT {
        return line.short(text);
    }
    line.drain(out);
    out.extend_from_slice(text);
}

/// Appends the cell to `line`, or to `buf` behind it if it is long or needs escaping.
#[inline]
fn put_fast(line: &mut Line, buf: &mut Vec<u8>, cell: Value<'_>) {
    match cell {
        Value::U64(n) => line.decimal(n),
        Value::Name(word) if word.len() <= Line::SHORT => put_quoted(line, |line| line.short(word.as_bytes())),
        Value::Addr(addr) => put_quoted(line, |line| line.addr(addr)),
        Value::Time(ns) => put_quoted(line, |line| line.timestamp(ns)),
        Value::Endpoint(addr, port) => put_quoted(line, |line| put_endpoint(line, addr, port)),
        Value::Bytes(text) if text.len() <= Line::SHORT && text::is_plain(text) => {
            put_quoted(line, |line| line.short(text))
        }
        rare => {
            line.drain(buf);
            put_json_value(buf, rare);
        }
    }
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
