//! Every socket is shown once, even if it shares its address with others; and an interrupted walk loses none.
use std::collections::BTreeSet;
use std::net::SocketAddr;

use record::rows::{Socket, need};
use record::{Accounting, Next, Proto, Source};
use sockets::{AllNetnsSockets, BackendCache, Options, SocketSource, Via};
use sys::socket::{SOCK_DGRAM, SOCK_STREAM};
use sys::{Host, NetNs, NetnsTarget};
use testkit::netns::Lab;

use crate::rows::demand;

/// Namespace, state, local port, peer port, inode.
type Known = (u64, u8, u16, u16, u32);

fn known(row: &Socket<'_>) -> Known {
    (row.netns_id, row.state.0, row.local.port, row.peer.port, row.inode)
}

fn options(proto: Proto, via: Option<Via>, netns_id: u64) -> Options {
    Options { via, walk_from: Some(0), ..Options::for_table(proto, netns_id) }
}

/// Reads the namespaces of `labs`, sorted, with one walk or each separately; also returns the row counts.
fn of_all(
    host: &Host,
    cache: &BackendCache,
    (proto, via): (Proto, Option<Via>),
    labs: &[&Lab],
) -> (Vec<Known>, Accounting) {
    let paths: Vec<_> = labs.iter().map(|lab| (NetNs::open_path(&lab.path()).unwrap().inode(), lab.path())).collect();
    let way = |(id, path): &'_ (u64, std::path::PathBuf)| (*id, path.clone());
    let kept: Vec<_> = paths.iter().map(way).collect();
    let targets =
        kept.iter().map(|(id, path)| NetnsTarget { netns_id: *id, is_here: false, path: Some(path), pid: None });
    let mut source = AllNetnsSockets::new(host, options(proto, via, 0), targets.collect(), cache);
    collected(&mut source, |row| kept.iter().any(|(id, _)| *id == row.netns_id))
}

fn of_one(cache: &BackendCache, (proto, via): (Proto, Option<Via>), lab: &Lab) -> (Vec<Known>, Accounting) {
    let _inside = lab.enter();
    let host = Host::live();
    let own = sys::netns::current_inode().unwrap();
    let mut source = SocketSource::new(&host, options(proto, via, own)).with_cache(cache);
    collected(&mut source, |_| true)
}

fn collected(
    source: &mut dyn Source<record::rows::Sockets>,
    wanted: impl Fn(&Socket<'_>) -> bool,
) -> (Vec<Known>, Accounting) {
    let (mut rows, mut all) = (Vec::new(), 0);
    let stats = source.run(&demand(need::INODE, Vec::new()), &mut |row: &Socket<'_>| {
        all += 1;
        if wanted(row) {
            rows.push(known(row));
        }
        Next::More
    });
    let stats = stats.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(stats.seen, all + stats.duplicates + stats.failed + stats.filtered, "{stats:?}");
    assert!(!stats.is_partial(), "{stats:?}");
    rows.sort_unstable();
    (rows, stats)
}

const TCP: [Option<Via>; 4] = [None, Some(Via::Netlink), Some(Via::Proc), Some(Via::Bpf)];

/// As many sockets as ss(8) counts, with every interface, for one namespace and for all.
#[test]
fn root_issue_10_sockets_that_share_an_address_are_all_there() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    for n in [4, 100] {
        let lab = Lab::new("sharing");
        for addr in ["127.0.0.1:7400", "[::]:7401"] {
            let addr: SocketAddr = addr.parse().unwrap();
            lab.share(SOCK_STREAM, addr, n);
            lab.share(SOCK_DGRAM, addr, n);
        }
        for (proto, flags) in [(Proto::Tcp, "-Htlna"), (Proto::Udp, "-Huna")] {
            let expected = lab.output("ss", &[flags]).lines().count();
            assert_eq!(expected, 2 * n);
            for via in TCP.into_iter().filter(|via| proto == Proto::Tcp || *via != Some(Via::Bpf)) {
                let (one, _) = of_one(&BackendCache::new(), (proto, via), &lab);
                let (all, _) = of_all(&Host::live(), &BackendCache::new(), (proto, via), &[&lab]);
                assert_eq!((one.len(), all.len()), (expected, expected), "{proto:?} {via:?}");
                assert_eq!(one.iter().map(|row| row.4).collect::<BTreeSet<_>>().len(), expected);
                assert_eq!(one, all);
            }
        }
        // The kernel's iterator replaces the walk.
        let (rows, _) = of_one(&BackendCache::without_walk(), (Proto::Tcp, Some(Via::Bpf)), &lab);
        assert_eq!(rows.len(), 2 * n);
    }
}

#[test]
fn root_issue_10_unnamed_unix_sockets_are_all_there() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    let lab = Lab::new("unnamed");
    (0..20).for_each(|_| lab.unix_pair());
    let expected = lab.output("ss", &["-Hxa"]).lines().count();
    assert_eq!(expected, 40);
    for via in [None, Some(Via::Netlink), Some(Via::Proc)] {
        assert_eq!(of_one(&BackendCache::new(), (Proto::Unix, via), &lab).0.len(), expected, "{via:?}");
        assert_eq!(
            of_all(&Host::live(), &BackendCache::new(), (Proto::Unix, via), &[&lab]).0.len(),
            expected,
            "{via:?}"
        );
    }
}

/// A chain of the table of listeners is too long for the memory region; sockets of other namespaces are in the table.
#[test]
fn root_issue_10_one_users_long_chain_hides_no_row() {
    testkit::require_root!();
    const LISTENERS: usize = 9_000;
    let (crowd, others) = (Lab::new("crowd"), Lab::new("others"));
    let _ = (others.connect_v4(50), others.connect_v6(50), others.listen_tcp(20));
    crowd.share(SOCK_STREAM, ([127, 0, 0, 1], 7402).into(), LISTENERS);
    let host = Host::live();
    let (expected, _) = of_all(&host, &BackendCache::new(), (Proto::Tcp, Some(Via::Netlink)), &[&crowd, &others]);
    assert!(expected.len() > LISTENERS + 200);
    for via in [None, Some(Via::Bpf)] {
        let cache = BackendCache::new();
        for _ in 0..2 {
            let (rows, stats) = of_all(&host, &cache, (Proto::Tcp, via), &[&crowd, &others]);
            assert_eq!(rows.len(), expected.len(), "{stats:?}");
            assert!(rows == expected && stats.duplicates == 0 && stats.via == ["bpf"], "{stats:?}");
        }
    }
}

/// Wherever a walk is interrupted, netlink reads the rest, without repeating rows.
#[test]
fn root_issue_10_a_walk_that_breaks_off_is_finished_by_netlink() {
    testkit::require_root!();
    let labs = [Lab::new("broken"), Lab::new("broken")];
    for lab in &labs {
        let _ =
            (lab.connect_v4(150), lab.connect_v6(50), lab.connect_mapped(20), lab.time_wait(5), lab.make_unaccepted(2));
        lab.share(SOCK_STREAM, ([127, 0, 0, 1], 7403).into(), 50);
        lab.share(SOCK_STREAM, "[::]:7404".parse().unwrap(), 50);
    }
    let host = Host::live();
    let both = [&labs[0], &labs[1]];
    let (expected, _) = of_all(&host, &BackendCache::new(), (Proto::Tcp, Some(Via::Netlink)), &both);
    let (expected_of_one, _) = of_one(&BackendCache::new(), (Proto::Tcp, Some(Via::Netlink)), both[0]);
    let broke_off = |stats: &Accounting| stats.why.iter().any(|why| why.text.contains("read via netlink"));
    let (mut of_all_finished, mut of_one_broken) = (0, 0);
    // The number of blocks depends on the size of the kernel's table and on where its hash puts these sockets, which
    // may leave some blocks empty. So a walk may end before the last of these.
    for blocks in [0, 1, 2, 3, 5, 9, 17, 33, 50, 60] {
        let breaking = || BackendCache::breaking_off_after(blocks);
        let (rows, stats) = of_all(&host, &breaking(), (Proto::Tcp, None), &both);
        assert_eq!(rows.len(), expected.len(), "after {blocks}: {stats:?}");
        assert!(rows == expected, "after {blocks}: {stats:?}");
        assert!(broke_off(&stats) || blocks > 5, "after {blocks}: {stats:?}");
        of_all_finished += usize::from(stats.via == ["bpf", "netlink"] && stats.duplicates > 0);

        let (rows, stats) = of_one(&breaking(), (Proto::Tcp, None), both[0]);
        assert!(rows == expected_of_one, "after {blocks}: {stats:?}");
        assert!(broke_off(&stats) || blocks > 5, "after {blocks}: {stats:?}");
        of_one_broken += usize::from(broke_off(&stats));
    }
    assert!(of_all_finished >= 4 && of_one_broken >= 5, "{of_all_finished}, {of_one_broken}");
}

/// A recording of an interrupted walk also contains the rest.
#[test]
fn root_issue_10_a_finished_walk_on_tape() {
    testkit::require_root!();
    let lab = Lab::new("brokentape");
    let _ = (lab.connect_v4(50), lab.connect_v6(50));
    lab.share(SOCK_STREAM, ([127, 0, 0, 1], 7405).into(), 4);
    let tmp = tempfile::tempdir().unwrap();
    let tape = tmp.path().join("tape");
    let host = Host::live().recording(&tape).unwrap();
    let live = of_all(&host, &BackendCache::breaking_off_after(9), (Proto::Tcp, None), &[&lab]);
    host.finish().unwrap();
    assert_eq!((live.0.len(), &live.1.via[..]), (206, &["bpf", "netlink"][..]), "{:?}", live.1);
    let replayed = of_all(&Host::open_replay(&tape).unwrap(), &BackendCache::new(), (Proto::Tcp, None), &[&lab]);
    assert_eq!(replayed.0, live.0, "{:?}", replayed.1);
}

/// If the user insists on the walk, its interruption is reported.
#[test]
fn root_issue_10_a_broken_walk_that_is_insisted_on_is_not_whole() {
    testkit::require_root!();
    let lab = Lab::new("insisted");
    let _ = lab.connect_v4(200);
    let (id, path) = (NetNs::open_path(&lab.path()).unwrap().inode(), lab.path());
    let target = NetnsTarget { netns_id: id, is_here: false, path: Some(&path), pid: None };
    let (host, cache) = (Host::live(), BackendCache::breaking_off_after(5));
    let options = options(Proto::Tcp, Some(Via::Bpf), 0);
    let stats =
        AllNetnsSockets::new(&host, options, vec![target], &cache).run(&demand(0, Vec::new()), &mut |_| Next::More);
    let stats = stats.unwrap();
    assert!(stats.is_partial() && stats.why[0].text.contains("incomplete"), "{stats:?}");
}
