#![allow(clippy::unwrap_used)]
use super::*;
use record::Addr;

const FLAGS: &[&str] = &["fin", "syn", "rst", "psh", "ack"];

/// A SYN to port 22 that a rule drops.
fn syn() -> Vec<Value<'static>> {
    vec![
        Value::Time(3_723_000_000_000),
        Value::Bytes(b"web"),
        Value::Name("in"),
        Value::Name("tcp"),
        Value::Addr(Addr::V4([10, 1, 2, 3])),
        Value::Addr(Addr::V4([10, 0, 0, 1])),
        Value::U64(22),
        Value::Bits(2, FLAGS),
        Value::Null,
        Value::U64(0x800),
        Value::Name("input"),
        Value::Bytes(b"fw: "),
        Value::Bytes(b"inet filter"),
        Value::Bytes(b"input"),
        Value::U64(12),
        Value::Bytes(b"no ssh"),
        Value::Name("drop"),
        Value::U64(1),
    ]
}

fn with(changes: &[(&str, Value<'static>)]) -> Vec<Value<'static>> {
    let mut cells = syn();
    for (name, value) in changes {
        cells[LOG_TAIL_COLUMNS.iter().position(|column| column == name).unwrap()] = *value;
    }
    cells
}

fn written(options: LogTailOptions, rows: &[Vec<Value<'_>>]) -> String {
    let mut bytes = Vec::new();
    let mut tail = LogTail::new(Out::new(&mut bytes), options);
    tail.begin(&Columns::default(), None).unwrap();
    rows.iter().for_each(|row| assert_eq!(tail.row(row).unwrap(), Next::More));
    tail.flush().unwrap();
    tail.end(&Accounting::default()).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn options(width: Option<usize>, color: bool) -> LogTailOptions {
    let clock = |seconds: u64| Some([(seconds / 3600 % 24) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8]);
    LogTailOptions { color, width, with_netns: false, clock }
}

fn in_pipe(rows: &[Vec<Value<'_>>]) -> String {
    written(options(None, false), rows)
}

#[test]
fn a_record_in_words() {
    let syn_line =
        "01:02:03 in 10.1.2.3 → 10.0.0.1:22 tcp SYN dropped by \"fw: \" (inet filter input #12 \"no ssh\")\n";
    assert_eq!(in_pipe(&[syn()]), syn_line);
    let (v6, none) = (Value::Addr(Addr::V6([0x20; 16])), Value::Null);
    for (changes, line) in [
        (
            &[("dst", v6), ("rule_verdict", none), ("rule_handle", none), ("rule_comment", none)][..],
            "in 10.1.2.3 → [2020:2020:2020:2020:2020:2020:2020:2020]:22 tcp SYN logged by \"fw: \" (inet filter input)",
        ),
        (
            &[
                ("proto", Value::Name("icmp")),
                ("dport", none),
                ("tcp_flags", none),
                ("icmp_type", Value::U64(8)),
                ("rule_verdict", Value::Name("accept")),
                ("prefix", none),
                ("rule_table", none),
                ("rule_chain", none),
                ("rule_handle", none),
                ("rule_comment", none),
            ],
            "in 10.1.2.3 → 10.0.0.1 icmp echo request accepted by group 1",
        ),
        (
            &[("src", none), ("direction", none), ("ether_type", Value::U64(0x806)), ("rule_verdict", none)],
            "input arp logged by \"fw: \" (inet filter input #12 \"no ssh\")",
        ),
    ] {
        assert_eq!(in_pipe(&[with(changes)]), format!("01:02:03 {line}\n"));
    }
}

#[test]
fn text_from_outside_stays_in_its_quotes() {
    let hostile =
        [("prefix", Value::Bytes(b"x\" (a\n\x1b[2J\\")), ("rule_comment", Value::Bytes(b"\xff\xe2\x80\xae\""))];
    let line = in_pipe(&[with(&hostile)]);
    assert!(line.contains(r#" dropped by "x\" (a\n\x1b[2J\\" (inet filter input #12 "\xff\u{202e}\"")"#), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn the_same_again_is_counted() {
    let at =
        |seconds: u64, port: u64| with(&[("time", Value::Time(seconds * 1_000_000_000)), ("dport", Value::U64(port))]);
    let text = in_pipe(&[at(1, 22), at(2, 22), at(3, 22), at(4, 80)]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[1]), (3, "00:00:03 repeated ×2"), "{text}");
    assert!(lines[0].starts_with("00:00:01") && lines[2].contains(":80 "), "{text}");
    let text = in_pipe(&[at(1, 22), at(5, 22), at(11, 22), at(12, 22)]);
    assert_eq!(text.matches("repeated").count(), 2, "told after ten seconds, and at the end: {text}");
}

#[test]
fn on_a_terminal_the_count_stands_in_the_line() {
    let text = written(options(Some(80), true), &[syn(), syn(), syn(), with(&[("dport", Value::U64(80))])]);
    let first = "01:02:03 \x1b[31min 10.1.2.3 → 10.0.0.1:22 tcp SYN dropped by";
    assert!(text.starts_with(first), "{text:?}");
    let lines: Vec<&str> = text.split('\n').collect();
    assert_eq!(lines.len(), 3, "{text:?}");
    assert!(lines[1].contains(":80 ") && lines[2].is_empty(), "{text:?}");
    let plain = written(options(Some(80), false), &[syn(), syn()]);
    assert!(plain.contains("\r01:02:03") && plain.contains("… ×2\x1b[K\n"), "{plain:?}");
    for line in plain.split(['\r', '\n']) {
        assert!(line.replace("\x1b[K", "").chars().count() < 80, "{line:?}");
    }
    assert!(!plain.contains("\x1b[3"), "without colour");
}
