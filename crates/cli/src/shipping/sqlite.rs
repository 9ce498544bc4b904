//! Rows as typed values, for a table of a database.

use super::row_writer::{RowWriter, Shipped};
use export::{TableShape, TypedValue, put_typed};
use record::text::{put_addr, put_i64, put_u64};
use record::{Columns, Kind, Lookups, RowCells, Value};

/// Makes messages of the cells of rows.
struct TypedRows {
    shape: TableShape,
    /// Its number, which begins each row.
    id: i64,
    /// A cell as text.
    text: Vec<u8>,
}

/// The writer of rows of `T`: the table and its columns have the names that they have here. Numbers are numbers, times
/// are nanoseconds since 1970, everything else is text; bytes that are not UTF-8 stay bytes.
pub(super) fn writer<T: Shipped>(columns: &Columns) -> Box<dyn RowWriter<T>> {
    let shape = TableShape {
        name: T::NAME.to_owned(),
        columns: columns.0.iter().map(|column| (column.name.to_string(), sql_type(column.kind))).collect(),
        view: (T::NAME == "log").then(|| ("ulog_pkt".to_owned(), ulog_pkt(columns))),
    };
    Box::new(TypedRows { id: shape.id(), shape, text: Vec::new() })
}

fn sql_type(kind: Kind) -> &'static str {
    match kind {
        // Text with decimals becomes a number there.
        Kind::Thousandths => "REAL",
        kind if kind.is_number() || matches!(kind, Kind::Time | Kind::Bool) => "INTEGER",
        _ => "TEXT",
    }
}

/// Columns of the table that ulogd2's SQLITE3 comes with (sqlite3.table), each by the first of ours that is there.
const ULOG_PKT: &[(&str, &[&str])] = &[
    ("raw_pktlen", &["payload_bytes", "len"]),
    ("oob_prefix", &["prefix"]),
    ("oob_time_sec", &["time"]),
    ("oob_time_usec", &["time"]),
    ("oob_mark", &["mark"]),
    ("oob_hook", &["hook"]),
    ("oob_uid", &["uid"]),
    ("oob_gid", &["gid"]),
];

/// The SELECT that shows rows as that table has them.
fn ulog_pkt(columns: &Columns) -> String {
    let is_there = |name: &str| columns.0.iter().any(|column| &*column.name == name);
    let column = |(theirs, ours): &(&str, &[&str])| {
        let ours = ours.iter().find(|name| is_there(name)).map(|name| match *theirs {
            "oob_time_sec" => format!("{name} / 1000000000"),
            "oob_time_usec" => format!("{name} / 1000 % 1000000"),
            // These are never null there.
            "oob_mark" => format!("coalesce({name}, 0)"),
            "oob_prefix" => format!("coalesce({name}, '')"),
            "oob_hook" => format!(
                "CASE {name} WHEN 'prerouting' THEN 0 WHEN 'input' THEN 1 WHEN 'forward' THEN 2 WHEN 'output' THEN 3 \
                 WHEN 'postrouting' THEN 4 WHEN 'ingress' THEN 0 WHEN 'egress' THEN 1 END"
            ),
            _ => (*name).to_owned(),
        });
        format!("{} AS {theirs}", ours.as_deref().unwrap_or("NULL"))
    };
    let columns: Vec<String> = ULOG_PKT.iter().map(column).collect();
    format!("SELECT {}, 1 AS raw_pktcount FROM log", columns.join(", "))
}

impl<T: Shipped> RowWriter<T> for TypedRows {
    fn file_header(&mut self) -> Vec<u8> {
        self.shape.to_header()
    }

    fn write(&mut self, _: &T::Row<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>, out: &mut Vec<u8>) {
        put_typed(out, TypedValue::Integer(self.id));
        for cell in cells.all() {
            put_cell(*cell, &mut self.text, out);
        }
    }
}

fn put_cell(cell: Value<'_>, text: &mut Vec<u8>, out: &mut Vec<u8>) {
    text.clear();
    match cell {
        Value::Null => return put_typed(out, TypedValue::Null),
        Value::Bool(yes) => return put_typed(out, TypedValue::Integer(yes.into())),
        Value::I64(n) => return put_typed(out, TypedValue::Integer(n)),
        Value::U64(n) | Value::Time(n) => match i64::try_from(n) {
            Ok(n) => return put_typed(out, TypedValue::Integer(n)),
            // SQL knows no greater numbers.
            Err(_) => put_u64(text, n),
        },
        Value::Name(word) | Value::Guess(word) => return put_typed(out, TypedValue::Text(word)),
        Value::Bytes(bytes) => return put_bytes(bytes, out),
        Value::Addr(addr) => put_addr(text, addr),
        Value::Bits(..) | Value::Words(_) => {
            for (i, word) in cell.words().iter().enumerate() {
                text.extend_from_slice(if i == 0 { b"" } else { b"," });
                text.extend_from_slice(word);
            }
        }
        Value::Thousandths(n) => {
            put_i64(text, i64::try_from(n / 1000).unwrap_or(i64::MAX));
            text.extend_from_slice(format!(".{:03}", n % 1000).as_bytes());
        }
        Value::Endpoint(addr, None) => put_addr(text, addr),
        Value::Endpoint(..) | Value::Owners(_) | Value::List(_) | Value::Object(_) => {
            sinks::put_json_value(text, cell);
            // An endpoint is a string without anything to escape.
            if let [b'"', endpoint @ .., b'"'] = &text[..] {
                return put_bytes(endpoint, out);
            }
        }
    }
    put_bytes(text, out);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_typed(out, std::str::from_utf8(bytes).map_or(TypedValue::Bytes(bytes), TypedValue::Text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use export::TypedValues;
    use record::rows::LogRecords;
    use record::{Addr, Column, Table};

    const FLAGS: &[&str] = &["fin", "syn", "rst", "psh", "ack"];

    #[test]
    fn cells_keep_their_types() {
        let v6 = Addr::V6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        for (cell, expected) in [
            (Value::Null, TypedValue::Null),
            (Value::U64(7), TypedValue::Integer(7)),
            (Value::U64(u64::MAX), TypedValue::Text("18446744073709551615")),
            (Value::I64(-7), TypedValue::Integer(-7)),
            (Value::Time(1), TypedValue::Integer(1)),
            (Value::Bool(true), TypedValue::Integer(1)),
            (Value::Thousandths(1_050), TypedValue::Text("1.050")),
            (Value::Bytes(b"a'\n"), TypedValue::Text("a'\n")),
            (Value::Bytes(b"\xff"), TypedValue::Bytes(b"\xff")),
            (Value::Bits(0b10010, FLAGS), TypedValue::Text("syn,ack")),
            (Value::Addr(v6), TypedValue::Text("2001:db8::1")),
            (Value::Endpoint(v6, Some(53)), TypedValue::Text("[2001:db8::1]:53")),
            (Value::Endpoint(v6, None), TypedValue::Text("2001:db8::1")),
            (Value::Owners(&[]), TypedValue::Text("[]")),
        ] {
            let mut out = Vec::new();
            put_cell(cell, &mut Vec::new(), &mut out);
            assert_eq!(TypedValues::of(&out).collect::<Vec<_>>(), [expected], "{cell:?}");
        }
    }

    #[test]
    fn the_view_takes_the_columns_that_are_there() {
        let of = |names: &[&str]| {
            let fields = LogRecords::FIELDS.iter().filter(|field| names.contains(&field.name));
            ulog_pkt(&Columns(fields.map(|f| Column { name: f.name.into(), kind: f.kind }).collect()))
        };
        let all = of(&["time", "len", "payload_bytes"]);
        assert!(
            all.starts_with("SELECT payload_bytes AS raw_pktlen, NULL AS oob_prefix, time / 1000000000 AS "),
            "{all}"
        );
        assert!(of(&["len"]).starts_with("SELECT len AS raw_pktlen, NULL AS oob_prefix, NULL AS oob_time_sec"));
    }
}
