//! The cost of one log record, from the typed row to the bytes of ulogd2's formats, in nanoseconds per message.
//!
//! `cargo run --release -p sinks --example ulogd_cost [ROUNDS]`; the best of several passes is shown. The packets are
//! TCP SYNs from random addresses on one interface.
#![allow(clippy::print_stdout)]

use record::rows::{LogRecord, PacketHeaders, TcpHeader, Transport};
use record::{Addr, Key, Lookup, LookupId, Lookups, Value};
use sinks::LocalTime;
use sinks::ulogd::{Gprint, Json, JsonOptions, Logemu, Oprint, Stages, UlogdStyle, Xml};
use std::time::Instant;

const ROWS: usize = 4096;
const MAC: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];

struct Names;

impl Lookup for Names {
    fn value(&self, _: Key) -> Value<'_> {
        Value::Bytes(b"eth0")
    }
}

fn zone(_: i64) -> Option<LocalTime> {
    let time =
        LocalTime { year: 2026, month: 11, day: 21, hour: 12, minute: 43, second: 54, weekday: 6, utc_offset_s: 0 };
    Some(time)
}

/// Packets of 60 bytes.
fn packets() -> Vec<[u8; 60]> {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    let packet = || {
        let mut packet = [0; 60];
        packet[..12].copy_from_slice(&[0x45, 0, 0, 60, 0x12, 0x34, 0x40, 0, 57, 6, 0xab, 0xcd]);
        packet[12..16].copy_from_slice(&random().to_be_bytes());
        packet[16..20].copy_from_slice(&random().to_be_bytes());
        packet[20..24].copy_from_slice(&random().to_be_bytes());
        packet[24..28].copy_from_slice(&random().to_be_bytes());
        packet[32..38].copy_from_slice(&[0xa0, 2, 0xfa, 0xf0, 0x12, 0x34]);
        packet
    };
    std::iter::repeat_with(packet).take(ROWS).collect()
}

fn row(packet: &[u8; 60], n: usize) -> LogRecord<'_> {
    let at = |at: usize| [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
    let tcp = TcpHeader {
        sport: u16::from_be_bytes([packet[20], packet[21]]),
        dport: u16::from_be_bytes([packet[22], packet[23]]),
        seq: u32::from_be_bytes(at(24)),
        ack: 0,
        flags: 2,
        window: 64_240,
    };
    let headers = PacketHeaders {
        src: Addr::V4(at(12)),
        dst: Addr::V4(at(16)),
        proto: 6,
        length: 60,
        ttl: 57,
        id: 0x1234,
        dont_fragment: true,
        transport: Transport::Tcp(tcp),
        header: &packet[..20],
        payload: &packet[20..],
        ..PacketHeaders::default()
    };
    LogRecord {
        time_ns: 1_795_265_034_000_000_000 + n as u64 * 3_000,
        netns_id: 4_026_531_840,
        group: 1,
        family: 2,
        prefix: b"fw-drop: ",
        in_ifindex: Some(2),
        ether_type: 0x800,
        hw_header: &MAC,
        hw_addr: &MAC[6..12],
        hw_type: Some(1),
        payload: packet,
        packet: Some(headers),
        ..LogRecord::default()
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200usize);
    let packets = packets();
    let rows: Vec<LogRecord<'_>> = packets.iter().enumerate().map(|(n, packet)| row(packet, n)).collect();
    let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &Names);
    let options = UlogdStyle { zone, bug_compatible: false };
    let mut emu = Logemu::new(b"vm", options);
    measure("logemu", rounds, &rows, |row, out| emu.write(row, &lookups, out));
    let mut json = Json::new(JsonOptions::default(), Stages::ALL, options);
    measure("json", rounds, &rows, |row, out| json.write(row, &lookups, out));
    let mut gprint = Gprint::new(true, Stages::ALL, options);
    measure("gprint", rounds, &rows, |row, out| gprint.write(row, &lookups, out));
    let mut oprint = Oprint::new(Stages::ALL, options);
    measure("oprint", rounds, &rows, |row, out| oprint.write(row, &lookups, out));
    let mut xml = Xml::new(options);
    measure("xml", rounds, &rows, |row, out| xml.write(row, &lookups, out));
}

fn measure(name: &str, rounds: usize, rows: &[LogRecord<'_>], mut write: impl FnMut(&LogRecord<'_>, &mut Vec<u8>)) {
    let (mut best, mut bytes, mut hash) = (f64::INFINITY, 0, 0u64);
    let mut out: Vec<u8> = Vec::with_capacity(1 << 17);
    for _ in 0..rounds {
        bytes = 0;
        let start = Instant::now();
        for row in rows {
            write(row, &mut out);
            if out.len() > 60_000 {
                bytes += std::hint::black_box(&out).len();
                out.clear();
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / rows.len() as f64);
        bytes += out.len();
        hash = out.iter().fold(0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
        out.clear();
    }
    println!("{name}: {best:.1} ns a message, {} bytes each, hash {hash:016x}", bytes / rows.len());
}
