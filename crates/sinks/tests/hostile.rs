//! Text from outside cannot forge a row, a field or a terminal command in any format, and can be read back.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use record::{Accounting, Addr, Column, Columns, Comm, Kind, Next, Owner, Sink, Value};
use sinks::{Csv, FormatOptions, Json, Out, TableWriter, Text};

fn columns() -> Columns {
    let kinds = [("process", Kind::Text), ("n", Kind::Count), ("addr", Kind::Addr), ("owners", Kind::Owners)];
    Columns(kinds.iter().map(|&(name, kind)| Column { name: name.into(), kind }).collect())
}

/// One row of outside bytes.
#[derive(Debug, Clone)]
struct Hostile {
    text: Option<Vec<u8>>,
    n: u64,
    addr: [u8; 16],
    comm: Vec<u8>,
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let bytes = || {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..60),
            "[\\PC\t\n\r\",\\\\-]{0,20}".prop_map(String::into_bytes),
            Just("\u{202e}\u{200b}\u{9b}".as_bytes().to_vec()),
        ]
    };
    (proptest::option::of(bytes()), any::<u64>(), any::<[u8; 16]>(), bytes())
        .prop_map(|(text, n, addr, comm)| Hostile { text, n, addr, comm })
}

fn write(sink: &mut dyn Sink, rows: &[Hostile]) {
    sink.begin(&columns(), None).unwrap();
    for row in rows {
        let owners = [Owner { pid: 1, fd: 2, process: Comm::new(&row.comm), started: 0 }];
        let cells = [
            Value::text(row.text.as_deref()),
            Value::U64(row.n),
            Value::Addr(Addr::V6(row.addr)),
            Value::Owners(&owners),
        ];
        assert_eq!(sink.row(&cells).unwrap(), Next::More);
    }
    sink.end(&Accounting::default()).unwrap();
}

/// Reverses `record::text::put_text`.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        match escaped {
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Some('n') => out.push(b'\n'),
            Some('t') => out.push(b'\t'),
            Some('x') => {
                let digits: String = rest.by_ref().take(2).collect();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            Some('u') => {
                let digits: String = rest.by_ref().skip(1).take_while(|&c| c != '}').collect();
                let c = char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap();
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Some(other) => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

/// A field of CSV, with true if it was quoted.
type CsvField = (bool, String);

/// Parses CSV strictly by RFC 4180, except that records end in LF: quotation marks may only enclose whole fields.
fn read_csv(text: &str) -> Vec<Vec<CsvField>> {
    let mut records = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut record = Vec::new();
        loop {
            let (field, after) = read_csv_field(rest);
            record.push(field);
            if let Some(next) = after.strip_prefix(',') {
                rest = next;
                continue;
            }
            rest = after.strip_prefix('\n').unwrap();
            break;
        }
        records.push(record);
    }
    records
}

fn read_csv_field(text: &str) -> (CsvField, &str) {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\r', '\n', '"']).unwrap();
        return ((false, text[..end].to_owned()), &text[end..]);
    };
    let mut field = String::new();
    loop {
        let (part, after) = rest.split_once('"').unwrap();
        field.push_str(part);
        let Some(doubled) = after.strip_prefix('"') else {
            return ((true, field), after);
        };
        field.push('"');
        rest = doubled;
    }
}

proptest! {
    #[test]
    fn csv_reads_back(rows in proptest::collection::vec(hostile(), 0..8)) {
        let mut sink = Csv::new(Out::new(Vec::new()), FormatOptions { header: false, ..FormatOptions::default() });
        write(&mut sink, &rows);
        let text = String::from_utf8(sink.into_out().into_inner()).unwrap();
        let records = read_csv(&text);
        prop_assert_eq!(records.len(), rows.len());
        for (record, row) in records.iter().zip(&rows) {
            prop_assert_eq!(record.len(), 4);
            let (quoted, field) = &record[0];
            match &row.text {
                None => prop_assert!(!quoted && field.is_empty()),
                Some(bytes) => {
                    prop_assert!(*quoted || !bytes.is_empty());
                    prop_assert!(!field.starts_with(['=', '+', '-', '@', '\t', '\r']));
                    prop_assert_eq!(&unescape(field.strip_prefix('\'').unwrap_or(field)), bytes);
                }
            }
            prop_assert_eq!(record[1].1.parse::<u64>().unwrap(), row.n);
            prop_assert_eq!(record[2].1.parse::<Addr>().unwrap(), Addr::V6(row.addr));
            let name = record[3].1.strip_suffix("[1].2").unwrap();
            prop_assert!(!name.contains([',', '[', ']']));
            let name = name.strip_prefix('\'').unwrap_or(name);
            let want = Comm::new(&row.comm);
            prop_assert_eq!(unescape(name), want.as_bytes());
        }
    }

    #[test]
    fn text_reads_back(rows in proptest::collection::vec(hostile(), 0..8)) {
        let mut sink = Text::new(Out::new(Vec::new()), FormatOptions { header: false, ..FormatOptions::default() });
        write(&mut sink, &rows);
        let text = String::from_utf8(sink.into_out().into_inner()).unwrap();
        let lines: Vec<&str> = text.split_terminator('\n').collect();
        prop_assert_eq!(lines.len(), rows.len());
        for (line, row) in lines.iter().zip(&rows) {
            let fields: Vec<&str> = line.split('\t').collect();
            prop_assert_eq!(fields.len(), 4);
            match &row.text {
                None => prop_assert_eq!(fields[0], "-"),
                Some(bytes) => {
                    prop_assert_ne!(fields[0], "-");
                    prop_assert_eq!(&unescape(fields[0]), bytes);
                }
            }
            prop_assert!(!line.chars().any(|c| c.is_control() && c != '\t'));
        }
    }

    #[test]
    fn json_reads_back(rows in proptest::collection::vec(hostile(), 0..8)) {
        let mut sink = Json::new(Out::new(Vec::new()), FormatOptions::default());
        write(&mut sink, &rows);
        let text = String::from_utf8(sink.into_out().into_inner()).unwrap();
        prop_assert_eq!(text.lines().count(), rows.len());
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
        for (line, row) in text.lines().zip(&rows) {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            let as_json = |bytes: &[u8]| serde_json::Value::from(String::from_utf8_lossy(bytes));
            let want = row.text.as_deref().map_or(serde_json::Value::Null, as_json);
            prop_assert_eq!(&object["process"], &want);
            prop_assert_eq!(object["n"].as_u64(), Some(row.n));
            prop_assert_eq!(object["addr"].as_str().unwrap().parse::<Addr>().unwrap(), Addr::V6(row.addr));
            prop_assert_eq!(&object["owners"][0]["process"], &as_json(Comm::new(&row.comm).as_bytes()));
            prop_assert_eq!(object["owners"][0]["pid"].as_u64(), Some(1));
        }
    }

    #[test]
    fn the_table_has_one_line_a_row_and_no_control_character(rows in proptest::collection::vec(hostile(), 0..8)) {
        let mut sink = TableWriter::new(Out::new(Vec::new()), FormatOptions::default());
        write(&mut sink, &rows);
        let text = String::from_utf8(sink.into_out().into_inner()).unwrap();
        prop_assert_eq!(text.split_terminator('\n').count(), rows.len() + 1);
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
    }
}
