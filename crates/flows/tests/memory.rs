//! Memory of many flows, as the kernel counts it. This is a separate process, so that nothing else is counted.
#![allow(clippy::unwrap_used)]

use flows::{Ephemeral, Grouping, Listeners, direction};
use record::rows::{Endpoint, Socket};
use record::{Addr, Next, State};

const FLOWS: u32 = 300_000;
/// 36 bytes for the row, 5 per index place with 8/7 to 16/7 places per flow, and a part of the last chunk.
const BYTES_PER_FLOW_MAX: u64 = 56;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

#[test]
fn a_flow_costs_less_than_a_cache_line() {
    let listeners = Listeners::new();
    let mut grouping = Grouping::new();
    let before = resident_bytes();
    for n in 0..FLOWS {
        let peer = Endpoint { addr: Addr::V4((0x0a00_0000 + n).to_be_bytes()), port: 443 };
        let local = Endpoint { addr: Addr::V4([192, 0, 2, 1]), port: 40_000 };
        let row = Socket { state: State::ESTABLISHED, local, peer, ..Socket::EMPTY };
        grouping.add(&row, direction(&row, &listeners, Ephemeral::default()), &[]);
    }
    let bytes = resident_bytes().saturating_sub(before) / u64::from(FLOWS);
    assert!(bytes <= BYTES_PER_FLOW_MAX, "{bytes} bytes a flow");
    assert_eq!(grouping.emit(&mut |_| Next::More), u64::from(FLOWS));
}
