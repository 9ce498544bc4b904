//! The kernel's iterator over TCP sockets, which replaces the walk. `walk.rs` tests that it returns the same rows as
//! netlink.
use record::rows::need;
use record::{Expr, Next, Op, Operand, Proto, Source, State};
use sockets::{BackendCache, Options, SocketSource, Via};
use sys::fault::{Fault, arm, disarm_all};
use sys::{Errno, Host};
use testkit::netns::Lab;

use crate::rows::{Kept, demand, here, is, read, read_with_cache, test};

const FIELDS: u64 = need::V6ONLY | need::IFACE_MARK | need::TIMER | need::QUEUES | need::INODE | need::UID | need::MARK;

fn tcp(via: Option<Via>) -> Options {
    Options { via, order: vec![Proto::Tcp], ..here() }
}

/// The iterator also returns listeners, so netlink is not needed, and one load serves many rounds.
#[test]
fn root_it_needs_no_netlink() {
    testkit::require_root!();
    let lab = Lab::new("iterator");
    let _ = (lab.connect_v4(5), lab.listen_tcp(3));
    lab.run_inside(|| {
        let cache = BackendCache::without_walk();
        for round in 0..3 {
            if round > 0 {
                // Loading the program again would fail; the first two calls of bpf(2) are those that run it.
                arm("bpf", 2, 1000, Fault::Fails(Errno::PERM));
            }
            let (rows, stats) =
                read_with_cache(&Host::live(), &cache, tcp(Some(Via::Bpf)), &demand(FIELDS, Vec::new()));
            disarm_all();
            assert_eq!((rows.len(), &stats.via[..]), (14, &["bpf"][..]), "{stats:?}");
            assert_eq!(rows.iter().filter(|row| row.state == State::LISTEN).count(), 4);
        }
        assert!(cache.refusal().is_none() && cache.passed_over().is_none());
    });
}

/// The iterator is chosen automatically if it pays, otherwise netlink.
#[test]
fn root_it_is_chosen_by_size() {
    testkit::require_root!();
    let lab = Lab::new("iteratorsize");
    let _ = lab.connect_v4(10);
    lab.run_inside(|| {
        for (from, backend) in [(5, "bpf"), (5_000, "netlink")] {
            let (host, cache) = (Host::live(), BackendCache::without_walk());
            let options = Options { walk_from: Some(from), ..tcp(None) };
            let (rows, stats) = read_with_cache(&host, &cache, options.clone(), &demand(0, Vec::new()));
            assert_eq!((rows.len(), &stats.via[..]), (21, &[backend][..]), "{stats:?}");
            let explain =
                SocketSource::new(&host, options).with_cache(&cache).prepare(&demand(0, Vec::new())).offer().explain;
            assert!(explain[0].starts_with(&format!("tcp sockets via {backend} (")), "{explain:?}");
        }
        // According to the measurements, netlink is chosen for so few.
        let (_, stats) =
            read_with_cache(&Host::live(), &BackendCache::without_walk(), tcp(None), &demand(0, Vec::new()));
        assert_eq!(stats.via, ["netlink"]);
    });
}

/// The kernel accepts neither program.
#[test]
fn root_netlink_is_left() {
    testkit::require_root!();
    let lab = Lab::new("iteratornone");
    let _ = lab.connect_v4(10);
    lab.run_inside(|| {
        let (host, cache) = (Host::live(), BackendCache::without_walk());
        arm("bpf", 0, 1000, Fault::Fails(Errno::INVAL));
        let options = Options { walk_from: Some(1), ..tcp(None) };
        let (rows, stats) = read_with_cache(&host, &cache, options, &demand(0, Vec::new()));
        let insisting = SocketSource::new(&host, tcp(Some(Via::Bpf))).run(&demand(0, Vec::new()), &mut |_| Next::More);
        disarm_all();
        assert_eq!((rows.len(), &stats.via[..], stats.is_partial()), (21, &["netlink"][..], false), "{stats:?}");
        assert!(cache.refusal().is_some() && cache.passed_over().is_some());
        // The listener via netlink, and the reason why there is nothing else.
        let stats = insisting.unwrap();
        assert!(stats.seen == 1 && stats.is_partial() && stats.why[0].text.contains("BPF"), "{stats:?}");
    });
}

#[test]
fn root_a_recorded_iterator_is_replayed() {
    testkit::require_root!();
    let lab = Lab::new("iteratortape");
    let _ = (lab.connect_v4(40), lab.connect_v6(40), lab.listen_tcp(7), lab.time_wait(3));
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let (options, live) = lab.run_inside(|| {
        let host = Host::live().recording(&tape).unwrap();
        let cache = BackendCache::without_walk();
        let (rows, _) = read_with_cache(&host, &cache, tcp(Some(Via::Bpf)), &demand(FIELDS, Vec::new()));
        host.finish().unwrap();
        (tcp(None), rows)
    });
    let replayed =
        |filter: Vec<Expr>| read(&Host::open_replay(&tape).unwrap(), options.clone(), &demand(FIELDS, filter));
    let (rows, stats) = replayed(Vec::new());
    assert_eq!(rows, live);
    assert_eq!((&stats.via[..], stats.is_partial(), stats.why.len()), (&["bpf"][..], false, 0), "{stats:?}");
    for (word, state) in [("listen", State::LISTEN), ("time_wait", State::TIME_WAIT)] {
        let of_state = |rows: &[Kept]| rows.iter().filter(|row| row.state == state).count();
        let (rows, stats) = replayed(vec![is("state", word)]);
        assert_eq!(of_state(&rows), of_state(&live), "{stats:?}");
        assert!(of_state(&rows) >= 3);
    }
    let port = live.iter().find(|row| row.state == State::LISTEN).unwrap().local.1;
    let (rows, _) = replayed(vec![test("local_port", Op::Eq, Operand::Number(port.into()))]);
    assert!(rows.iter().any(|row| row.local.1 == port));
}
