//! Events for new conntrack entries on the running kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bpf::BpfError;
use bpf::conntrack_new::NewEntries;
use sys::Host;
use testkit::netns::Lab;

/// Size of an event for IPv4.
const EVENT: usize = 48;

fn open(ring_bytes: u32) -> Option<NewEntries> {
    match NewEntries::open(&Host::live(), ring_bytes) {
        Ok(program) => Some(program),
        Err(error @ BpfError::Missing { .. }) if sys::Kernel::read_running().version() < (6, 4) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn root_each_new_entry_once_and_the_rest_counted() {
    testkit::require_root!();
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("bpfnew");
    lab.use_conntrack();
    let _inside = lab.enter();
    let Some(mut program) = open(16 << 10) else { return };
    let mut events = Vec::new();
    lab.new_udp_flows(0, 200);
    assert!(program.take(&mut events).unwrap());
    assert_eq!((events.len() / EVENT, program.lost_events().unwrap()), (200, 0));
    events.clear();
    assert!(!program.take(&mut events).unwrap());
    // 16 KiB hold 292 records of 56 bytes.
    lab.new_udp_flows(1_000, 700);
    program.take(&mut events).unwrap();
    let (told, lost) = (events.len() / EVENT, program.lost_events().unwrap());
    assert_eq!((told as u64 + lost, told), (700, 292));
}

#[test]
fn root_a_place_belongs_to_one_and_is_free_again() {
    testkit::require_root!();
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("bpfplaces");
    lab.use_conntrack();
    let _inside = lab.enter();
    let Some(first) = open(4096) else { return };
    let mut all = vec![first];
    all.extend((0..3).filter_map(|_| open(4096)));
    let error = NewEntries::open(&Host::live(), 4096).unwrap_err();
    let says = "another BPF program already uses hook LOCAL_IN, priority 2147483642, in this namespace";
    assert_eq!((error.to_string().as_str(), error.is_unavailable()), (says, true));
    lab.new_udp_flows(0, 5);
    for program in &mut all {
        let mut events = Vec::new();
        program.take(&mut events).unwrap();
        assert_eq!(events.len(), 5 * EVENT, "each of them hears each");
    }
    all.clear();
    assert!(open(4096).is_some());
}
