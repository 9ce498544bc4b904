//! Messages for tests of outputs.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, unreachable_pub)]

use export::{Batch, Transport};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Messages `from..to`: one line with the number each.
pub fn batch(from: u64, to: u64) -> Batch {
    let mut batch = Batch::new();
    for number in from..to {
        batch.bytes_mut().extend_from_slice(format!("{number:08}\n").as_bytes());
        batch.end_message();
    }
    batch
}

/// Sends all messages with an open transport, as an output does; returns how many were refused.
pub fn send_all(transport: &mut dyn Transport, batch: &Batch) -> u64 {
    let (mut at, mut refused) = (0, 0);
    let until = Instant::now() + Duration::from_secs(60);
    while at < batch.bytes().len() && Instant::now() < until {
        transport.prepare(batch, at).unwrap();
        let taken = transport.send(batch, at).unwrap();
        at += taken.bytes;
        refused += taken.refused;
    }
    assert_eq!(at, batch.bytes().len());
    refused
}

/// Counts how often each number occurs in the text.
pub fn counts(text: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        *counts.entry(line.parse().unwrap_or_else(|_| panic!("a torn line: {line:?}"))).or_insert(0) += 1;
    }
    counts
}

/// The counts if each number occurs once.
pub fn whole(from: u64, to: u64) -> BTreeMap<u64, u32> {
    (from..to).map(|number| (number, 1)).collect()
}

/// Waits until the other end of an IPv4 connection has shut down its sending side.
pub fn until_ended(stream: &TcpStream) {
    let port = |address: std::io::Result<SocketAddr>| format!(":{:04X}", address.unwrap().port());
    let (here, there) = (port(stream.local_addr()), port(stream.peer_addr()));
    testkit::wait_until("the other end has ended", || {
        std::fs::read_to_string("/proc/net/tcp").unwrap().lines().any(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            // 08: CLOSE_WAIT (include/net/tcp_states.h).
            cells[1].ends_with(&here) && cells[2].ends_with(&there) && cells[3] == "08"
        })
    });
}
