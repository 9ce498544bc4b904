//! The table within the width of a terminal: hostile and wide names at three sizes.
#![allow(clippy::unwrap_used)]

use record::rows::Sockets;
use record::{Accounting, Addr, Column, Columns, Comm, Kind, Next, Owner, Sink, Table, Value};
use sinks::LocalTime;
use sinks::{FormatOptions, LocalClock, Out, TableRoom, TableWriter, width_of};

/// Columns of the three terminals.
const WIDTHS: [usize; 3] = [80, 120, 200];

const KEEPS: [&str; 4] = ["process", "peer_addr", "state", "local_port"];

fn columns(kinds: &[(&str, Kind)]) -> Columns {
    Columns(kinds.iter().map(|&(name, kind)| Column { name: name.into(), kind }).collect())
}

fn socket_columns() -> Columns {
    let names = ["proto", "state", "recv_q", "local_addr", "local_port", "peer_addr", "rtt_us", "path", "process"];
    let field = |name: &&str| Sockets::FIELDS.iter().find(|field| field.name == *name).unwrap();
    Columns(names.iter().map(field).map(|field| Column { name: field.name.into(), kind: field.kind }).collect())
}

/// Names that attack terminals, wide ones, ones with combining characters, and long ones.
fn names() -> Vec<Vec<u8>> {
    vec![
        b"nginx".to_vec(),
        b"\x1b[2J\x1b]0;owned\x07sh".to_vec(),
        "データベース管理者の長い名前のプロセス".as_bytes().to_vec(),
        "e\u{301}\u{302}\u{303}".repeat(40).into_bytes(),
        "evil\u{202e}gpj.exe".as_bytes().to_vec(),
        vec![0xff; 30],
        format!("/run/{}/socket", "p".repeat(116)).into_bytes(),
        b"k8s_POD_coredns-5d78c9869d-abcde_kube-system_0123456789abcdef0123456789abcdef_0".to_vec(),
        b"back\\slash\\\\\\\\\\\\\\\\\\\\\\\\\\\\end".to_vec(),
        b"-".to_vec(),
    ]
}

fn row(name: &[u8], n: u64) -> Vec<Value<'_>> {
    let peer = if n % 2 == 0 { Addr::V4([198, 51, 100, 7]) } else { Addr::V6([0xfd; 16]) };
    vec![
        Value::Name("tcp"),
        Value::Name(if n % 3 == 0 { "listen" } else { "established" }),
        Value::U64(n * 123_456),
        Value::Addr(Addr::V4([192, 0, 2, 200])),
        Value::U64(443),
        Value::Addr(peer),
        Value::U64(n * 999),
        Value::Bytes(name),
        Value::Bytes(name),
    ]
}

fn clock() -> LocalClock {
    let local = |seconds: i64| {
        let part = |n: i64| u8::try_from(n).unwrap_or(0);
        let (hour, minute, second) = (part(seconds / 3600 % 24), part(seconds / 60 % 60), part(seconds % 60));
        Some(LocalTime { year: 2026, month: 11, day: 24, hour, minute, second, weekday: 2, utc_offset_s: 0 })
    };
    LocalClock { now_s: || 0, local }
}

fn drawn(room: TableRoom, columns: &Columns, rows: &[Vec<Value<'_>>]) -> String {
    let options = FormatOptions::default();
    let mut sink = TableWriter::new(Out::new(Vec::new()), options).with_room(Some(room)).for_people(Some(clock()));
    sink.begin(columns, None).unwrap();
    for row in rows {
        assert_eq!(sink.row(row).unwrap(), Next::More);
    }
    sink.end(&Accounting::default()).unwrap();
    String::from_utf8(sink.into_out().into_inner()).unwrap()
}

fn room(width: usize) -> TableRoom {
    TableRoom { width, keeps: KEEPS.to_vec(), can_be_named: true, see_by: "-o plain | less -S", ..TableRoom::default() }
}

#[track_caller]
fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(width_of(line) <= width, "{} columns of {width}: {line}", width_of(line));
        assert!(!line.ends_with(' '), "blanks at the end: {line:?}");
        assert!(!line.contains(['\x1b', '\x07', '\u{202e}']), "{line:?}");
    }
}

/// Compares with the file; `SNAPSHOTS=overwrite` stores the new text.
#[track_caller]
fn same_as_golden(text: &str, width: usize) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/terminal-{width}.txt"));
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        std::fs::write(&file, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap());
}

#[test]
fn hostile_and_wide_names_at_three_sizes() {
    let names = names();
    let rows: Vec<Vec<Value<'_>>> = names.iter().zip(0..).map(|(name, n)| row(name, n)).collect();
    for width in WIDTHS {
        let text = drawn(room(width), &socket_columns(), &rows);
        fits(&text, width);
        same_as_golden(&text, width);
    }
}

/// A cell after the sample is cut where its column ends, unless there is room after the last column.
#[test]
fn later_rows_fit_too() {
    let columns = columns(&[("process", Kind::Text), ("count", Kind::Count), ("path", Kind::Text)]);
    let short: Vec<Value<'_>> = vec![Value::Bytes(b"sh"), Value::U64(1), Value::Bytes(b"/a")];
    let name = "n".repeat(300);
    let long: Vec<Value<'_>> =
        vec![Value::Bytes(name.as_bytes()), Value::U64(u64::MAX), Value::Bytes("日本".as_bytes())];
    let mut rows = vec![short; 200];
    rows.push(long);
    for width in 1..130 {
        let text = drawn(room(width), &columns, &rows);
        fits(&text, width);
        assert!(text.contains('…'), "{width}");
    }
}

/// Every kind of cell, in tables of any width.
#[test]
fn no_cell_of_any_kind_makes_a_line_too_wide() {
    let owners =
        [Owner { pid: 4_194_304, fd: 1_048_576, process: Comm::new("データ[ベ,ース".as_bytes()), started: 0 }; 9];
    let cells = [
        ("owners", Kind::Owners, Value::Owners(&owners)),
        ("seen_at", Kind::Time, Value::Time(1_795_000_000_123_456_789)),
        ("endpoint", Kind::Endpoint, Value::Endpoint(Addr::V6([0xfd; 16]), Some(65_535))),
        ("some_duration_us", Kind::DurationUs, Value::U64(u64::MAX)),
        ("pacing_bps", Kind::BitsPerSecond, Value::U64(u64::MAX)),
        ("delta", Kind::Bytes, Value::I64(i64::MIN)),
        ("times", Kind::Thousandths, Value::Thousandths(u64::MAX)),
        ("mark", Kind::Hex, Value::U64(u64::MAX)),
        ("flags", Kind::Words(&[]), Value::Words("日本,\x1b,long,words".as_bytes())),
    ];
    let columns = columns(&cells.map(|(name, kind, _)| (name, kind)));
    let row: Vec<Value<'_>> = cells.iter().map(|(.., value)| *value).collect();
    for width in 1..300 {
        fits(&drawn(room(width), &columns, std::slice::from_ref(&row)), width);
    }
    let text = drawn(room(300), &columns, std::slice::from_ref(&row));
    assert!(text.contains("some_duration") && !text.contains("duration_us"), "{text}");
}

#[test]
fn the_last_line_names_the_columns_that_left() {
    let columns = socket_columns();
    let rows = [row(b"nginx", 1)];
    let text = drawn(room(60), &columns, &rows);
    let said = text.lines().skip_while(|line| !line.starts_with("column")).collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("; keep one with --columns +") && said.ends_with("; show all with -o plain | less -S"),
        "{text}"
    );
    let named = TableRoom { named: vec!["path"], ..room(60) };
    assert!(drawn(named, &columns, &rows).contains("  path"), "a column that is named stays");
    let groups = TableRoom { can_be_named: false, see_by: "", ..room(60) };
    assert!(!drawn(groups, &columns, &rows).contains("--columns"));
}
