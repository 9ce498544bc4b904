//! A row costs no allocation: counted, not timed.
//!
//! This is a separate file because the counting allocator applies to the whole process.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use netlink::Messages;
use record::rows::Sockets;
use record::{Demand, Next, Proto, Source};
use sockets::{Options, SocketSource, Via, decode_inet};
use sys::Host;
use testkit::netns::Lab;

#[global_allocator]
static HEAP: testkit::allocator::CountingAllocator = testkit::allocator::CountingAllocator;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = testkit::allocator::allocations();
    work();
    testkit::allocator::allocations() - before
}

// Counts the allocations and rows of one run in the calling thread's namespace.
fn run(via: Via, netns_id: u64) -> (u64, u64) {
    let host = Host::live();
    let options = Options { via: Some(via), order: vec![Proto::Tcp], ..Options::new(netns_id) };
    let source = SocketSource::new(&host, options);
    let demand = Demand::<Sockets>::new(&[], Vec::new());
    let mut rows = 0;
    let count = allocations(|| {
        let stats = source.run(&demand, &mut |row| {
            std::hint::black_box(row);
            Next::More
        });
        rows = stats.unwrap().seen;
    });
    (count, rows)
}

#[test]
fn root_a_thousand_rows_allocate_as_much_as_ten() {
    testkit::require_root!();
    let (few, many) = (Lab::new("fewrows"), Lab::new("manyrows"));
    let _ = (few.connect_v4(5), many.connect_v4(300), many.connect_v6(300));
    for via in [Via::Netlink, Via::Proc] {
        let of = |lab: &Lab| lab.run_inside(|| run(via, sys::netns::current_inode().unwrap()));
        let ((count_few, rows_few), (count_many, rows_many)) = (of(&few), of(&many));
        assert!(rows_few >= 10 && rows_many >= 1200);
        // The line buffer for /proc may grow once or twice until it is large enough.
        assert!(
            count_many <= count_few + 3,
            "{}: {count_few} for {rows_few}, {count_many} for {rows_many}",
            via.name()
        );
    }
}

#[test]
fn decoding_allocates_nothing() {
    let path = testkit::program::workspace().join("fixtures/sock_diag/6.18/tcp4-established.nl");
    let bytes = std::fs::read(path).unwrap();
    let count = allocations(|| {
        for message in Messages::new(&bytes).map_while(Result::ok).filter(|message| !message.is_end()) {
            let row = decode_inet(message.payload, Proto::Tcp, 1);
            assert!(row.is_ok_and(|row| row.tcp_info.is_some()));
        }
    });
    assert_eq!(count, 0);
}
