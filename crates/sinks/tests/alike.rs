//! Similar rows are written with a template, which gives the same bytes as without one.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use record::rows::{Fragment, IcmpHeader, LogRecord, LogRecords, PacketHeaders, TcpHeader, Transport};
use record::{Addr, Column, Columns, Lookups, Show, Table, Value};
use sinks::JsonRows;
use sinks::syslog::{Message, Origin, Priority, Rfc5424};

fn origin() -> Origin<'static> {
    Origin { hostname: "fw1.example", pid: 7, priority: Priority::default() }
}

/// A record made from a few numbers, so that many are alike.
fn record(bits: u32, number: u32, prefix: &[u8]) -> LogRecord<'_> {
    let has = |bit: u32| bits >> bit & 1 == 1;
    let set = |bit: u32| has(bit).then_some(number);
    let transport = match bits & 3 {
        0 => Transport::Tcp(TcpHeader { sport: number as u16, dport: 443, flags: 2, ..TcpHeader::default() }),
        1 => Transport::Ports { sport: number as u16, dport: 53 },
        2 => Transport::Icmp(IcmpHeader { kind: number as u8, code: 0, id: set(5).map(|id| id as u16) }),
        _ => Transport::Other,
    };
    let src = if has(2) { Addr::V4(number.to_be_bytes()) } else { Addr::V6([number as u8; 16]) };
    let fragment = set(3).map(|offset| Fragment { offset: offset as u16, more: true });
    let packet = PacketHeaders { src, proto: 6, fragment, transport, tos: number as u8, ..PacketHeaders::default() };
    LogRecord {
        time_ns: 1_795_265_034_000_000_000 + u64::from(number) * 1000,
        netns_id: 4_026_531_840,
        group: 1,
        family: 2,
        prefix,
        in_ifindex: has(4).then_some(7),
        mark: set(6),
        uid: set(7),
        vlan: set(8).map(|id| id as u16),
        seq: Some(number),
        packet: (!has(9)).then_some(packet),
        ..LogRecord::default()
    }
}

/// Returns columns, and their cells' indexes in a row.
fn planned(names: &[&str]) -> (Columns, Vec<usize>) {
    let of = |name: &&str| LogRecords::FIELDS.iter().position(|field| field.name == *name).unwrap();
    let at: Vec<usize> = names.iter().map(of).collect();
    let column = |at: &usize| Column { name: LogRecords::FIELDS[*at].name.into(), kind: LogRecords::FIELDS[*at].kind };
    (Columns(at.iter().map(column).collect()), at)
}

fn prefixes() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let any_text = proptest::collection::vec(any::<u8>(), 0..20);
    let long = proptest::collection::vec(b' '..b'~', 100..140);
    proptest::collection::vec(prop_oneof![3 => any_text, 1 => long], 1..3)
}

/// Writes each record with a template and without.
fn both(columns: &Columns, rows: &[(LogRecord<'_>, Vec<Value<'_>>)]) -> [(Vec<u8>, Vec<u8>); 2] {
    let (mut plain, mut alike) = (JsonRows::new(columns), JsonRows::of_alike(columns, LogRecord::varying));
    let mut json = (Vec::new(), Vec::new());
    let mut old = Rfc5424::new(&origin(), "log", columns);
    let mut new = Rfc5424::of_alike(&origin(), "log", columns, LogRecord::varying);
    let mut syslog = (Vec::new(), Vec::new());
    for (row, cells) in rows {
        plain.put(cells, &mut json.0);
        alike.put_alike(row.likeness(), &mut &cells[..], &mut json.1);
        let message =
            Message { time_ns: row.time_ns, sequence_id: 1, msgid: row.hook_name(), cells, text: Some(b"text") };
        old.put(&message, &mut syslog.0);
        new.put_alike(&message, &mut &cells[..], row.likeness().as_ref(), &mut syslog.1);
    }
    [json, syslog]
}

proptest! {
    #[test]
    fn templates_write_what_is_written_without(
        prefixes in prefixes(),
        rows in proptest::collection::vec((0u32..1024, any::<u32>(), 0usize..3, 0usize..2), 1..200),
        start in 0usize..4, skip in 0usize..30,
    ) {
        let shown: Vec<&str> =
            LogRecords::FIELDS.iter().filter(|field| field.show <= Show::Wide).map(|field| field.name).collect();
        let mut names: Vec<&str> = ["mark", "src", "time"].into_iter().cycle().skip(start).take(start % 3).collect();
        names.extend(shown.iter().filter(|name| !["mark", "src", "time"].contains(name)).skip(skip));
        let (mut columns, at) = planned(&names);
        let more = ["folded", "limited"].map(|name| Column { name: name.into(), kind: record::Kind::Count });
        columns.0.extend(more);
        let records: Vec<LogRecord<'_>> = rows
            .iter()
            .map(|(bits, number, prefix, _)| record(*bits, *number, &prefixes[*prefix % prefixes.len()]))
            .collect();
        let mut written = Vec::new();
        for (row, (_, number, _, more)) in records.iter().zip(&rows) {
            let own = at.iter().map(|at| LogRecords::FIELDS[*at].cell(row, &Lookups::none()));
            let mut cells: Vec<Value<'_>> = own.collect();
            // Some records stand for others, and have more cells.
            cells.extend(vec![Value::U64((*number).into()); 2 * more]);
            written.push((*row, cells));
        }
        let rows = written;
        for (without, with) in both(&columns, &rows) {
            prop_assert_eq!(String::from_utf8_lossy(&with), String::from_utf8_lossy(&without));
        }
    }
}
