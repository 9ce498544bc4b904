//! Cells as text, in the form that the table, tab-separated text and CSV share.

use super::value::{put_endpoint, put_json_value, put_link_addr, put_prefix, put_thousandths};
use record::text::Line;
use record::{Columns, Kind, Owner, Value, Words, text};

/// The form of a column's cells, chosen once per round.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// True for numbers in hexadecimal, `0x…`.
    hex: bool,
    /// The text for null.
    null: &'static str,
}

impl Form {
    /// Returns the forms of all columns; `null` returns the word for null of a column.
    pub(crate) fn from_columns(columns: &Columns, null: impl Fn(&str) -> &'static str) -> Vec<Form> {
        columns.0.iter().map(|c| Form { hex: c.kind == Kind::Hex, null: null(&c.name) }).collect()
    }

    /// Appends the cell, escaped, to `line`, or to `out` after it if the cell is long.
    #[inline]
    pub(super) fn put_fast(self, line: &mut Line, out: &mut Vec<u8>, cell: Value<'_>) {
        line.make_room(out);
        match cell {
            Value::Null => line.put_short(self.null.as_bytes()),
            Value::U64(n) if !self.hex => line.decimal(n),
            Value::Name(word) if word.len() <= Line::SHORT => line.put_short(word.as_bytes()),
            Value::Addr(addr) => line.addr(addr),
            Value::Time(ns) => line.timestamp(ns),
            Value::Endpoint(addr, port) => put_endpoint(line, addr, port),
            Value::Bytes(bytes) if bytes.len() <= Line::SHORT && text::is_plain(bytes) && bytes != b"-" => {
                line.put_short(bytes)
            }
            rare => {
                line.drain(out);
                self.put(out, rare);
            }
        }
    }

    /// Appends the cell, escaped.
    pub(crate) fn put(self, out: &mut Vec<u8>, cell: Value<'_>) {
        match cell {
            Value::Null => out.extend_from_slice(self.null.as_bytes()),
            Value::U64(n) if self.hex => put_prefixed_hex(out, n),
            Value::U64(n) => text::put_u64(out, n),
            Value::Name(word) => out.extend_from_slice(word.as_bytes()),
            Value::Guess(word) => {
                out.extend_from_slice(word.as_bytes());
                out.push(b'?');
            }
            Value::Addr(addr) => text::put_addr(out, addr),
            Value::LinkAddr(link) => put_link_addr(out, link),
            Value::Time(ns) => text::put_timestamp(out, ns),
            Value::FarTime(time) => text::put_far_time(out, time),
            Value::Bytes(bytes) => put_bytes(out, bytes),
            Value::FirstOf(bytes, others) => {
                put_bytes(out, bytes);
                out.extend_from_slice(b" +");
                text::put_u64(out, others.into());
            }
            Value::Bool(yes) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
            Value::I64(n) => text::put_i64(out, n),
            Value::Thousandths(n) => put_thousandths(out, n),
            nested @ (Value::List(_) | Value::Object(_)) => put_json_value(out, nested),
            Value::Owners(owners) => put_owners(out, owners),
            Value::Endpoint(addr, port) => {
                let mut line = Line::new();
                put_endpoint(&mut line, addr, port);
                line.drain(out);
            }
            prefix @ Value::Prefix(..) => put_prefix(out, prefix),
            words @ (Value::Bits(..) | Value::Words(_)) => put_words(out, words.words()),
        }
    }
}

/// Appends `seen_reply,assured`; `none` for the empty set.
pub(super) fn put_words(out: &mut Vec<u8>, words: Words<'_>) {
    let start = out.len();
    for (i, word) in words.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        text::put_text(out, word);
    }
    if out.len() == start {
        out.extend_from_slice(b"none");
    }
}

fn put_prefixed_hex(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(b"0x");
    text::put_hex(out, n);
}

/// The text `-` would read as null, so its only byte is escaped.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes == b"-" {
        return out.extend_from_slice(b"\\x2d");
    }
    text::put_text(out, bytes);
}

/// `nginx[123].7,nginx[124]`: process, pid and, if the process has one, file descriptor. The separators `,` `[` `]`
/// inside a process name are escaped as `\xNN`: a process chooses its name, and must not forge a second owner.
pub(super) fn put_owners(out: &mut Vec<u8>, owners: &[Owner]) {
    for (i, owner) in owners.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        put_process(out, owner.process.as_bytes());
        out.push(b'[');
        text::put_u64(out, owner.pid.into());
        out.push(b']');
        if let Some(fd) = owner.descriptor() {
            out.push(b'.');
            text::put_u64(out, fd.into());
        }
    }
}

fn put_process(out: &mut Vec<u8>, name: &[u8]) {
    let is_separator = |byte: &u8| matches!(byte, b',' | b'[' | b']');
    if !name.iter().any(is_separator) {
        return text::put_text(out, name);
    }
    // The separators are ASCII, so a cut there splits no character.
    for part in name.split_inclusive(is_separator) {
        match part.split_last() {
            Some((last, before)) if is_separator(last) => {
                text::put_text(out, before);
                text::put_x(out, *last);
            }
            _ => text::put_text(out, part),
        }
    }
}
