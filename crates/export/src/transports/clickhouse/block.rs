//! Rows as a block of columns: the format Native of ClickHouse.

use super::column::ColumnWriter;
use crate::transports::http_sender::WrittenRows;
use crate::transports::protobuf::put_varint;
use crate::typed_row::{TypedValue, TypedValues};

/// What the server's table takes of our rows.
pub(super) struct InsertPlan {
    /// The statement before the rows.
    pub(super) statement: String,
    /// True if the table stores a request once, however often it arrives.
    pub(super) knows_tokens: bool,
    /// The first value of the rows that fit.
    pub(super) shape_id: i64,
    /// True if the first column is the host's name, which rows do not have.
    pub(super) has_host: bool,
    /// The columns, in the order of the values of a row.
    pub(super) columns: Vec<ColumnWriter>,
}

impl InsertPlan {
    /// Appends a block with a row for each message.
    pub(super) fn put_block<'m>(
        &mut self,
        messages: impl Iterator<Item = &'m [u8]>,
        host: &[u8],
        out: &mut Vec<u8>,
    ) -> WrittenRows {
        self.columns.iter_mut().for_each(ColumnWriter::clear);
        let mut block = WrittenRows::default();
        for message in messages {
            let mut values = TypedValues::from_bytes(message);
            if values.next() != Some(TypedValue::Integer(self.shape_id)) {
                block.refused += 1;
                continue;
            }
            match self.put_row(values, host) {
                None => block.rows += 1,
                Some(misfit) => {
                    block.refused += 1;
                    block.misfit = Some(misfit);
                }
            }
        }
        put_varint(out, self.columns.len() as u64);
        put_varint(out, block.rows);
        self.columns.iter().for_each(|column| column.put_column(out));
        block
    }

    /// Adds a row to the columns, or nothing if a value has no place; returns that value's column then.
    fn put_row(&mut self, values: TypedValues<'_>, host: &[u8]) -> Option<String> {
        self.columns.iter_mut().for_each(ColumnWriter::begin_row);
        let host = self.has_host.then_some(TypedValue::Bytes(host));
        let mut all = host.into_iter().chain(values);
        let misfit = self.columns.iter_mut().find_map(|column| {
            let value = all.next().unwrap_or(TypedValue::Null);
            (!column.put(value)).then(|| format!("a value does not fit into the column {}: {value:?}", column.name()))
        });
        if misfit.is_some() {
            self.columns.iter_mut().for_each(ColumnWriter::undo);
        }
        misfit
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::column::ServerType;
    use super::*;
    use crate::typed_row::{ColumnType, put_typed};

    fn row(id: i64, port: i64, name: TypedValue<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for value in [TypedValue::Integer(id), TypedValue::Integer(port), name] {
            put_typed(&mut out, value);
        }
        out
    }

    #[test]
    fn a_block_has_its_columns_one_after_another() {
        let column = |name, kind, server| ColumnWriter::new(name, kind, ServerType::parse(server).unwrap());
        let mut plan = InsertPlan {
            statement: String::new(),
            knows_tokens: true,
            shape_id: 7,
            has_host: true,
            columns: vec![
                column("host", ColumnType::Text, "LowCardinality(String)"),
                column("port", ColumnType::Integer, "UInt16"),
                column("name", ColumnType::Text, "Nullable(String)"),
            ],
        };
        let rows = [
            row(7, 80, TypedValue::Text("a")),
            row(7, 70_000, TypedValue::Text("too large a port")),
            row(8, 1, TypedValue::Text("of other columns")),
            row(7, 443, TypedValue::Null),
        ];
        for _ in 0..2 {
            let mut out = Vec::new();
            let block = plan.put_block(rows.iter().map(|row| &row[..]), b"h", &mut out);
            let misfit = Some("a value does not fit into the column port: Integer(70000)".to_owned());
            assert_eq!(block, WrittenRows { rows: 2, refused: 2, misfit });
            let expected = b"\x03\x02\x04host\x06String\x01h\x01h\x04port\x06UInt16\x50\x00\xbb\x01\
                             \x04name\x10Nullable(String)\x00\x01\x01a\x00";
            assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
    }
}
