//! The cost of a row, counted and not timed: no allocation, and one system call for many rows.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use record::{Accounting, Addr, Column, Columns, Comm, Kind, Next, Owner, Proto, Sink, State, Value};
use sinks::LocalTime;
use sinks::{Csv, FormatOptions, Json, LocalClock, Out, TableRoom, TableWriter, Text};
use std::io::{self, Write};

#[global_allocator]
static HEAP: testkit::allocator::CountingAllocator = testkit::allocator::CountingAllocator;

/// Counts the calls that would be system calls.
#[derive(Default)]
struct Calls {
    writes: u64,
    bytes: u64,
}

impl Write for Calls {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        self.bytes += block.len() as u64;
        Ok(block.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn columns() -> Columns {
    let kinds = [
        ("proto", Kind::Name(Proto::NAMES)),
        ("state", Kind::Name(State::NAMES)),
        ("recv_q", Kind::Bytes),
        ("send_q", Kind::Bytes),
        ("local_addr", Kind::Addr),
        ("local_port", Kind::Port),
        ("peer_addr", Kind::Addr),
        ("peer_port", Kind::Port),
        ("process", Kind::Text),
        ("pid", Kind::Id),
        ("owners", Kind::Owners),
        ("mark", Kind::Hex),
        ("time", Kind::Time),
    ];
    Columns(kinds.iter().map(|&(name, kind)| Column { name: name.into(), kind }).collect())
}

/// Writes `rows` rows, some of them hostile, after a first round that sizes the buffers. Returns the allocations.
fn allocations(sink: &mut dyn Sink, rows: u64) -> u64 {
    let owners = [Owner { pid: 77, fd: 3, process: Comm::new(b"a\n\xffb\""), started: 0 }; 3];
    let path = [b"/run/".as_slice(), &[b'x'; 100], b"\x1b\xe2\x80\xae,\"\\"].concat();
    let round = |sink: &mut dyn Sink| {
        sink.begin(&columns(), None).unwrap();
        let before = testkit::allocator::allocations();
        for n in 0..rows {
            let text: &[u8] = if n % 10 == 0 { &path } else { b"python3" };
            let cells = [
                Value::Name("tcp"),
                Value::Name("established"),
                Value::U64(0),
                Value::U64(n % 7 * 1000),
                Value::Addr(Addr::V4([192, 0, 2, 7])),
                Value::U64(443),
                Value::Addr(Addr::V6([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n as u8])),
                Value::U64(n % 65_536),
                Value::Bytes(text),
                Value::Null,
                Value::Owners(if n % 10 == 0 { &owners } else { &[] }),
                Value::U64(n % 3),
                Value::Time(1_795_000_000_000_000_000 + n * 123_456_789),
            ];
            assert_eq!(sink.row(&cells).unwrap(), Next::More);
        }
        let asked = testkit::allocator::allocations() - before;
        sink.end(&Accounting::default()).unwrap();
        asked
    };
    round(sink);
    round(sink)
}

const ROWS: u64 = 5_000;

#[test]
fn a_row_allocates_nothing() {
    let options = FormatOptions::default();
    for (what, sink) in [
        ("text", &mut Text::new(Out::new(Calls::default()), options) as &mut dyn Sink),
        ("json", &mut Json::new(Out::new(Calls::default()), options)),
        ("csv", &mut Csv::new(Out::new(Calls::default()), options)),
        ("table", &mut TableWriter::new(Out::new(Calls::default()), options)),
    ] {
        assert_eq!(allocations(sink, ROWS), 0, "{what}");
    }
}

/// Widths, headings and the last line are made once per round.
#[test]
fn a_row_within_a_terminal_allocates_nothing() {
    let narrow = Some(TableRoom { width: 60, ..TableRoom::default() });
    let noon = |_| {
        Some(LocalTime { year: 2026, month: 11, day: 24, hour: 12, minute: 0, second: 0, weekday: 2, utc_offset_s: 0 })
    };
    let clock = Some(LocalClock { now_s: || 0, local: noon });
    let mut sink = TableWriter::new(Out::new(Calls::default()), FormatOptions::default()).with_room(narrow);
    let few = allocations(&mut sink, 400);
    assert_eq!(allocations(&mut sink, ROWS), few);
    let mut sink = sink.for_people(clock);
    allocations(&mut sink, 400);
    assert_eq!(allocations(&mut sink, ROWS), few);
}

#[test]
fn a_write_takes_many_rows() {
    let mut text = Text::new(Out::new(Calls::default()), FormatOptions::default());
    allocations(&mut text, ROWS);
    check(text.into_out().into_inner());
    let mut json = Json::new(Out::new(Calls::default()), FormatOptions::default());
    allocations(&mut json, ROWS);
    check(json.into_out().into_inner());
    let mut csv = Csv::new(Out::new(Calls::default()), FormatOptions::default());
    allocations(&mut csv, ROWS);
    check(csv.into_out().into_inner());
}

/// Two rounds: one write per block of 63 KiB, and one more at each end.
fn check(calls: Calls) {
    assert!(calls.writes <= calls.bytes.div_ceil(63 << 10) + 2, "{} writes, {} bytes", calls.writes, calls.bytes);
    let per_thousand = calls.writes * 1_000 / (2 * ROWS);
    assert!(per_thousand <= 5, "{per_thousand} writes per 1,000 rows");
}

#[test]
fn a_line_at_a_time_if_asked() {
    let mut text = Text::new(Out::new(Calls::default()).each_line(true), FormatOptions::default());
    text.begin(&columns(), None).unwrap();
    for _ in 0..10 {
        assert_eq!(text.row(&[Value::Null; 12]).unwrap(), Next::More);
    }
    text.end(&Accounting::default()).unwrap();
    assert_eq!(text.into_out().into_inner().writes, 10);
}
