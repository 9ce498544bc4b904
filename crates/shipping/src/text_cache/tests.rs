#![allow(clippy::unwrap_used)]
use super::{CachingWriter, TextCache};
use crate::row_writer::RowWriter;
use crate::{syslog, ulogd};
use export::{Format, Target};
use proptest::prelude::*;
use record::rows::{LogRecord, LogRecords};
use record::{Column, Columns, Lookups, NUMBERS, RowCells, Table};
use sinks::JsonRows;
use sinks::syslog::SEQUENCE_ID_MAX;

const COLUMNS: [&str; 20] = [
    "time",
    "group",
    "prefix",
    "hook",
    "family",
    "iifindex",
    "proto",
    "src",
    "sport",
    "dst",
    "dport",
    "len",
    "tcp_flags",
    "tcp_seq",
    "icmp_type",
    "icmp_id",
    "ttl",
    "tos",
    "fragment_offset",
    "mark",
];

/// A randomly generated packet.
#[derive(Debug, Clone)]
struct Drawn {
    kind: u8,
    later_ns: u64,
    numbers: [u32; NUMBERS],
    tos: u8,
    fragment: u16,
    flags: u8,
    mark: Option<u32>,
    cut: usize,
}

/// Most of its numbers have one of two values, so that many are equal.
fn drawn() -> impl Strategy<Value = Drawn> {
    let rare = |usual: u16| prop_oneof![30 => Just(usual), 1 => any::<u16>()];
    let number = prop_oneof![4 => Just(7u32), 4 => any::<u32>(), 2 => 0..1200u32];
    let mark = prop_oneof![30 => Just(None), 1 => (0..3u32).prop_map(Some)];
    let cut = prop_oneof![30 => Just(0usize), 1 => 1..48usize];
    let parts = (0..6u8, prop_oneof![30 => 0..30_000_000u64, 1 => 0..3_000_000_000u64], prop::array::uniform16(number));
    (parts, rare(0), rare(0x4000), rare(2), mark, cut).prop_map(|(parts, tos, fragment, flags, mark, cut)| Drawn {
        kind: parts.0,
        later_ns: parts.1,
        numbers: parts.2,
        tos: tos as u8,
        fragment,
        flags: flags as u8,
        mark,
        cut,
    })
}

impl Drawn {
    fn packet(&self) -> Vec<u8> {
        let (proto, rest) = match self.kind {
            0..=2 => (6, vec![0; 28]),
            3 | 4 => (17, vec![0; 30]),
            _ => (1, vec![0; 28]),
        };
        let mut bytes = vec![0x45, self.tos, 0, 0, 0, 0, (self.fragment >> 8) as u8, self.fragment as u8, 0, proto];
        bytes.extend([0; 10]);
        bytes.extend(&rest);
        let row = LogRecord { payload: &bytes, packet: packet::read_headers(&bytes), ..LogRecord::default() };
        let mut numbered = bytes.clone();
        row.put_numbers(&self.numbers, &mut numbered);
        match proto {
            6 => (numbered[32], numbered[33]) = (0x50, self.flags),
            1 => numbered[20] = if self.flags == 2 { 8 } else { self.flags },
            _ => {}
        }
        numbered.truncate(numbered.len() - self.cut);
        numbered
    }
}

/// Hands the generated rows to `each`.
fn rows(drawn: &[Drawn], mut each: impl FnMut(&LogRecord<'_>)) {
    let mut time_ns = 1_795_265_034_999_000_000;
    for one in drawn {
        let packet = one.packet();
        time_ns += one.later_ns;
        each(&LogRecord {
            time_ns,
            group: 5,
            family: 2,
            hook: one.kind % 2,
            ether_type: 0x800,
            prefix: if one.kind == 1 { b"other \"rule\": " } else { b"fw: " },
            in_ifindex: Some(2),
            hw_header: &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0],
            mark: one.mark,
            payload: &packet,
            packet: packet::read_headers(&packet),
            ..LogRecord::default()
        });
    }
}

fn columns() -> Columns {
    let fields = COLUMNS.map(|name| LogRecords::FIELDS.iter().find(|field| field.name == name).unwrap());
    Columns(fields.iter().map(|field| Column { name: field.name.into(), kind: field.kind }).collect())
}

fn with_cells(row: &LogRecord<'_>, then: impl FnOnce(&mut dyn RowCells)) {
    let lookups = Lookups::empty();
    let fields = COLUMNS.map(|name| LogRecords::FIELDS.iter().find(|field| field.name == name).unwrap());
    let cells = fields.map(|field| field.cell(row, &lookups));
    then(&mut &cells[..]);
}

/// Each writer, without and with the cache.
fn pairs() -> Vec<[Box<dyn RowWriter<LogRecords>>; 2]> {
    let columns = columns();
    let syslog = |target: &str| {
        let target: Target = target.parse().unwrap();
        [None, TextCache::new::<LogRecords>(&columns)].map(|cache| {
            // The sequence numbers wrap around during the test.
            let mut writer = syslog::writer_with::<LogRecords>(&target, None, &columns, cache);
            writer.written = SEQUENCE_ID_MAX - 99;
            Box::new(writer) as Box<dyn RowWriter<LogRecords>>
        })
    };
    let logemu = || ulogd::writer(Format::Logemu, None).unwrap();
    let json = || Box::new(JsonRows::new(&columns)) as Box<dyn RowWriter<LogRecords>>;
    vec![
        syslog("syslog+tcp://127.0.0.1:1"),
        syslog("syslog-rfc3164+udp://127.0.0.1:1"),
        [logemu(), CachingWriter::wrap(logemu(), &Columns::default())],
        [json(), CachingWriter::wrap(json(), &columns)],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// With the cache, every message has the same bytes as from the writer alone.
    #[test]
    fn messages_are_the_same_to_the_byte(drawn in prop::collection::vec(drawn(), 1..600)) {
        for [mut plain, mut caching] in pairs() {
            let (mut expected, mut out) = (Vec::new(), Vec::new());
            rows(&drawn, |row| with_cells(row, |cells| {
                plain.write(row, cells, &Lookups::empty(), &mut expected);
                caching.write(row, cells, &Lookups::empty(), &mut out);
            }));
            let differs = expected.iter().zip(&out).position(|(one, other)| one != other);
            let near = |bytes: &[u8]| {
                let range = |at: usize| at.saturating_sub(200)..bytes.len().min(at + 50);
                differs.map(|at| String::from_utf8_lossy(&bytes[range(at)]).into_owned())
            };
            prop_assert_eq!(near(&expected), near(&out));
            prop_assert_eq!(expected.len(), out.len());
        }
    }
}

/// For a flood from many sources, the writer is not called.
#[test]
fn a_flood_calls_the_writer_rarely() {
    let mut cache = TextCache::new::<LogRecords>(&columns()).unwrap();
    let one = |n: u32| Drawn {
        kind: 0,
        later_ns: 1000,
        numbers: std::array::from_fn(|at| if at < 2 { n << (8 * at) } else { 80 }),
        tos: 0,
        fragment: 0x4000,
        flags: 2,
        mark: None,
        cut: 0,
    };
    let flood: Vec<Drawn> = (0..10_000).map(one).collect();
    let (mut json, mut out, mut written, mut number) = (JsonRows::new(&columns()), Vec::new(), 0, 0);
    rows(&flood, |row| {
        number += 1;
        with_cells(row, |cells| {
            cache.put::<LogRecords>(row, cells, number, &mut out, &mut |row, cells, _, out| {
                written += 1;
                RowWriter::<LogRecords>::write(&mut json, row, cells, &Lookups::empty(), out);
            });
        });
    });
    assert!(written < 100, "{written}");
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), flood.len());
}

#[test]
fn other_columns_have_no_cache() {
    let column = |name: &str| Columns(vec![Column { name: name.into(), kind: record::Kind::Text }]);
    assert!(TextCache::new::<LogRecords>(&column("src")).is_some());
    for name in ["seq", "payload_bytes", "process", "rule_comment", "ct_state"] {
        assert!(TextCache::new::<LogRecords>(&column(name)).is_none(), "{name}");
    }
}
