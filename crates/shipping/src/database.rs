//! Writes rows as typed values, for database tables and for OpenTelemetry.

use super::row_writer::{RowWriter, Shipped};
use super::tuning::UlogdTuning;
use export::{Address, ColumnType, Format, TABLE_PLACE, TableShape, Target, TypedValue, put_typed};
use record::rows::{LogRecord, LogRecords};
use record::text::{put_addr, put_far_time, put_i64, put_timestamp, put_u64};
use record::{Columns, Kind, Lookups, RowCells, Value};
use sinks::ulogd::{KEYS, KeyValue, KeyValues, UlogdStyle};

/// Makes messages from the cells of rows.
struct TypedRows {
    shape: TableShape,
    /// The shape's id, which starts each row.
    id: i64,
    /// Buffer for a cell's text.
    text: Vec<u8>,
}

/// The writer for rows of `table`. The table and its columns have netwren's names, unless the target names another
/// table. Bytes that are not UTF-8 remain bytes.
pub(super) fn writer<T: Shipped>(table: &str, target: &Target, columns: &Columns) -> Box<dyn RowWriter<T>> {
    let named = match &target.address {
        Address::Postgres(address) => address.table.clone(),
        Address::ClickHouse(address) => address.table.clone(),
        _ => None,
    };
    let view = match target.format {
        _ if table != "log" => None,
        // They have no programs that expect the tables of ulogd2.
        Format::ClickHouse | Format::Otlp => None,
        Format::Postgres => Some(("ulog".to_owned(), select(ULOG, columns))),
        _ => Some(("ulog_pkt".to_owned(), select(ULOG_PKT, columns))),
    };
    let shape = TableShape {
        name: named.unwrap_or_else(|| table.to_owned()),
        columns: columns.0.iter().map(|column| (column.name.to_string(), column_type(column.kind))).collect(),
        view,
        procedure: None,
    };
    Box::new(TypedRows { id: shape.id(), shape, text: Vec::new() })
}

/// Rows for the tables of ulogd2's SQLITE3 and PGSQL, with all keys that their columns may be named after.
struct UlogdRows {
    shape: TableShape,
    id: i64,
    values: KeyValues,
}

/// The writer for a table created for ulogd2.
pub(super) fn ulogd_writer(tuning: &UlogdTuning, style: UlogdStyle) -> Box<dyn RowWriter<LogRecords>> {
    let columns = KEYS.iter().map(|key| (key.replace('.', "_"), ColumnType::Text)).collect();
    let procedure = Some(tuning.procedure.clone());
    let shape = TableShape { name: tuning.table.clone(), columns, view: None, procedure };
    Box::new(UlogdRows { id: shape.id(), shape, values: KeyValues::new(tuning.stages, style) })
}

impl RowWriter<LogRecords> for UlogdRows {
    fn file_header(&mut self) -> Vec<u8> {
        self.shape.to_header()
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        put_typed(out, TypedValue::Integer(self.id));
        for value in self.values.values_of(row, lookups) {
            match value {
                KeyValue::Nothing => put_typed(out, TypedValue::Null),
                KeyValue::Number(n) => put_typed(out, TypedValue::Integer(i64::try_from(n).unwrap_or(i64::MAX))),
                KeyValue::Text(text) => put_bytes(text, out),
            }
        }
    }
}

fn column_type(kind: Kind) -> ColumnType {
    match kind {
        Kind::Thousandths => ColumnType::Real,
        Kind::Time => ColumnType::Time,
        Kind::Bool => ColumnType::Flag,
        Kind::Addr => ColumnType::Address,
        kind if kind.is_number() => ColumnType::Integer,
        _ => ColumnType::Text,
    }
}

/// A column of a view: its name, netwren's columns of which it shows the first that exists, and an expression in which
/// `$` is that column. If none exists, the view's column is null; a constant names no columns.
type ViewColumn = (&'static str, &'static [&'static str], &'static str);

const HOOKS: &str = "CASE $ WHEN 'prerouting' THEN 0 WHEN 'input' THEN 1 WHEN 'forward' THEN 2 WHEN 'output' THEN 3 \
                     WHEN 'postrouting' THEN 4 WHEN 'ingress' THEN 0 WHEN 'egress' THEN 1 END";

/// The table that ulogd2's SQLITE3 ships (sqlite3.table). Its mark and prefix are never null.
const ULOG_PKT: &[ViewColumn] = &[
    ("raw_pktlen", &["payload_bytes", "len"], "$"),
    ("oob_prefix", &["prefix"], "coalesce($, '')"),
    ("oob_time_sec", &["time"], "$ / 1000000000"),
    ("oob_time_usec", &["time"], "$ / 1000 % 1000000"),
    ("oob_mark", &["mark"], "coalesce($, 0)"),
    ("oob_hook", &["hook"], HOOKS),
    ("oob_uid", &["uid"], "$"),
    ("oob_gid", &["gid"], "$"),
    ("raw_pktcount", &[], "1"),
];

/// The view of ulogd2's schema for PGSQL (pgsql-ulogd2.sql), as far as netwren's columns can fill it.
const ULOG: &[ViewColumn] = &[
    ("oob_time_sec", &["time"], "floor(extract(epoch FROM $))::integer"),
    ("oob_time_usec", &["time"], "(extract(microseconds FROM $)::bigint % 1000000)::integer"),
    ("oob_hook", &["hook"], HOOKS),
    ("oob_prefix", &["prefix"], "coalesce($, '')"),
    ("oob_mark", &["mark"], "coalesce($, 0)"),
    ("oob_in", &["iif"], "$"),
    ("oob_out", &["oif"], "$"),
    (
        "oob_family",
        &["family"],
        "CASE $ WHEN 'ip' THEN 2 WHEN 'ip6' THEN 10 WHEN 'bridge' THEN 7 WHEN 'arp' THEN 3 END",
    ),
    ("ip_saddr_str", &["src"], "$"),
    ("ip_daddr_str", &["dst"], "$"),
    ("ip_protocol", &["proto_number"], "$"),
    ("ip_tos", &["tos"], "$"),
    ("ip_ttl", &["ttl"], "$"),
    ("ip_totlen", &["len"], "$"),
    ("ip_id", &["ip_id"], "$"),
    ("tcp_sport", &["sport"], TCP),
    ("tcp_dport", &["dport"], TCP),
    ("tcp_seq", &["tcp_seq"], "$"),
    ("tcp_ackseq", &["tcp_ack"], "$"),
    ("tcp_window", &["tcp_window"], "$"),
    ("tcp_urg", &["tcp_flags"], "'urg' = ANY(string_to_array($, ','))"),
    ("tcp_ack", &["tcp_flags"], "'ack' = ANY(string_to_array($, ','))"),
    ("tcp_psh", &["tcp_flags"], "'psh' = ANY(string_to_array($, ','))"),
    ("tcp_rst", &["tcp_flags"], "'rst' = ANY(string_to_array($, ','))"),
    ("tcp_syn", &["tcp_flags"], "'syn' = ANY(string_to_array($, ','))"),
    ("tcp_fin", &["tcp_flags"], "'fin' = ANY(string_to_array($, ','))"),
    ("udp_sport", &["sport"], "CASE \"proto\" WHEN 'udp' THEN $ END"),
    ("udp_dport", &["dport"], "CASE \"proto\" WHEN 'udp' THEN $ END"),
    ("icmp_type", &["icmp_type"], "CASE \"proto\" WHEN 'icmp' THEN $ END"),
    ("icmp_code", &["icmp_code"], "CASE \"proto\" WHEN 'icmp' THEN $ END"),
    ("oob_uid", &["uid"], "$"),
    ("oob_gid", &["gid"], "$"),
    ("raw_pktlen", &["payload_bytes", "len"], "$"),
    ("raw_pktcount", &[], "1"),
];

const TCP: &str = "CASE \"proto\" WHEN 'tcp' THEN $ END";

/// The SELECT that shows rows under ulogd2's names.
fn select(view: &[ViewColumn], columns: &Columns) -> String {
    let is_there = |name: &str| columns.0.iter().any(|column| &*column.name == name);
    let column = |(theirs, ours, how): &ViewColumn| {
        let first = ours.iter().find(|name| is_there(name));
        let lacks_proto = how.contains("\"proto\"") && !is_there("proto");
        let shown = match first {
            Some(name) if !lacks_proto => how.replace('$', &format!("\"{name}\"")),
            None if ours.is_empty() => (*how).to_owned(),
            _ => "NULL".to_owned(),
        };
        format!("{shown} AS {theirs}")
    };
    let columns: Vec<String> = view.iter().map(column).collect();
    format!("SELECT {} FROM {TABLE_PLACE}", columns.join(", "))
}

impl<T: Shipped> RowWriter<T> for TypedRows {
    fn file_header(&mut self) -> Vec<u8> {
        self.shape.to_header()
    }

    fn write(&mut self, _: &T::Row<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>, out: &mut Vec<u8>) {
        put_typed(out, TypedValue::Integer(self.id));
        for cell in cells.all_cells() {
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
        Value::U64(n) | Value::Time(n) if i64::try_from(n).is_ok() => {
            return put_typed(out, TypedValue::Integer(n as i64));
        }
        // Larger numbers do not fit SQL's integers.
        Value::U64(n) => put_u64(text, n),
        Value::Time(ns) => put_timestamp(text, ns),
        Value::FarTime(time) => match i64::try_from(time.nanoseconds()) {
            Ok(ns) => return put_typed(out, TypedValue::Integer(ns)),
            Err(_) => put_far_time(text, time),
        },
        Value::Name(word) | Value::Guess(word) => return put_typed(out, TypedValue::Text(word)),
        Value::Bytes(bytes) | Value::FirstOf(bytes, _) => return put_bytes(bytes, out),
        Value::Addr(addr) => put_addr(text, addr),
        // The address types of databases have no place for an interface.
        Value::LinkAddr(link) => put_addr(text, link.addr()),
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
        Value::Endpoint(..) | Value::Prefix(..) | Value::Owners(_) | Value::List(_) | Value::Object(_) => {
            sinks::put_json_value(text, cell);
            // Endpoints and networks are JSON strings without escapes.
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
            (Value::Time(u64::MAX), TypedValue::Text("2554-07-21T23:34:33.709551615Z")),
            (Value::time(-5), TypedValue::Integer(-5)),
            (Value::time(253_402_300_799_000_000_000), TypedValue::Text("9999-12-31T23:59:59.000000000Z")),
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
            assert_eq!(TypedValues::from_bytes(&out).collect::<Vec<_>>(), [expected], "{cell:?}");
        }
    }

    #[test]
    fn the_view_takes_the_columns_that_are_there() {
        let of = |names: &[&str]| {
            let fields = LogRecords::FIELDS.iter().filter(|field| names.contains(&field.name));
            select(ULOG_PKT, &Columns(fields.map(|f| Column { name: f.name.into(), kind: f.kind }).collect()))
        };
        let all = of(&["time", "len", "payload_bytes"]);
        assert!(
            all.starts_with("SELECT \"payload_bytes\" AS raw_pktlen, NULL AS oob_prefix, \"time\" / 1000000000 AS "),
            "{all}"
        );
        assert!(of(&["len"]).starts_with("SELECT \"len\" AS raw_pktlen, NULL AS oob_prefix, NULL AS oob_time_sec"));
    }
}
