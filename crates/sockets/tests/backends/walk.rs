//! The BPF walk returns the same rows as netlink; and the fallbacks if it is not available.
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use record::rows::{Sockets, need};
use record::{Demand, Expr, Field, Next, Op, Operand, Proto, Source, SourceFault, State, Table, field_index};
use sockets::{BackendCache, Families, Options, SocketSource, Via};
use sys::caps::Cap;
use sys::fault::{Fault, arm, disarm_all};
use sys::{Errno, Host};
use testkit::netns::Lab;

use crate::compliance::last_words;
use crate::odd_sockets;
use crate::rows::{Kept, demand, here, is, read, read_with_cache, test};

const FIELDS: u64 = need::V6ONLY
    | need::IFACE_MARK
    | need::ACCEPT_MAX
    | need::TIMER
    | need::QUEUES
    | need::INODE
    | need::UID
    | need::MARK;

fn tcp(via: Option<Via>) -> Options {
    Options { via, order: vec![Proto::Tcp], ..here() }
}

// Clears fields that the walk lacks, and running times.
fn comparable(rows: Vec<Kept>) -> Vec<Kept> {
    let mut rows: Vec<Kept> =
        rows.into_iter().map(|row| Kept { cookie: 0, cgroup_id: None, timer_ms: 0, ..row }).collect();
    rows.sort();
    rows
}

fn by(via: Via, cache: &BackendCache, demand: &Demand<Sockets>) -> Vec<Kept> {
    let (rows, stats) = read_with_cache(&Host::live(), cache, tcp(Some(via)), demand);
    assert!(!stats.is_partial() && stats.duplicates == 0, "{stats:?}");
    assert!(stats.via.contains(&via.name()), "{stats:?}");
    rows
}

// Results of netlink, the walk and netlink again, from a moment when nothing changes.
fn both(cache: &BackendCache, demand: &Demand<Sockets>) -> (Vec<Kept>, Vec<Kept>, Vec<Kept>) {
    for _ in 0..50 {
        let before = by(Via::Netlink, cache, demand);
        let walked = by(Via::Bpf, cache, demand);
        let after = by(Via::Netlink, cache, demand);
        if comparable(before.clone()) == comparable(after.clone()) {
            return (before, walked, after);
        }
    }
    panic!("the table never rests");
}

fn same(cache: &BackendCache, demand: &Demand<Sockets>) -> Vec<Kept> {
    let (netlink, walk, after) = both(cache, demand);
    let set = |rows: &[Kept]| comparable(rows.to_vec()).into_iter().collect::<BTreeSet<Kept>>();
    let (only_netlink, only_walk) = (&set(&netlink) - &set(&walk), &set(&walk) - &set(&netlink));
    assert!(
        only_netlink.is_empty() && only_walk.is_empty(),
        "netlink only: {only_netlink:#?}\nwalk only: {only_walk:#?}"
    );
    assert_eq!(netlink.len(), walk.len());
    let key = |row: &Kept| (row.local, row.peer, row.inode, row.state);
    for row in walk {
        // A timer may have been set again in between.
        let near = |twin: &Kept| row.timer_ms.abs_diff(twin.timer_ms) <= 3_000;
        let mut twins = netlink.iter().chain(&after).filter(|other| key(other) == key(&row));
        assert!(twins.any(near), "{row:?}");
    }
    netlink
}

/// Sockets that are bound, but neither listening nor connected.
const BOUND: &str = r#"
import socket, sys, os, signal
s = socket.socket(); s.bind(("127.0.0.1", 7301))
t = socket.socket(socket.AF_INET6); t.bind(("::1", 7302))
open(sys.argv[1] + ".part", "w").close(); os.rename(sys.argv[1] + ".part", sys.argv[1])
signal.pause()
"#;

/// The walk, and the iterator that replaces it if a kernel refuses the walk.
fn each_program() -> [BackendCache; 2] {
    [BackendCache::new(), BackendCache::without_walk()]
}

#[test]
fn root_the_walk_and_netlink_agree() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("walk");
    let _ = (lab.connect_v4(200), lab.connect_v6(200), lab.connect_mapped(150), lab.connect_link_local(5));
    let _ = (lab.listen_tcp(60), lab.time_wait(20), lab.half_closed(10), lab.make_unaccepted(5), lab.syn_sent());
    odd_sockets::open(&lab);
    let ready = lab.dir().join("bound-ready");
    lab.spawn("python3", &["-c", BOUND, ready.to_str().unwrap()]);
    lab.wait_until("bound sockets", || ready.exists());
    last_words(&lab);
    lab.run_inside(|| each_program().iter().for_each(agrees));
}

fn agrees(cache: &BackendCache) {
    let states: Vec<&str> = (1..=11).chain([13]).map(|n| State(n).name(Proto::Tcp)).collect();
    let words = states.iter().map(|word| word.as_bytes().into()).collect();
    let every = demand(FIELDS, vec![test("state", Op::Eq, Operand::Words(words))]);
    let rows = same(cache, &every);
    let states: BTreeSet<u8> = rows.iter().map(|row| row.state.0).collect();
    // CLOSING needs two FINs that cross; sockets in CLOSE are in no table.
    assert_eq!(states, BTreeSet::from([1, 2, 3, 4, 5, 6, 8, 9, 10, 13]));
    assert!(rows.len() >= 1000, "{}", rows.len());
    assert_eq!(rows.iter().map(|row| row.family).collect::<BTreeSet<u8>>(), BTreeSet::from([2, 10]));
    assert!(rows.iter().any(|row| row.mark == Some(7)) && rows.iter().any(|row| row.ifindex == 1));
    assert!(rows.iter().any(|row| row.timer == 2) && rows.iter().any(|row| row.timer == 1));
}

/// A connection with a mark.
const MARKED: &str = r#"
import socket, sys, os, signal
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
c = socket.socket(); c.setsockopt(socket.SOL_SOCKET, 36, 7); c.connect(l.getsockname())
a = l.accept()
open(sys.argv[1] + ".part", "w").close(); os.rename(sys.argv[1] + ".part", sys.argv[1])
signal.pause()
"#;

/// Parts that cost the walk time are read only on request, each separately, and are then correct.
#[test]
fn root_parts_are_there_when_asked_for() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("walkparts");
    let _ = (lab.connect_v4(20), lab.connect_v6(20), lab.time_wait(3));
    let ready = lab.dir().join("marked-ready");
    lab.spawn("python3", &["-c", MARKED, ready.to_str().unwrap()]);
    lab.wait_until("a marked connection", || ready.exists());
    let bare = |row: &Kept| Kept { uid: None, inode: 0, mark: None, timer: 0, retrans: 0, ..row.clone() };
    let shown = |need, row: &Kept| match need {
        need::INODE => Kept { inode: row.inode, ..bare(row) },
        need::UID => Kept { uid: row.uid, ..bare(row) },
        need::MARK => Kept { mark: row.mark, ..bare(row) },
        _ => bare(row),
    };
    let told = |cache: &BackendCache| {
        let of = |via, need| comparable(by(via, cache, &demand(need, vec![is("state", "established")])));
        let whole = of(Via::Netlink, FIELDS);
        assert!(whole.iter().any(|row| row.inode != 0 && row.mark == Some(7)));
        for need in [0, need::INODE, need::UID, need::MARK] {
            let expected = whole.iter().map(|row| shown(need, row));
            let walked = of(Via::Bpf, need | need::QUEUES).into_iter();
            let walked = walked.map(|row| Kept { timer: 0, retrans: 0, ..row });
            assert_eq!(walked.collect::<BTreeSet<_>>(), expected.collect::<BTreeSet<_>>(), "{need:x}");
        }
    };
    lab.run_inside(|| told(&BackendCache::new()));
}

#[test]
fn root_filters_leave_out_the_same() {
    testkit::require_root!();
    let lab = Lab::new("walkfilter");
    let pairs = lab.connect_v4(30);
    let _ = (lab.connect_v6(30), lab.connect_mapped(30), lab.time_wait(5), lab.listen_tcp(3));
    let port = |n: u16| Operand::Number(n.into());
    let (client, service) = (pairs[0].client.port(), pairs[0].server.port());
    let leave_out = |cache: &BackendCache| {
        for (filter, least) in [
            (vec![test("local_port", Op::Eq, port(service))], 31),
            (vec![test("peer_port", Op::Eq, port(service))], 30),
            (vec![test("local_port", Op::Eq, port(client)), test("peer_port", Op::Eq, port(service))], 1),
            (vec![is("state", "time_wait")], 5),
            (vec![test("state", Op::Ne, Operand::Words(vec![b"listen"[..].into()]))], 180),
            (vec![is("family", "inet6")], 90),
            (vec![Expr::Or(vec![test("local_port", Op::Eq, port(client)), is("state", "time_wait")])], 6),
            (vec![test("local_port", Op::Lt, port(5))], 0),
        ] {
            let rows = same(cache, &demand(FIELDS, filter.clone()));
            assert!(rows.len() >= least, "{filter:?}: {}", rows.len());
            let offer = SocketSource::new(&Host::live(), tcp(Some(Via::Bpf))).prepare(&demand(0, filter)).offer();
            assert!(offer.explain[0].starts_with("tcp sockets via bpf (as asked)"), "{:?}", offer.explain);
        }
        for families in [Families::Only4, Families::Only6] {
            let of = |via| {
                let options = Options { families, ..tcp(Some(via)) };
                comparable(read_with_cache(&Host::live(), cache, options, &demand(FIELDS, Vec::new())).0)
            };
            assert_eq!(of(Via::Bpf), of(Via::Netlink));
        }
    };
    lab.run_inside(|| each_program().iter().for_each(leave_out));
}

/// The members of `tcp_info` that the walk copies are those that netlink sends.
#[test]
fn root_counters_are_the_kernels() {
    testkit::require_root!();
    let lab = Lab::new("walkcount");
    lab.run_inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for n in 1..40 {
            client.write_all(&vec![1; n * 100]).unwrap();
            std::io::Read::read_exact(&mut server, &mut vec![0; n * 100]).unwrap();
        }
        let names = [
            "bytes_in",
            "bytes_acked",
            "bytes_out",
            "bytes_retrans",
            "segs_in",
            "segs_out",
            "retrans_total",
            "rtt_us",
            "rtt_var_us",
            "cwnd",
        ];
        let demand = established(&names);
        let [walk, iterator] = each_program();
        let told = |via, cache: &BackendCache| cells_by_port(via, cache, &demand);
        let by_netlink = || told(Via::Netlink, &walk);
        lab.wait_until("the last acknowledgement", || by_netlink() == by_netlink());
        let netlink = by_netlink();
        assert_eq!(told(Via::Bpf, &walk), netlink);
        assert_eq!(told(Via::Bpf, &iterator), netlink);
        assert!(netlink.len() == 2 && netlink.iter().any(|(_, cells)| cells.contains("U64(78000)")), "{netlink:?}");
        let offer = SocketSource::new(&Host::live(), tcp(Some(Via::Bpf))).prepare(&demand).offer();
        assert_eq!(offer.lacks, 0);
        let more = established(&["ato_us"]);
        assert_ne!(SocketSource::new(&Host::live(), tcp(Some(Via::Bpf))).prepare(&more).offer().lacks, 0);
    });
}

/// A demand for these fields of established connections.
fn established(names: &[&str]) -> Demand<Sockets> {
    let fields: Vec<usize> = names.iter().map(|name| field_index::<Sockets>(name).unwrap()).collect();
    Demand::new(&fields, vec![is("state", "established")])
}

/// The demanded cells of each socket, with its local port.
fn cells_by_port(via: Via, cache: &BackendCache, demand: &Demand<Sockets>) -> Vec<(u16, String)> {
    let mut told = Vec::new();
    let host = Host::live();
    let stats = SocketSource::new(&host, tcp(Some(via))).with_cache(cache).run(demand, &mut |row| {
        let lookups = record::Lookups::empty();
        let cells = demand.fields.iter().map(|&i| format!("{:?}", Sockets::FIELDS[i].cell(row, &lookups)));
        told.push((row.local.port, cells.collect::<Vec<_>>().join(" ")));
        Next::More
    });
    assert!(!stats.unwrap().is_partial());
    told.sort();
    told
}

/// Times that run on between two readings.
const RUNNING: [&str; 3] = ["last_data_sent_ms", "last_data_recv_ms", "last_ack_recv_ms"];

/// The walk's `tcp_info` and memory are those that netlink sends: of connections that have moved data both ways, of one
/// that waits for its peer's window, and of one whose options are off.
#[test]
fn root_the_whole_tcp_info_is_the_kernels() {
    testkit::require_root!();
    let lab = Lab::new("walkinfo");
    lab.run_inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let pair = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let (mut client, mut server) = pair();
        for n in 1..40 {
            client.write_all(&vec![1; n * 1000]).unwrap();
            std::io::Read::read_exact(&mut server, &mut vec![0; n * 1000]).unwrap();
            server.write_all(b"answer").unwrap();
            std::io::Read::read_exact(&mut client, &mut [0; 6]).unwrap();
        }
        let (mut stalled, _unread) = pair();
        stalled.set_nonblocking(true).unwrap();
        while stalled.write(&[1; 65_536]).is_ok() {}
        for option in ["tcp_window_scaling", "tcp_timestamps", "tcp_sack"] {
            std::fs::write(format!("/proc/sys/net/ipv4/{option}"), "0").unwrap();
        }
        let _plain = pair();

        let walk = BackendCache::new();
        let is_told = |field: &Field<Sockets>| {
            let lacked = sockets::NOT_IN_WALK.contains(&field.name) || RUNNING.contains(&field.name);
            field.need & (need::TCP_INFO | need::SKMEM) != 0 && !lacked
        };
        let names: Vec<&str> = Sockets::FIELDS.iter().filter(|field| is_told(field)).map(|field| field.name).collect();
        assert!(names.len() > 50, "{names:?}");
        let demand = established(&names);
        assert_eq!(SocketSource::new(&Host::live(), tcp(Some(Via::Bpf))).prepare(&demand).offer().lacks, 0);
        let both = || [Via::Netlink, Via::Bpf].map(|via| cells_by_port(via, &walk, &demand));
        // The last acknowledgements may still be on their way.
        let [netlink, bpf] = testkit::until_equal(both, |[netlink, bpf]| netlink == bpf);
        assert_eq!(bpf, netlink);
        assert_eq!(netlink.len(), 6);
        // A time without a change is near the other, in milliseconds.
        let demand = established(&RUNNING);
        let times = |via| {
            let told = cells_by_port(via, &walk, &demand);
            let of =
                |cells: &str| cells.split(['(', ')']).filter_map(|word| word.parse::<i64>().ok()).collect::<Vec<_>>();
            told.iter().flat_map(|(_, cells)| of(cells)).collect::<Vec<_>>()
        };
        let near = |[one, other]: &[Vec<i64>; 2]| one.iter().zip(other).all(|(one, other)| (one - other).abs() < 500);
        let both = testkit::until_equal(|| [Via::Netlink, Via::Bpf].map(times), near);
        assert!(near(&both) && both[0].len() == 18 && both[1].len() == 18, "{both:?}");
    });
}

/// A socket has the same identity in each reading, also after the program was loaded again for more fields.
#[test]
fn root_a_socket_keeps_its_identity() {
    testkit::require_root!();
    let lab = Lab::new("walkidentity");
    lab.connect_v4(20);
    lab.run_inside(|| {
        let (host, cache) = (Host::live(), BackendCache::new());
        let identities = |needs: u64| {
            let mut found = Vec::new();
            let demand = demand(needs | need::IDENTITY, vec![is("state", "established")]);
            let source = SocketSource::new(&host, tcp(Some(Via::Bpf))).with_cache(&cache);
            let stats = source.run(&demand, &mut |row| {
                assert_eq!(row.cookie, 0);
                found.push((row.local, row.peer, row.identity()));
                Next::More
            });
            assert!(!stats.unwrap().is_partial());
            found.sort_unstable();
            found
        };
        let first = identities(0);
        assert_eq!(identities(need::SKMEM), first);
        let distinct: BTreeSet<u64> = first.iter().map(|(_, _, identity)| *identity).collect();
        assert_eq!((first.len(), distinct.len(), distinct.contains(&0)), (40, 40, false));
    });
}

#[test]
fn root_a_recorded_walk_is_replayed() {
    testkit::require_root!();
    let lab = Lab::new("walktape");
    let _ = (lab.connect_v4(40), lab.connect_v6(40), lab.listen_tcp(7), lab.time_wait(3));
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let (options, live) = lab.run_inside(|| {
        let host = Host::live().recording(&tape).unwrap();
        let (rows, _) = read(&host, tcp(Some(Via::Bpf)), &demand(FIELDS, Vec::new()));
        host.finish().unwrap();
        (tcp(None), rows)
    });
    // A replay depends neither on privileges nor on the kernel.
    let replay = Host::open_replay(&tape).unwrap();
    let (rows, stats) = read(&replay, options.clone(), &demand(FIELDS, Vec::new()));
    assert_eq!(rows, live);
    assert_eq!((&stats.via[..], stats.is_partial()), (&["netlink", "bpf"][..], false));
    for filter in [is("state", "listen"), is("state", "time_wait")] {
        let replay = Host::open_replay(&tape).unwrap();
        let (rows, _) = read(&replay, options.clone(), &demand(FIELDS, vec![filter.clone()]));
        // The engine filters a replay; the backends leave out what they can.
        let Expr::Test(test) = &filter else { unreachable!() };
        let Operand::Words(words) = &test.operand else { unreachable!() };
        let named = |row: &&Kept| row.state.name(Proto::Tcp).as_bytes() == &*words[0];
        assert_eq!(rows.iter().filter(named).count(), live.iter().filter(named).count());
        assert!(rows.iter().filter(named).count() > 0);
    }
}

/// A loaded program is kept for many rounds.
#[test]
fn root_the_program_is_kept() {
    testkit::require_root!();
    let lab = Lab::new("walkkept");
    let _ = lab.connect_v4(5);
    lab.run_inside(|| {
        let (host, cache) = (Host::live(), BackendCache::new());
        for round in 0..3 {
            // Loading it again would fail.
            if round > 0 {
                arm("bpf", 0, 1, Fault::Fails(Errno::PERM));
            }
            let source = SocketSource::new(&host, Options { walk_from: Some(5), ..tcp(None) }).with_cache(&cache);
            let mut rows = 0;
            let stats = source.run(&demand(0, Vec::new()), &mut |_| {
                rows += 1;
                Next::More
            });
            // Running it is also a bpf(2) call; the second attempt succeeds.
            disarm_all();
            let stats = stats.unwrap();
            if round == 0 {
                assert_eq!((rows, &stats.via[..]), (11, &["netlink", "bpf"][..]));
            } else {
                assert_eq!((rows, stats.why.len()), (11, 1), "{stats:?}");
            }
        }
        assert!(cache.refusal().is_none());
    });
}

/// Without the privileges the table is read via netlink without a message; a user who insists on BPF gets one.
#[test]
fn root_without_rights_netlink_is_used() {
    testkit::require_root!();
    let lab = Lab::new("walkrights");
    let _ = (lab.connect_v4(10), lab.listen_tcp(4));
    let work = || {
        // Permanently: a thread that drops this privilege cannot leave the namespace again.
        std::mem::forget(lab.enter());
        let with = by(Via::Bpf, &BackendCache::new(), &demand(FIELDS, Vec::new()));
        testkit::sandbox::drop_caps(&[Cap::Bpf, Cap::Perfmon, Cap::SysAdmin]).unwrap();
        let options = Options { walk_from: Some(1), ..tcp(None) };
        let host = Host::live();
        let (rows, stats) = read(&host, options.clone(), &demand(FIELDS, Vec::new()));
        assert_eq!(comparable(rows), comparable(with));
        assert_eq!((&stats.via[..], stats.why.len(), stats.is_partial()), (&["netlink"][..], 0, false));
        let explain = SocketSource::new(&host, options).prepare(&demand(FIELDS, Vec::new())).offer().explain;
        assert!(explain[0].contains("needs CAP_BPF and CAP_PERFMON"), "{explain:?}");
        let error = SocketSource::new(&host, tcp(Some(Via::Bpf))).run(&demand(0, Vec::new()), &mut |_| Next::More);
        let stats = error.unwrap();
        assert!(stats.is_partial() && stats.why.iter().any(|why| why.text.contains("CAP_BPF")), "{stats:?}");
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap());
}

/// The kernel refuses every bpf(2) call, so netlink is used.
#[test]
fn root_a_refused_program_is_replaced() {
    testkit::require_root!();
    let lab = Lab::new("walkrefused");
    let _ = lab.connect_v4(10);
    lab.run_inside(|| {
        let (host, cache) = (Host::live(), BackendCache::new());
        let options = Options { walk_from: Some(1), ..tcp(None) };
        arm("bpf", 0, 1000, Fault::Fails(Errno::INVAL));
        for _ in 0..2 {
            let source = SocketSource::new(&host, options.clone()).with_cache(&cache);
            let mut rows = 0;
            let stats = source.run(&demand(0, Vec::new()), &mut |_| {
                rows += 1;
                Next::More
            });
            let stats = stats.unwrap();
            assert_eq!((rows, &stats.via[..], stats.why.len()), (21, &["netlink"][..], 0), "{stats:?}");
            // It is not tried a second time.
            let explain = source.prepare(&demand(0, Vec::new())).offer().explain;
            assert!(explain[0].contains("could not be loaded"), "{explain:?}");
        }
        disarm_all();
        assert!(cache.refusal().is_some() && cache.passed_over() == cache.refusal());
        arm("bpf", 0, 1000, Fault::Fails(Errno::INVAL));
        let states = demand(0, vec![is("state", "established")]);
        let error = SocketSource::new(&host, tcp(Some(Via::Bpf))).run(&states, &mut |_| Next::More).unwrap_err();
        disarm_all();
        assert_eq!(error.fault, SourceFault::Unsupported);
    });
}
