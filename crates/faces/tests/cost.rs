//! The cost of a line, counted and not timed.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use faces::netstat::output as netstat;
use record::rows::{Endpoint, Socket};
use record::{Addr, Lookups};
use sinks::Out;

#[global_allocator]
static HEAP: testkit::allocator::CountingAllocator = testkit::allocator::CountingAllocator;

/// Lines of a round.
const ROWS: u32 = 1_000;

/// A face allocates nothing once its buffers have their size, even for rows that are held back.
#[test]
fn a_line_of_netstat_allocates_nothing() {
    let plain = netstat::SocketLayout::PLAIN;
    let options = netstat::SocketLayout { extended: true, programs: true, timers: true, bug_compatible: true, ..plain };
    let names = netstat::Names { service: &|_, _| None, argv0: &|_, _| false };
    let mut writer = netstat::Writer::new(Out::new(std::io::sink()), options, names);
    let long = Endpoint { addr: Addr::V6([0xfe; 16]), port: 65_535 };
    let short = Endpoint { addr: Addr::V4([192, 0, 2, 1]), port: 80 };
    let six = Socket { family: 10, local: long, peer: long, ..Socket::EMPTY };
    let four = Socket { family: 2, local: short, peer: short, ..Socket::EMPTY };
    let mut round = || {
        writer.begin().unwrap();
        let before = testkit::allocator::allocations();
        for n in 0..ROWS {
            writer.row(if n % 4 == 0 { &six } else { &four }, &Lookups::empty()).unwrap();
        }
        let asked = testkit::allocator::allocations() - before;
        writer.end().unwrap();
        asked
    };
    round();
    assert_eq!(round(), 0);
}
