//! Several namespaces as one table: if one is missing, only its rows are lost, and this is reported.

use crate::rows::{demand, is, test};
use record::rows::Socket;
use record::{FilterPushdown, Next, Op, Operand, Proto, Source, SourceFault};
use sockets::{AllNetnsSockets, BackendCache, Options, Via};
use std::path::Path;
use sys::{Host, NetNs, NetnsTarget};
use testkit::netns::Lab;

fn place(lab: &Lab) -> (u64, std::path::PathBuf) {
    (NetNs::open_path(&lab.path()).unwrap().inode(), lab.path())
}

fn tcp() -> Options {
    Options { order: vec![Proto::Tcp], via: Some(Via::Netlink), ..Options::new(0) }
}

/// Returns the namespaces of the rows with the number of rows of each, the messages of the footer, and `incomplete`.
fn read(host: &Host, targets: Vec<NetnsTarget<'_>>) -> (Vec<(u64, usize)>, Vec<String>, bool) {
    read_by(host, tcp(), targets)
}

fn read_by(host: &Host, options: Options, targets: Vec<NetnsTarget<'_>>) -> (Vec<(u64, usize)>, Vec<String>, bool) {
    let cache = BackendCache::new();
    let mut counts: Vec<(u64, usize)> = Vec::new();
    let stats = AllNetnsSockets::new(host, options, targets, &cache)
        .run(&demand(0, Vec::new()), &mut |row: &Socket<'_>| {
            match counts.iter_mut().find(|count| count.0 == row.netns_id) {
                Some(count) => count.1 += 1,
                None => counts.push((row.netns_id, 1)),
            }
            Next::More
        })
        .unwrap();
    assert_eq!(stats.seen, counts.iter().map(|count| count.1 as u64).sum::<u64>());
    (counts, stats.why.iter().map(|why| format!("{} {}", why.count, why.text)).collect(), stats.incomplete)
}

#[test]
fn root_one_after_the_other_and_back_home() {
    testkit::require_root!();
    let labs = [Lab::new("every"), Lab::new("every")];
    labs[0].connect_v4(2);
    labs[1].connect_v4(3);
    let home = sys::netns::current_inode().unwrap();
    let [a, b] = labs.each_ref().map(place);
    let by_path = NetnsTarget { netns_id: a.0, is_here: false, path: Some(&a.1), pid: None };
    // The path no longer leads to a namespace, so the process is used to find it.
    let pid = labs[1].spawn("sleep", &["60"]);
    let by_pid = NetnsTarget { netns_id: b.0, is_here: false, path: Some(Path::new("/dev/null")), pid: Some(pid) };
    let (rows, why, incomplete) = read(&Host::live(), vec![by_path, by_pid]);
    assert_eq!(rows, [(a.0, 5), (b.0, 7)]);
    assert!(why.is_empty() && !incomplete, "{why:?}");
    assert_eq!(sys::netns::current_inode().unwrap(), home);
}

#[test]
fn root_what_has_gone_is_counted() {
    testkit::require_root!();
    let stays = Lab::new("stays");
    stays.connect_v4(1);
    let (inode, path) = place(&stays);
    let gone = Lab::new("gone");
    let (gone_inode, gone_path) = place(&gone);
    drop(gone);
    let here = NetnsTarget { netns_id: inode, is_here: false, path: Some(&path), pid: None };
    let deleted = NetnsTarget { netns_id: gone_inode, is_here: false, path: Some(&gone_path), pid: None };
    // Its path now leads to another namespace.
    let renamed = NetnsTarget { netns_id: gone_inode, path: Some(&path), ..deleted };
    let host = Host::live();
    let (rows, why, incomplete) = read(&host, vec![deleted, here, renamed]);
    assert_eq!(rows, [(inode, 3)]);
    assert_eq!(why, ["2 a network namespace was removed before it was read"]);
    assert!(!incomplete);
}

/// A replay fails and succeeds for the same namespaces as the recorded run.
#[test]
fn root_on_tape() {
    testkit::require_root!();
    let lab = Lab::new("everytape");
    lab.connect_v4(1);
    let (inode, path) = place(&lab);
    let tmp = tempfile::tempdir().unwrap();
    let tape = tmp.path().join("tape");
    let there = NetnsTarget { netns_id: inode, is_here: false, path: Some(&path), pid: None };
    let never = NetnsTarget { netns_id: 7, is_here: false, path: None, pid: None };
    // Without BPF the kernel is not asked about a namespace that is known only by its inode.
    let targets = || if cfg!(feature = "bpf") { vec![there, never] } else { vec![there] };
    let host = Host::live().recording(&tape).unwrap();
    let live = read(&host, targets());
    host.finish().unwrap();
    drop(lab);
    assert_eq!(live.0, [(inode, 3)]);
    assert_eq!(read(&Host::open_replay(&tape).unwrap(), targets()), live);
}

#[test]
fn a_namespace_that_has_gone_is_no_error() {
    let host = Host::live();
    let closed = tempfile::tempdir().unwrap();
    let missing = closed.path().join("missing");
    let gone = NetnsTarget { netns_id: 7, is_here: false, path: Some(&missing), pid: None };
    let cache = BackendCache::new();
    let stats = AllNetnsSockets::new(&host, tcp(), vec![gone], &cache)
        .run(&demand(0, Vec::new()), &mut |_| Next::More)
        .unwrap();
    assert_eq!((stats.seen, stats.why.len()), (0, 1));
}

/// An interface has different indexes in different namespaces: its name is left to the engine.
#[test]
fn names_of_interfaces_are_not_pushed_down() {
    let host = Host::live();
    let own = NetNs::current().unwrap().inode();
    let targets = vec![NetnsTarget::current(own)];
    let cache = BackendCache::new();
    let every = AllNetnsSockets::new(&host, tcp(), targets, &cache);
    let demand = demand(0, vec![is("iface", "lo"), test("local_port", Op::Eq, Operand::Number(80))]);
    let offer = every.prepare(&demand).offer();
    assert_eq!(offer.pushdown, [FilterPushdown::Unsupported, FilterPushdown::Exact]);
    assert!(offer.explain.last().is_some_and(|line| line.contains("each of 1 network namespaces")), "{offer:?}");
    let none = AllNetnsSockets::new(&host, tcp(), Vec::new(), &cache).prepare(&demand).offer();
    assert!(none.pushdown.is_empty() && none.explain.is_empty());
}

#[test]
fn root_without_the_right_the_names_are_reported() {
    testkit::require_root!();
    let labs: Vec<Lab> = (0..4).map(|_| Lab::new("denied")).collect();
    let known: Vec<_> = labs.iter().map(place).collect();
    let targets =
        || known.iter().map(|(id, path)| NetnsTarget { netns_id: *id, is_here: false, path: Some(path), pid: None });
    // Capabilities are per thread.
    let text = std::thread::scope(|scope| {
        let run = || {
            testkit::sandbox::drop_caps(&[sys::caps::Cap::SysAdmin]).unwrap();
            let host = Host::live();
            let cache = BackendCache::new();
            let error = AllNetnsSockets::new(&host, tcp(), targets().collect(), &cache)
                .run(&demand(0, Vec::new()), &mut |_| Next::More)
                .unwrap_err();
            assert_eq!(error.fault, SourceFault::Denied);
            error.to_string()
        };
        scope.spawn(run).join().unwrap()
    });
    assert!(text.starts_with("cannot read network namespaces: 4 network namespaces were not read ("), "{text}");
    assert!(text.contains(labs[2].name()) && !text.contains(labs[3].name()), "{text}");
    assert!(text.ends_with(", …): operation not permitted (needs CAP_SYS_ADMIN)"), "{text}");
}

/// One walk of all namespaces and a dump of each return the same rows for quiet namespaces, including one with a
/// separate table and one without path or process.
#[cfg(feature = "bpf")]
#[test]
fn root_one_pass_has_what_each_has() {
    testkit::require_root!();
    let labs: Vec<Lab> = (0..3).map(|_| Lab::new("onepass")).collect();
    // Children of a namespace with this setting have a separate table.
    let child = {
        let _inside = labs[0].enter();
        std::fs::write("/proc/sys/net/ipv4/tcp_child_ehash_entries", "4096").unwrap();
        Lab::new("owntable")
    };
    for lab in labs.iter().chain([&child]) {
        lab.connect_v4(3);
        lab.connect_v6(2);
        lab.time_wait(1);
        lab.make_unaccepted(1);
    }
    let known: Vec<_> = labs.iter().chain([&child]).map(place).collect();
    let place_of = |(id, path): &'_ (u64, std::path::PathBuf)| (*id, path.clone());
    let kept: Vec<_> = known.iter().map(place_of).collect();
    let targets =
        || kept.iter().map(|(id, path)| NetnsTarget { netns_id: *id, is_here: false, path: Some(path), pid: None });
    use record::rows::{Sockets, need};
    use record::{Demand, Lookups, Table as _, field_index};
    const NEEDS: u64 = need::V6ONLY | need::QUEUES | need::INODE | need::SKMEM | need::TCP_INFO | need::IDENTITY;
    // A listener has other members of `tcp_info` than a connection.
    let names = ["unacked", "sacked", "cwnd", "reordering", "max_pacing_bps", "advmss", "sndbuf", "socket_drops"];
    let fields: Vec<usize> = names.iter().map(|name| field_index::<Sockets>(name).unwrap()).collect();
    let mut wanted = Demand::<Sockets>::new(&fields, Vec::new());
    wanted.need |= NEEDS;
    let rows = |via, targets: Vec<NetnsTarget<'_>>| {
        let host = Host::live();
        let cache = BackendCache::new();
        let mut rows = Vec::new();
        let options = Options { via: Some(via), ..tcp() };
        AllNetnsSockets::new(&host, options, targets, &cache)
            .run(&wanted, &mut |row: &Socket<'_>| {
                if kept.iter().any(|(id, _)| *id == row.netns_id) {
                    assert_ne!(row.identity(), 0);
                    let cells = fields.iter().map(|&i| Sockets::FIELDS[i].cell(row, &Lookups::empty()));
                    let cells = cells.map(|cell| format!("{cell:?}")).collect::<Vec<_>>().join(" ");
                    rows.push((row.netns_id, row.family, row.state, row.local, row.peer, row.inode, row.rqueue, cells));
                }
                Next::More
            })
            .unwrap();
        rows.sort_unstable_by_key(|row| (row.0, row.1, row.2.0, row.3, row.4));
        rows
    };
    let each = rows(Via::Netlink, targets().collect());
    assert_eq!(rows(Via::Bpf, targets().collect()), each);
    assert!(each.iter().filter(|row| row.0 == kept[3].0).count() > 10, "{each:?}");
    // A namespace without path or process cannot be entered: the others are read via netlink, this one by its inode.
    let lost = |place: NetnsTarget<'static>| place;
    let lost = lost(NetnsTarget { netns_id: kept[3].0, is_here: false, path: None, pid: None });
    let own: Vec<_> = each.iter().filter(|row| row.0 == kept[3].0).cloned().collect();
    assert_eq!(rows(Via::Netlink, vec![lost]), own);
}
