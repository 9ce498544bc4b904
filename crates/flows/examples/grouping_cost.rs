//! Measures the cost of grouping: nanoseconds per socket and bytes per flow.
//!
//! `cargo run --release -p flows --example grouping_cost`. The cost of creating the rows is measured and subtracted;
//! the tables imitate a busy server, a proxy with many peers and the worst case.

use flows::{Ephemeral, Grouping, Listeners, direction};
use record::rows::{Endpoint, Socket};
use record::{Addr, Next, State};
use std::hint::black_box;
use std::time::Instant;

/// Number of sockets in each table.
const SOCKETS: u32 = 1_000_000;

fn row(n: u32, flows: u32) -> Socket<'static> {
    let mixed = n.wrapping_mul(2_654_435_761);
    let peer = Addr::V4((0x0a00_0000 + mixed % flows / 2).to_be_bytes());
    let local = Addr::V4([192, 0, 2, 1]);
    let ephemeral = 33_000 + (mixed >> 16) as u16 % 20_000;
    let (ours, theirs) = if mixed % flows % 2 == 0 { (443, ephemeral) } else { (ephemeral, 5_432) };
    Socket {
        state: if n % 16 == 0 { State::TIME_WAIT } else { State::ESTABLISHED },
        local: Endpoint { addr: local, port: ours },
        peer: Endpoint { addr: peer, port: theirs },
        family: 2,
        netns_id: 4_026_531_840,
        ..Socket::EMPTY
    }
}

/// Resident bytes of this process; 0 without /proc.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4_096
}

fn measure(flows: u32) {
    let mut listeners = Listeners::new();
    let service = Endpoint { addr: Addr::ANY6, port: 443 };
    listeners.add(&Socket { state: State::LISTEN, local: service, netns_id: 4_026_531_840, ..Socket::EMPTY });
    let before = resident();
    let mut grouping = Grouping::new();
    let start = Instant::now();
    for n in 0..SOCKETS {
        black_box(row(black_box(n), flows));
    }
    let making = start.elapsed();
    let start = Instant::now();
    for n in 0..SOCKETS {
        let row = row(black_box(n), flows);
        grouping.add(&row, direction(&row, &listeners, Ephemeral::default()), &[]);
    }
    let grouped = start.elapsed().saturating_sub(making);
    let bytes = resident().saturating_sub(before);
    let start = Instant::now();
    let mut connections = 0;
    grouping.emit(&mut |flow| {
        connections += flow.connections;
        Next::More
    });
    println!(
        "{:>9} flows of {connections} sockets: {:>5.1} ns a socket, {:>5.1} bytes a flow, {:>6.1} ms to sort and hand \
         out",
        grouping.len(),
        grouped.as_nanos() as f64 / f64::from(SOCKETS),
        bytes as f64 / grouping.len() as f64,
        start.elapsed().as_secs_f64() * 1e3,
    );
}

fn main() {
    let asked: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let tables = if asked.is_empty() { vec![10, 100_000, 500_000, SOCKETS] } else { asked };
    tables.into_iter().for_each(measure);
}
