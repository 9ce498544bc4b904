//! Counts allocations: a row must not cost one.
//!
//! This is a separate file because the counting allocator serves the whole process.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use conntrack::{ConntrackSource, Options, Via};
use record::rows::{Nat, nat_need};
use record::{Demand, Next, Source, SourceFault};
use sys::{Errno, Host};
use testkit::conntrack::mixed_entries;
use testkit::netns::Lab;

#[global_allocator]
static HEAP: testkit::allocator::CountingAllocator = testkit::allocator::CountingAllocator;

// Number of allocations of a run in the calling thread's namespace.
fn run(via: Via, rows: u64) -> u64 {
    let host = Host::live();
    let options = Options { via: Some(via), ..Options::new(sys::netns::current_inode().unwrap()) };
    let mut demand = Demand::<Nat>::new(&[], Vec::new());
    demand.need |= nat_need::LABELS;
    let before = testkit::allocator::allocations();
    let stats = ConntrackSource::new(&host, options).run(&demand, &mut |row| {
        std::hint::black_box(row);
        Next::More
    });
    let count = testkit::allocator::allocations() - before;
    assert_eq!(stats.unwrap().seen, rows);
    count
}

#[test]
fn root_thousands_of_rows_allocate_as_much_as_ten() {
    testkit::require_root!();
    let (few, many) = (Lab::new("ctfew"), Lab::new("ctmany"));
    few.track(mixed_entries(10));
    many.track(mixed_entries(4_000));
    for via in [Via::Netlink, Via::Proc] {
        let (ten, thousands) = (few.run_inside(|| run(via, 10)), many.run_inside(|| run(via, 4_000)));
        // The vector of row keys grows from 4 to 4096 by doubling.
        assert!(thousands <= ten + 20, "{}: {ten} for 10, {thousands} for 4000", via.name());
    }
}

/// On a kernel without connection tracking neither backend opens, and the error says so.
#[test]
fn a_kernel_without_it() {
    let result = std::thread::spawn(|| {
        testkit::sandbox::refuse_socket(16, Errno::PROTONOSUPPORT).unwrap();
        let nothing = std::env::temp_dir().join(format!("netwren-noproc-{}", std::process::id()));
        let host = Host::with_roots(nothing.clone(), nothing.clone(), nothing);
        let read =
            ConntrackSource::new(&host, Options::new(1)).run(&Demand::<Nat>::new(&[], Vec::new()), &mut |_| Next::More);
        let error = read.unwrap_err();
        assert_eq!(error.fault, SourceFault::Unsupported);
        error.to_string()
    });
    let says = result.join().unwrap();
    assert!(says.contains("cannot read the connection-tracking table") && says.contains("nf_conntrack"), "{says}");
}
