//! The cost of one row of a face, from the typed row to bytes, in nanoseconds.
//!
//! `cargo run --profile quick -p faces --example face_cost [ROUNDS]`; the best of several passes is shown. To get
//! instructions per row, run it under a profiler with two different numbers of rounds.
#![allow(clippy::print_stdout)]

use faces::netstat::output as netstat;
use faces::ss::output as ss;
use record::rows::{Endpoint, Socket};
use record::{Addr, Lookups, Proto, State};
use sinks::Out;
use std::io::{self, Write};
use std::time::Instant;

/// Takes all bytes and keeps a hash of them.
#[derive(Default)]
struct Hash {
    bytes: u64,
    hash: u64,
    quiet: bool,
}

impl Write for Hash {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.bytes += block.len() as u64;
        if !self.quiet {
            for &b in block {
                self.hash = (self.hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        Ok(block.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const ROWS: usize = 20_000;

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(60usize);
    let only = std::env::args().nth(2);
    let four: Vec<Socket<'_>> = (0..ROWS).map(|n| socket(n, false)).collect();
    let mixed: Vec<Socket<'_>> = (0..ROWS).map(|n| socket(n, n % 4 == 0)).collect();
    let table = ss::Options::plain(ss::Layout::V6_1).without(ss::show::NETID);
    let runs: [(&str, &dyn Fn(Hash) -> Hash); 5] = [
        ("ss -tan, IPv4", &|to| ss(&four, table, to)),
        ("ss -tan, a quarter IPv6", &|to| ss(&mixed, table, to)),
        ("ss -tane, a quarter IPv6", &|to| ss(&mixed, table.with(ss::show::TIMERS | ss::show::DETAILS), to)),
        ("netstat -tan, IPv4", &|to| netstat(&four, to)),
        ("netstat -tan, a quarter IPv6", &|to| netstat(&mixed, to)),
    ];
    for (name, run) in runs {
        if only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            continue;
        }
        let mut best = f64::INFINITY;
        for _ in 0..rounds {
            let start = Instant::now();
            run(Hash { quiet: true, ..Hash::default() });
            best = best.min(start.elapsed().as_nanos() as f64 / ROWS as f64);
        }
        let sum = run(Hash::default());
        println!("{name}: {best:.1} ns a row, {} bytes, hash {:016x}", sum.bytes, sum.hash);
    }
}

fn ss(rows: &[Socket<'_>], options: ss::Options, to: Hash) -> Hash {
    let mut writer = ss::Writer::new(options, &|_, _| None, to);
    let done = rows.iter().all(|row| writer.row(row, &Lookups::empty()).is_ok()) && writer.finish().is_ok();
    assert!(done, "an output to nowhere refused a row");
    writer.into_inner()
}

fn netstat(rows: &[Socket<'_>], to: Hash) -> Hash {
    let names = netstat::Names { service: &|_, _| None, argv0: &|_, _| false };
    let mut writer = netstat::Writer::new(Out::new(to), netstat::SocketLayout::PLAIN, names);
    let done = writer.begin().is_ok()
        && rows.iter().all(|row| writer.row(row, &Lookups::empty()).is_ok())
        && writer.end().is_ok();
    assert!(done, "an output to nowhere refused a row");
    writer.into_out().into_inner()
}

/// A socket of a host with private and documentation addresses.
fn socket(n: usize, six: bool) -> Socket<'static> {
    let (a, b) = ((n / 7) as u8, n as u8);
    let addr = |v4: [u8; 4]| match six {
        true => Addr::V6([0x20, 1, 0x0d, 0xb8, 0, v4[1], 0, 0, 0, 0, 0, 0, 0, 0, a, b]),
        false => Addr::V4(v4),
    };
    Socket {
        proto: Proto::Tcp,
        family: if six { 10 } else { 2 },
        state: [State::ESTABLISHED, State::TIME_WAIT, State::ESTABLISHED, State::CLOSE_WAIT][n / 3 % 4],
        local: Endpoint { addr: addr([192, 0, 2, a]), port: 443 },
        peer: Endpoint { addr: addr([10, a, b, 200]), port: 30_000 + (n * 97) as u16 % 30_000 },
        rqueue: 0,
        wqueue: Some(if n % 8 == 0 { 4380 } else { 0 }),
        uid: Some(1000),
        inode: 1_153_222 + n as u32,
        cookie: 77_000 + n as u64,
        netns_id: 4_026_531_840,
        ..Socket::EMPTY
    }
}
