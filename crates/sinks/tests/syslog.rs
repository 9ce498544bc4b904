//! Syslog messages can be read back as the rows that they were, for any contents.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use record::rows::LogRecord;
use record::{Addr, Column, Columns, Kind, Lookups, RowCells, Value};
use sinks::syslog::{Message, Origin, Priority, Rfc3164, Rfc5424, frame_line, frame_octets};
use sinks::ulogd::{Logemu, UlogdStyle};
use sinks::{Clock, LocalTime};

fn columns() -> Columns {
    let kinds = [
        ("time", Kind::Time),
        ("prefix", Kind::Text),
        ("iif", Kind::Text),
        ("dst", Kind::Addr),
        ("dport", Kind::Port),
        ("tcp_flags", Kind::Words(FLAGS)),
        ("mark", Kind::Hex),
    ];
    Columns(kinds.iter().map(|&(name, kind)| Column { name: name.into(), kind }).collect())
}

const FLAGS: &[&str] = &["fin", "syn", "rst", "psh", "ack"];

fn origin() -> Origin<'static> {
    Origin { hostname: "fw1.example", pid: 7, priority: Priority::default() }
}

const TIME_NS: u64 = 1_795_265_034_699_260_123;

fn cells<'r>(prefix: &'r [u8], iif: &'r [u8]) -> [Value<'r>; 7] {
    let dst = Addr::V6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    [
        Value::Time(TIME_NS),
        Value::nonempty(prefix),
        Value::nonempty(iif),
        Value::Addr(dst),
        Value::U64(443),
        Value::Bits(0b10010, FLAGS),
        Value::U64(0xff),
    ]
}

fn message<'m>(cells: &'m [Value<'m>], text: Option<&'m [u8]>) -> Message<'m> {
    Message { time_ns: TIME_NS, sequence_id: 1, msgid: "input", cells, text }
}

fn written(table: &str, message: &Message<'_>) -> String {
    let mut out = Vec::new();
    Rfc5424::new(&origin(), table, &columns()).put(message, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_log_record_by_example() {
    let cells = cells(b"in \"a]\": ", b"eth0");
    let text = b"in: IN=eth0 OUT= MARK=0xff ";
    assert_eq!(
        written("log", &message(&cells, Some(text))),
        "<29>1 2026-11-21T12:43:54.699260Z fw1.example netwren 7 input [nflog@32473 prefix=\"in \\\"a\\]\\\": \" \
         in=\"eth0\" dst=\"2001:db8::1\" dport=\"443\" tcp_flags=\"syn,ack\" mark=\"0xff\"][meta sequenceId=\"1\"] \
         in: IN=eth0 OUT= MARK=0xff "
    );
}

#[test]
fn a_text_that_is_appended_is_the_same_as_one_that_is_copied() {
    let cells = cells(b"in: ", b"eth0");
    let mut writer = Rfc5424::new(&origin(), "log", &columns());
    for text in [&b""[..], b"\n", b"x", b"x\n", b"a\\b\x01\n", b"\xff", "\u{fc}\n".as_bytes(), &[b'y'; 300]] {
        let (mut copied, mut appended) = (Vec::from(b"before"), Vec::from(b"before"));
        writer.put(&message(&cells, Some(text)), &mut copied);
        let put = |_: &mut dyn RowCells, out: &mut Vec<u8>| out.extend_from_slice(text);
        writer.put_with(&message(&cells, None), &mut &cells[..], &mut appended, put);
        assert_eq!(String::from_utf8_lossy(&appended), String::from_utf8_lossy(&copied));
    }
}

proptest! {
    /// The text of a log record is one line for any prefix, and is not checked again.
    #[test]
    fn the_text_of_log_records_is_a_line(
        bytes in prop::collection::vec(any::<u8>(), 0..60), text in ".{0,30}", is_text: bool, bug_compatible: bool,
    ) {
        let prefix = if is_text { text.as_bytes() } else { &bytes };
        let row = LogRecord { time_ns: TIME_NS, prefix, hw_header: &bytes, ..LogRecord::default() };
        let mut logemu = Logemu::new(b"", UlogdStyle { zone: |_| None, bug_compatible });
        let mut writer = Rfc5424::new(&origin(), "log", &columns());
        let cells = cells(b"in: ", b"eth0");
        let mut written = |is_line| {
            let mut out = Vec::new();
            let put = |_: &mut dyn RowCells, out: &mut Vec<u8>| logemu.write_message(&row, &Lookups::empty(), out);
            let (message, cells) = (message(&cells, None), &mut &cells[..]);
            match is_line {
                true => _ = writer.put_with_line(&message, cells, &mut out, put),
                false => writer.put_with(&message, cells, &mut out, put),
            }
            out
        };
        prop_assert_eq!(written(true), written(false));
    }
}

#[test]
fn any_table_has_its_cells_as_text() {
    let cells = cells(b"a b\"=\x1b", b"eth0");
    let expected = "[nat_events@32473 prefix=\"a b\\\"=\\\\x1b\" iif=\"eth0\" dst=\"2001:db8::1\" dport=\"443\" \
                    tcp_flags=\"syn,ack\" mark=\"0xff\"][meta sequenceId=\"1\"] prefix=\"a b\\\"=\\x1b\" iif=eth0 \
                    dst=2001:db8::1 dport=443 tcp_flags=syn,ack mark=0xff";
    let line = written("nat_events", &message(&cells, None));
    assert_eq!(line.split_once(" input ").unwrap().1, expected);
}

#[test]
fn what_is_not_there_is_left_out() {
    let mut origin = origin();
    origin.hostname = "";
    let mut writer = Rfc5424::new(&origin, "log", &columns());
    let mut line = |sequence_id, text| {
        let mut out = Vec::new();
        let message = Message { time_ns: 0, sequence_id, msgid: "", cells: &[Value::Null; 7], text: Some(text) };
        writer.put(&message, &mut out);
        String::from_utf8(out).unwrap()
    };
    let head = "<29>1 1970-01-01T00:00:00.000000Z - netwren 7 - [nflog@32473]";
    assert_eq!(line(0x7fff_ffff, b""), format!("{head}[meta sequenceId=\"2147483647\"]"));
    assert_eq!(line(0x8000_0000, b"\n"), format!("{head}[meta sequenceId=\"1\"]"), "numbers begin anew");
    assert_eq!(line(2, b"x\n"), format!("{head}[meta sequenceId=\"2\"] x"));
}

/// A local time one hour and 500 seconds ahead of UTC.
struct Ahead;

impl Clock for Ahead {
    fn now_s(&self) -> i64 {
        0
    }
    fn local(&self, seconds: i64) -> Option<LocalTime> {
        let time = seconds + 4100;
        let of = |unit: i64, most: i64| u8::try_from(time / unit % most).unwrap();
        let (hour, minute, second) = (of(3600, 24), of(60, 60), of(1, 60));
        let day = if time > 86_400 { 21 } else { 1 };
        Some(LocalTime { year: 2026, month: 11, day, hour, minute, second, weekday: 0, utc_offset_s: 0 })
    }
}

#[test]
fn old_messages_by_example() {
    let mut writer = Rfc3164::new(&origin(), &columns(), Ahead);
    let cells = cells(b"in: ", b"eth0");
    let mut line = |time_ns, text| {
        let mut out = Vec::new();
        writer.put(&Message { time_ns, ..message(&cells, text) }, &mut out);
        String::from_utf8(out).unwrap()
    };
    let expected = "<29>Nov 21 13:52:14 fw1.example netwren[7]: in: IN=eth0";
    assert_eq!(line(TIME_NS, Some(&b"in: IN=eth0\n"[..])), expected);
    assert_eq!(line(0, Some(b"x")), "<29>Nov  1 01:08:20 fw1.example netwren[7]: x");
    let expected = "<29>Nov 21 13:52:14 fw1.example netwren[7]: prefix=\"in: \" iif=eth0 dst=2001:db8::1 dport=443 \
                    tcp_flags=syn,ack mark=0xff";
    assert_eq!(line(TIME_NS, None), expected);
    let local = Origin { hostname: "", ..origin() };
    let mut out = Vec::new();
    Rfc3164::new(&local, &columns(), Ahead).put(&message(&cells, Some(b"x")), &mut out);
    assert_eq!(out, b"<29>Nov 21 13:52:14 netwren[7]: x");
}

/// Name, and parameters with their values.
type Element = (String, Vec<(String, String)>);

/// A message parsed according to RFC 5424.
#[derive(Debug, PartialEq)]
struct Parsed {
    /// Priority and version, time, host, program, process, kind.
    header: Vec<String>,
    /// Elements with their parameters.
    elements: Vec<Element>,
    text: Option<String>,
}

/// A strict parser that accepts only the grammar.
fn parse(message: &str) -> Parsed {
    let mut rest = message;
    let header = (0..6)
        .map(|_| {
            let (word, behind) = rest.split_once(' ').unwrap();
            assert!(!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic()));
            rest = behind;
            word.to_owned()
        })
        .collect();
    let mut elements = Vec::new();
    while let Some(behind) = rest.strip_prefix('[') {
        let (element, behind) = parse_element(behind);
        elements.push(element);
        rest = behind;
    }
    assert!(!elements.is_empty());
    let text = (!rest.is_empty()).then(|| rest.strip_prefix(' ').unwrap().to_owned());
    Parsed { header, elements, text }
}

/// Parses one element after its `[`; returns the text after its `]`.
fn parse_element(text: &str) -> (Element, &str) {
    let end = text.find([' ', ']']).unwrap();
    let (id, mut rest) = text.split_at(end);
    let mut params = Vec::new();
    while let Some(behind) = rest.strip_prefix(' ') {
        let (name, behind) = behind.split_once("=\"").unwrap();
        assert!(name.len() <= 32 && name.bytes().all(|b| b.is_ascii_graphic() && !b"=]\"".contains(&b)));
        let (mut value, mut chars) = (String::new(), behind.chars());
        loop {
            match chars.next().unwrap() {
                '"' => break,
                '\\' => value.push(chars.next().filter(|c| "\"\\]".contains(*c)).unwrap()),
                c => {
                    assert_ne!(c, ']', "not escaped");
                    value.push(c);
                }
            }
        }
        params.push((name.to_owned(), value));
        rest = chars.as_str();
    }
    ((id.to_owned(), params), rest.strip_prefix(']').unwrap())
}

/// Takes one message by its length; returns the rest.
fn take_frame(stream: &[u8]) -> (&str, &[u8]) {
    let blank = stream.iter().position(|byte| *byte == b' ').unwrap();
    let length: usize = std::str::from_utf8(&stream[..blank]).unwrap().parse().unwrap();
    let (message, rest) = stream[blank + 1..].split_at(length);
    (std::str::from_utf8(message).unwrap(), rest)
}

fn as_text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    record::text::put_text(&mut out, bytes);
    String::from_utf8(out).unwrap()
}

fn outside() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        "[\"\\]\\\\ =\n\u{202e}a\\[]{0,40}".prop_map(String::into_bytes)
    ]
}

proptest! {
    #[test]
    fn rows_read_back(prefix in outside(), iif in outside(), text in outside(), time: u64, number in 1u64..) {
        let cells = cells(&prefix, &iif);
        let message = Message { time_ns: time, sequence_id: number, msgid: "input", cells: &cells, text: Some(&text) };
        let mut writer = Rfc5424::new(&origin(), "log", &columns());
        let mut stream = Vec::new();
        frame_octets(&mut stream, |out| writer.put(&message, out));
        frame_octets(&mut stream, |out| writer.put(&Message { text: None, ..message }, out));
        frame_line(&mut stream, |out| writer.put(&message, out));
        let (first, rest) = take_frame(&stream);
        let (second, rest) = take_frame(rest);
        prop_assert_eq!(&[first.as_bytes(), b"\n"].concat(), rest, "no line feed inside");
        for line in [first, second] {
            prop_assert!(!line.chars().any(char::is_control));
            let parsed = parse(line);
            prop_assert_eq!(&parsed.header[2..], ["fw1.example", "netwren", "7", "input"]);
            let (id, params) = &parsed.elements[0];
            prop_assert_eq!(id, "nflog@32473");
            let mut expected = Vec::new();
            for (name, value) in [("prefix", &prefix), ("in", &iif)] {
                if !value.is_empty() {
                    expected.push((name.to_owned(), as_text(value)));
                }
            }
            let ours = [("dst", "2001:db8::1"), ("dport", "443"), ("tcp_flags", "syn,ack"), ("mark", "0xff")];
            for (name, value) in ours {
                expected.push((name.to_owned(), value.to_owned()));
            }
            prop_assert_eq!(params, &expected);
            let meta = ("sequenceId".to_owned(), ((number - 1) % 0x7fff_ffff + 1).to_string());
            prop_assert_eq!(&parsed.elements[1], &("meta".to_owned(), vec![meta]));
        }
    }

    #[test]
    fn old_messages_are_one_line(prefix in outside(), text in outside()) {
        let cells = cells(&prefix, b"");
        let mut writer = Rfc3164::new(&origin(), &columns(), Ahead);
        for text in [None, Some(&text[..])] {
            let mut out = Vec::new();
            writer.put(&message(&cells, text), &mut out);
            let line = String::from_utf8(out).unwrap();
            prop_assert!(line.starts_with("<29>Nov 21 13:52:14 fw1.example netwren[7]: "));
            prop_assert!(!line.chars().any(char::is_control));
        }
    }

    #[test]
    fn any_names_make_a_message(host: String, table: String, column: String) {
        let columns = Columns(vec![Column { name: column.into(), kind: Kind::Count }]);
        let origin = Origin { hostname: &host, ..origin() };
        let mut out = Vec::new();
        let message = Message { time_ns: 0, sequence_id: 1, msgid: "", cells: &[Value::U64(1)], text: None };
        Rfc5424::new(&origin, &table, &columns).put(&message, &mut out);
        parse(std::str::from_utf8(&out).unwrap());
    }
}
