#![allow(clippy::unwrap_used)]
use super::{CachingWriter, TextCache};
use crate::row_writer::RowWriter;
use crate::{syslog, ulogd};
use export::{Format, Target};
use proptest::prelude::*;
use record::rows::{LogRecord, LogRecords};
use record::{
    Column, Columns, Field, Key, Lookup, LookupId, Lookups, NUMBERS, RowCells, Table, Value, put_v6_at, v6_index,
};
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
    // 0xffff: of an IPv4-mapped IPv6 address.
    let number = prop_oneof![4 => Just(7u32), 4 => any::<u32>(), 2 => 0..1200u32, 2 => Just(0), 1 => Just(0xffff)];
    let mark = prop_oneof![30 => Just(None), 1 => (0..3u32).prop_map(Some)];
    let cut = prop_oneof![30 => Just(0usize), 1 => 1..48usize];
    let later = prop_oneof![30 => 0..30_000_000u64, 1 => 0..3_000_000_000u64];
    let parts = (0..10u8, later, prop::array::uniform24(number));
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
    fn is_v6(&self) -> bool {
        self.kind >= 6
    }

    fn packet(&self) -> Vec<u8> {
        let (proto, rest) = match self.kind {
            0..=2 | 6 | 7 => (6, 28),
            3 | 4 | 8 => (17, 30),
            5 => (1, 28),
            _ => (58, 28),
        };
        let mut bytes = match self.is_v6() {
            true => [&[0x60 | self.tos >> 4, self.tos << 4, 0, 0, 0, 0, proto, 0][..], &[0; 32]].concat(),
            false => {
                let [high, low] = self.fragment.to_be_bytes();
                [&[0x45, self.tos, 0, 0, 0, 0, high, low, 0, proto][..], &[0; 10]].concat()
            }
        };
        let at = bytes.len();
        bytes.resize(at + rest, 0);
        match proto {
            6 => (bytes[at + 12], bytes[at + 13]) = (0x50, self.flags),
            1 => bytes[at] = if self.flags == 2 { 8 } else { self.flags },
            58 => bytes[at] = if self.flags == 2 { 128 } else { self.flags },
            _ => {}
        }
        let row = LogRecord { packet: packet::read_headers(&bytes), ..LogRecord::default() };
        let mut numbered = bytes.clone();
        row.put_numbers(&self.numbers, &mut numbered);
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
            family: if one.is_v6() { 10 } else { 2 },
            hook: one.kind % 2,
            ether_type: if one.is_v6() { 0x86dd } else { 0x800 },
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
            let mut writer = syslog::writer_with::<LogRecords>("log", &target, None, &columns, cache);
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

/// A packet of a flood from many sources: TCP over IPv4, or over IPv6.
fn flooding(n: u32, is_v6: bool) -> Drawn {
    let mut numbers = [80; NUMBERS];
    if is_v6 {
        put_v6_at(
            &mut numbers,
            v6_index(0),
            [0x2001_0db8, n % 7, n << 8, n].map(u32::to_be_bytes).concat().try_into().unwrap(),
        );
        put_v6_at(
            &mut numbers,
            v6_index(1),
            [0x2001_0db8, 0, 0, n % 2].map(u32::to_be_bytes).concat().try_into().unwrap(),
        );
    } else {
        (numbers[0], numbers[1]) = (n, n << 8);
    }
    Drawn {
        kind: if is_v6 { 6 } else { 0 },
        later_ns: 1000,
        numbers,
        tos: 0,
        fragment: 0x4000,
        flags: 2,
        mark: None,
        cut: 0,
    }
}

/// For a flood from many sources, the writer is not called.
#[test]
fn a_flood_calls_the_writer_rarely() {
    for is_v6 in [false, true] {
        let mut cache = TextCache::new::<LogRecords>(&columns()).unwrap();
        let flood: Vec<Drawn> = (0..10_000).map(|n| flooding(n, is_v6)).collect();
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
        assert!(written < 100, "{is_v6}: {written}");
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), flood.len());
    }
}

/// Rows of an earlier second, as another namespace or CPU delivers them, do not evict the text.
#[test]
fn late_rows_evict_nothing() {
    let mut cache = TextCache::new::<LogRecords>(&columns()).unwrap();
    let flood: Vec<Drawn> = (0..4_000).map(|n| flooding(n, false)).collect();
    let (mut json, mut out, mut written, mut nth) = (JsonRows::new(&columns()), Vec::new(), 0, 0);
    rows(&flood, |row| {
        nth += 1;
        let late_ns = if nth % 10 == 0 { 1_000_000_000 } else { 0 };
        let row = LogRecord { time_ns: row.time_ns - late_ns, ..*row };
        with_cells(&row, |cells| {
            cache.put::<LogRecords>(&row, cells, 0, &mut out, &mut |row, cells, _, out| {
                written += 1;
                RowWriter::<LogRecords>::write(&mut json, row, cells, &Lookups::empty(), out);
            });
        });
    });
    assert!(written < 500, "400 late rows and the first ones: {written}");
}

/// Names by any key.
struct Names;

impl Lookup for Names {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::None => Value::Null,
            Key::Pair(..) => Value::Bytes(b"eth0"),
            _ => Value::Bytes(b"a \"name\""),
        }
    }
}

/// Every column that the cache accepts, with the names from lookups, has the row's own text.
#[test]
fn all_columns_have_the_rows_own_text() {
    let ids = [LookupId::Ifaces, LookupId::Netns, LookupId::Users];
    let lookups = ids.into_iter().fold(Lookups::empty(), |lookups, id| lookups.with_lookup(id, &Names));
    let accepted = |field: &&Field<LogRecords>| {
        let column = Column { name: field.name.into(), kind: field.kind };
        TextCache::new::<LogRecords>(&Columns(vec![column])).is_some()
    };
    let fields: Vec<&Field<LogRecords>> = LogRecords::FIELDS.iter().filter(accepted).collect();
    assert!(fields.len() > 30, "{}", fields.len());
    let columns = Columns(fields.iter().map(|f| Column { name: f.name.into(), kind: f.kind }).collect());
    let row_of = |n: u32| {
        let kind = (n / 100 % 10) as u8;
        Drawn { kind, ..flooding(n, kind >= 6) }
    };
    let flood: Vec<Drawn> = (0..4_000).map(row_of).collect();
    let mut plain = JsonRows::new(&columns);
    let mut caching =
        CachingWriter::wrap(Box::new(JsonRows::new(&columns)) as Box<dyn RowWriter<LogRecords>>, &columns);
    let (mut expected, mut out) = (Vec::new(), Vec::new());
    rows(&flood, |row| {
        let cells: Vec<Value<'_>> = fields.iter().map(|field| field.cell(row, &lookups)).collect();
        expected.clear();
        out.clear();
        RowWriter::<LogRecords>::write(&mut plain, row, &mut &cells[..], &lookups, &mut expected);
        caching.write(row, &mut &cells[..], &lookups, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&expected));
    });
}

#[test]
fn other_columns_have_no_cache() {
    let column = |name: &str| Columns(vec![Column { name: name.into(), kind: record::Kind::Text }]);
    assert!(TextCache::new::<LogRecords>(&column("src")).is_some());
    for name in ["seq", "payload_bytes", "process", "rule_comment", "ct_state"] {
        assert!(TextCache::new::<LogRecords>(&column(name)).is_none(), "{name}");
    }
}
