//! The cost of one log record, from cells to bytes, in nanoseconds for each format that is sent or stored.
//!
//! `cargo run --profile quick -p shipping --example log_cost`. The best of several passes is shown: the others have
//! noise of the machine.
#![allow(clippy::print_stdout)]

use packet_files::formats::{Pcap, PcapNg};
use record::rows::{LogRecord, LogRecords, PacketHeaders, TcpHeader, Transport};
use record::{Addr, Column, Columns, Key, Lookup, LookupId, Lookups, Show, Table as _, Value};
use sinks::JsonRows;
use sinks::syslog::{Message, Origin, Priority, Rfc5424, frame_octets};
use std::time::Instant;

const ROWS: usize = 256;
const PASSES: usize = 2000;
/// The text of a record in LOGEMU's format.
const TEXT: &[u8] = b"fwd-new:  IN=rc OUT=rs MAC=02:00:00:00:00:01:02:00:00:00:00:10:08:00 SRC=192.0.2.10 \
    DST=198.51.100.20 LEN=60 TOS=00 PREC=0x00 TTL=63 ID=41447 DF PROTO=TCP SPT=47548 DPT=80 SEQ=2598664499 ACK=0 \
    WINDOW=64240 SYN URGP=0 MARK=0x0 ";

struct Names;

impl Lookup for Names {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Pair(..) => Value::Bytes(b"eth0"),
            _ => Value::Null,
        }
    }
}

fn record(n: usize, payload: &[u8]) -> LogRecord<'_> {
    let transport =
        Transport::Tcp(TcpHeader { sport: 30_000 + (n * 97) as u16, dport: 443, flags: 2, ..TcpHeader::default() });
    let packet = PacketHeaders {
        src: Addr::V4([192, 0, 2, n as u8]),
        dst: Addr::V4([198, 51, 100, 20]),
        proto: 6,
        length: 60,
        ttl: 63,
        transport,
        ..PacketHeaders::default()
    };
    LogRecord {
        time_ns: 1_795_265_034_000_000_000 + n as u64 * 1_000_003,
        netns_id: 4_026_531_840,
        group: 1,
        family: 2,
        hook: 2,
        prefix: b"fwd-new: ",
        in_ifindex: Some(2),
        out_ifindex: Some(3),
        ether_type: 0x0800,
        payload,
        packet: Some(packet),
        ..LogRecord::default()
    }
}

fn report(format: &str, mut run: impl FnMut(&mut Vec<u8>)) {
    let mut out = Vec::with_capacity(ROWS * 1024);
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        out.clear();
        let start = Instant::now();
        run(&mut out);
        best = best.min(start.elapsed().as_nanos() as f64 / ROWS as f64);
    }
    println!("{format}: {best:.1} ns a record, {} bytes", out.len() / ROWS);
}

fn main() {
    let payload = [&[0x45, 0, 0, 60][..], &[0; 56]].concat();
    let records: Vec<LogRecord<'_>> = (0..ROWS).map(|n| record(n, &payload)).collect();
    let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &Names);
    let fields: Vec<_> = LogRecords::FIELDS.iter().filter(|field| field.show <= Show::Wide).collect();
    let columns = Columns(fields.iter().map(|f| Column { name: f.name.into(), kind: f.kind }).collect());
    let rows: Vec<Vec<Value<'_>>> =
        records.iter().map(|row| fields.iter().map(|field| field.cell(row, &lookups)).collect()).collect();
    let mut json = JsonRows::new(&columns);
    report("json", |out| rows.iter().for_each(|cells| json.put(cells, out)));
    let origin = Origin { hostname: "fw1.example", pid: 7, priority: Priority::default() };
    let mut syslog = Rfc5424::new(&origin, "log", &columns);
    for (name, text) in [("rfc5424", Some(TEXT)), ("rfc5424 without text", Some(&b""[..])), ("rfc5424, cells", None)] {
        report(name, |out| {
            for (row, cells) in records.iter().zip(&rows) {
                let message = Message { time_ns: row.time_ns, sequence_id: 1, msgid: row.hook_name(), cells, text };
                frame_octets(out, |out| syslog.put(&message, out));
            }
        });
    }
    let mut pcap = Pcap::new();
    report("pcap", |out| records.iter().for_each(|row| pcap.write(row, &lookups, out)));
    let mut pcapng = PcapNg::new();
    report("pcapng", |out| records.iter().for_each(|row| pcapng.write(row, &[], &lookups, out)));
}
