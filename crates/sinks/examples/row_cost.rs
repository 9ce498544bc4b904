//! The cost of one row, from cells to bytes, in nanoseconds for each native format, default and wide columns.
//!
//! `cargo run --profile quick -p sinks --example row_cost [ROWS A PASS]`. The hash of the bytes shows whether two runs
//! did the same work. The best of several passes is shown, because the others have noise of the machine.
#![allow(clippy::print_stdout)]

use record::rows::{Endpoint, Socket, Sockets};
use record::{Accounting, Addr, Column, Columns, Comm, Key, Lookup, LookupId, Lookups, Owner, Proto};
use record::{Show, Sink, State, Table as _, Value};
use sinks::{Csv, FormatOptions, Json, Out, Text};
use std::io::{self, Write};
use std::time::Instant;

/// Takes all bytes and keeps a hash of them.
#[derive(Default)]
struct Hash {
    bytes: u64,
    hash: u64,
}

impl Write for Hash {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.bytes += block.len() as u64;
        for &b in block {
            self.hash = (self.hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(block.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes all bytes at no cost, so that only the writer is timed.
struct Nowhere;

impl Write for Nowhere {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        Ok(block.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One process owns every socket.
struct Owners([Owner; 1]);

impl Lookup for Owners {
    fn value(&self, _: Key) -> Value<'_> {
        Value::Null
    }
    fn owners(&self, _: Key) -> &[Owner] {
        &self.0
    }
}

const ROWS: usize = 256;
/// Many short passes, so that some are undisturbed.
const PASSES: usize = 300;

fn main() {
    let times = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000usize).div_ceil(ROWS);
    let sockets: Vec<Socket<'_>> = (0..ROWS).map(socket).collect();
    let owners = Owners([Owner { pid: 10425, fd: 17, process: Comm::new(b"python3"), started: 0 }]);
    let lookups = Lookups::empty().with_lookup(LookupId::Owners, &owners);
    let bare: &[&str] = &["process", "pid"];
    for (what, show, without) in
        [("default", Show::Default, &[][..]), ("no owner", Show::Default, bare), ("wide", Show::Wide, &[])]
    {
        let (columns, rows) = cells(&sockets, &lookups, show, without);
        println!("{what}, {} columns", columns.0.len());
        let options = FormatOptions::default();
        report("text", times, |times| {
            pass(&mut Text::new(Out::new(Nowhere), options), &columns, &rows, times);
        });
        report("json", times, |times| {
            pass(&mut Json::new(Out::new(Nowhere), options), &columns, &rows, times);
        });
        report("csv", times, |times| {
            pass(&mut Csv::new(Out::new(Nowhere), options), &columns, &rows, times);
        });
        let mut text = Text::new(Out::new(Hash::default()), options);
        let mut json = Json::new(Out::new(Hash::default()), options);
        pass(&mut text, &columns, &rows, 1);
        pass(&mut json, &columns, &rows, 1);
        for (format, sum) in [("text", text.into_out().into_inner()), ("json", json.into_out().into_inner())] {
            println!("  {format}: {} bytes a row, hash {:016x}", sum.bytes / ROWS as u64, sum.hash);
        }
    }
}

/// A socket of a host with private and documentation addresses; three in four are IPv4.
fn socket(n: usize) -> Socket<'static> {
    let (a, b) = ((n / 7) as u8, n as u8);
    let addr = |v4: [u8; 4]| match n % 4 {
        0 => Addr::V6([0x20, 1, 0x0d, 0xb8, 0, v4[1], 0, 0, 0, 0, 0, 0, 0, 0, a, b]),
        _ => Addr::V4(v4),
    };
    Socket {
        proto: Proto::Tcp,
        family: if n % 4 == 0 { 10 } else { 2 },
        state: [State::ESTABLISHED, State::TIME_WAIT, State::ESTABLISHED, State::CLOSE_WAIT][n / 3 % 4],
        local: Endpoint { addr: addr([192, 0, 2, a]), port: 443 },
        peer: Endpoint { addr: addr([10, a, b, 200]), port: 30_000 + (n * 97) as u16 },
        rqueue: 0,
        wqueue: Some(if n % 8 == 0 { 4380 } else { 0 }),
        uid: Some(1000),
        inode: 1_153_222 + n as u32,
        cookie: 77_000 + n as u64,
        netns_id: 4_026_531_840,
        ..Socket::EMPTY
    }
}

fn cells<'r>(
    sockets: &'r [Socket<'_>],
    lookups: &Lookups<'r>,
    show: Show,
    without: &[&str],
) -> (Columns, Vec<Vec<Value<'r>>>) {
    let fields: Vec<_> = Sockets::FIELDS.iter().filter(|f| f.show <= show && !without.contains(&f.name)).collect();
    let columns = fields.iter().map(|f| Column { name: f.name.into(), kind: f.kind }).collect();
    let rows = sockets.iter().map(|s| fields.iter().map(|f| f.cell(s, lookups)).collect()).collect();
    (Columns(columns), rows)
}

fn pass(sink: &mut dyn Sink, columns: &Columns, rows: &[Vec<Value<'_>>], times: usize) {
    let done = sink.begin(columns, None).is_ok()
        && (0..times).all(|_| rows.iter().all(|row| sink.row(row).is_ok()))
        && sink.end(&Accounting::default()).is_ok();
    assert!(done, "a sink to nowhere refused a row");
}

fn report(format: &str, times: usize, run: impl Fn(usize)) {
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        run(times);
        best = best.min(start.elapsed().as_nanos() as f64 / (times * ROWS) as f64);
    }
    println!("  {format}: {best:.1} ns a row");
}
