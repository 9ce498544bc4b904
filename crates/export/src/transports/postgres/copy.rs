//! Rows in the text format of COPY: tabs between cells, `\N` for null.

use crate::typed_row::{ColumnType, TypedValue, TypedValues};
use record::text::{put_i64, put_time};

/// Appends a row with these columns. Missing cells are null; surplus cells are left out.
pub(super) fn put_row(out: &mut Vec<u8>, columns: &[(String, ColumnType)], values: TypedValues<'_>) {
    let values = values.chain(std::iter::repeat(TypedValue::Null));
    for (index, ((_, kind), value)) in columns.iter().zip(values).enumerate() {
        if index > 0 {
            out.push(b'\t');
        }
        put_cell(out, *kind, value);
    }
    out.push(b'\n');
}

/// Appends a row of cells whose column types are unknown.
pub(super) fn put_cells<'r>(out: &mut Vec<u8>, cells: impl Iterator<Item = TypedValue<'r>>) {
    for (index, value) in cells.enumerate() {
        if index > 0 {
            out.push(b'\t');
        }
        put_cell(out, ColumnType::Text, value);
    }
    out.push(b'\n');
}

/// Appends a value as an SQL literal, for standard_conforming_strings.
pub(super) fn put_literal(out: &mut Vec<u8>, value: TypedValue<'_>) {
    let bytes = match value {
        TypedValue::Null => return out.extend_from_slice(b"NULL"),
        TypedValue::Integer(n) => {
            // A quoted number fits columns of any type, including flags.
            out.push(b'\'');
            put_i64(out, n);
            return out.push(b'\'');
        }
        TypedValue::Text(text) => text.as_bytes(),
        TypedValue::Bytes(bytes) => bytes,
    };
    out.push(b'\'');
    for chunk in bytes.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'\'' => out.extend_from_slice(b"''"),
                0 => out.extend_from_slice(b"\\x00"),
                byte => out.push(byte),
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
    out.push(b'\'');
}

fn put_cell(out: &mut Vec<u8>, kind: ColumnType, value: TypedValue<'_>) {
    match (value, kind) {
        (TypedValue::Null, _) => out.extend_from_slice(b"\\N"),
        (TypedValue::Integer(ns), ColumnType::Time) => put_time(out, ns.into()),
        (TypedValue::Integer(n), ColumnType::Flag) => out.push(if n == 0 { b'f' } else { b't' }),
        (TypedValue::Integer(n), _) => put_i64(out, n),
        // The number is too large for a bigint: write the largest one.
        (TypedValue::Text(_), ColumnType::Integer) => put_i64(out, i64::MAX),
        (TypedValue::Text(text), _) => put_text(out, text.as_bytes()),
        (TypedValue::Bytes(bytes), _) => {
            for chunk in bytes.utf8_chunks() {
                put_text(out, chunk.valid().as_bytes());
                // A text column can hold only UTF-8.
                chunk.invalid().iter().for_each(|byte| put_hex(out, *byte));
            }
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            // PostgreSQL's text has no NUL.
            0 => put_hex(out, 0),
            byte => out.push(byte),
        }
    }
}

/// Appends `\xNN` with its backslash escaped.
fn put_hex(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |at: u8| DIGITS.get(usize::from(at & 15)).copied().unwrap_or(b'0');
    out.extend_from_slice(&[b'\\', b'\\', b'x', digit(byte >> 4), digit(byte)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put_typed;

    #[test]
    fn cells_are_escaped() {
        let columns: Vec<(String, ColumnType)> = [
            ColumnType::Text,
            ColumnType::Text,
            ColumnType::Integer,
            ColumnType::Integer,
            ColumnType::Flag,
            ColumnType::Time,
            ColumnType::Address,
            ColumnType::Real,
        ]
        .map(|kind| ("c".to_owned(), kind))
        .into();
        let mut row = Vec::new();
        for value in [
            TypedValue::Text("a\tb\\N\n\r\0é'"),
            TypedValue::Bytes(b"x\xff\\."),
            TypedValue::Integer(-7),
            TypedValue::Text("18446744073709551615"),
            TypedValue::Integer(1),
            TypedValue::Integer(1_500_000_001),
            TypedValue::Null,
        ] {
            put_typed(&mut row, value);
        }
        let mut out = Vec::new();
        put_row(&mut out, &columns, TypedValues::from_bytes(&row));
        let text = String::from_utf8(out).unwrap_or_default();
        let cells = [
            "a\\tb\\\\N\\n\\r\\\\x00é'",
            "x\\\\xff\\\\.",
            "-7",
            "9223372036854775807",
            "t",
            "1970-01-01T00:00:01.500000001Z",
            "\\N",
            "\\N\n",
        ];
        assert_eq!(text, cells.join("\t"));
    }
}
