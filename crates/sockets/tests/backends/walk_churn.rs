//! Tables that change while the walk reads them: no stable socket is missed or shown twice.
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use record::{Next, Proto, Source};
use sockets::{BackendCache, Options, SocketSource, Via};
use sys::{Host, NetNs};
use testkit::netns::Lab;

use crate::rows::{demand, here};

/// Held by the test that has thousands of descriptors: several at a time would exceed the limit of the process.
static DESCRIPTORS: Mutex<()> = Mutex::new(());

const STABLE: usize = 4_000;
const READINGS: usize = 20;

/// Both ends of connections, and the turn of the test that holds them.
struct Pairs(Vec<(TcpStream, TcpStream)>, #[allow(dead_code)] MutexGuard<'static, ()>);

/// Connections in the calling thread's namespace that live as long as they are held.
fn pairs(n: usize) -> Pairs {
    let turn = DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    Pairs((0..n).map(|_| (TcpStream::connect(at).unwrap(), listener.accept().unwrap().0)).collect(), turn)
}

/// Stops the churn even if the reader panics, because the scope waits for its threads.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// Opens and closes connections until `stop` is set; half of them end in TIME_WAIT, half in a reset.
fn churn(netns: &NetNs, stop: &AtomicBool, made: &AtomicU64) {
    let _inside = netns.enter().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    while !stop.load(Ordering::Relaxed) {
        let Ok(client) = TcpStream::connect(at) else { continue };
        let server = listener.accept().unwrap().0;
        if made.fetch_add(1, Ordering::Relaxed) % 2 == 0 {
            let _ = std::io::Write::write_all(&mut &client, b"x");
        }
        drop((server, client));
    }
}

fn ends(pairs: &Pairs) -> Vec<(SocketAddr, SocketAddr)> {
    let both = |stream: &TcpStream| (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
    pairs.0.iter().flat_map(|(client, server)| [both(client), both(server)]).collect()
}

// Numbers of stable sockets that were missed, and of rows that were repeated, in one scan.
fn read_once(cache: &BackendCache, stable: &[(SocketAddr, SocketAddr)]) -> (usize, usize) {
    let host = Host::live();
    let options = Options { via: Some(Via::Bpf), order: vec![Proto::Tcp], ..here() };
    let mut shown: HashMap<(SocketAddr, SocketAddr), u32> = HashMap::new();
    let stats = SocketSource::new(&host, options).with_cache(cache).run(&demand(0, Vec::new()), &mut |row| {
        let end = |end: &record::rows::Endpoint| -> SocketAddr {
            let record::Addr::V4(octets) = end.addr else { return SocketAddr::from(([0; 16], end.port)) };
            (octets, end.port).into()
        };
        if row.state != record::State::LISTEN {
            *shown.entry((end(&row.local), end(&row.peer))).or_default() += 1;
        }
        Next::More
    });
    let stats = stats.unwrap();
    assert!(!stats.is_partial() && stats.via.contains(&"bpf"), "{stats:?}");
    let missed = stable.iter().filter(|ends| !shown.contains_key(*ends)).count();
    (missed, shown.values().filter(|times| **times > 1).count())
}

fn read_under_churn() {
    let netns = NetNs::current().unwrap();
    let held = pairs(STABLE);
    let (stable, cache) = (ends(&held), BackendCache::new());
    let (stop, made) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| churn(&netns, &stop, &made));
        }
        let _stop = StopOnDrop(&stop);
        let results: Vec<_> = (0..READINGS).map(|_| read_once(&cache, &stable)).collect();
        let (missed, doubled) = results.iter().fold((0, 0), |(m, d), (missed, twice)| (m + missed, d + twice));
        println!("{} connections came and went: {missed} missed, {doubled} doubled", made.load(Ordering::Relaxed));
        assert_eq!((missed, doubled), (0, 0), "{results:?}");
    });
    assert!(made.load(Ordering::Relaxed) > 100, "nothing happened meanwhile");
}

// Runs `work` in a child namespace with a separate table of this many chains.
fn with_own_table(lab: &Lab, chains: u32, work: impl FnOnce() + Send) {
    let set = lab.output("sysctl", &["-w", &format!("net.ipv4.tcp_child_ehash_entries={chains}")]);
    assert!(set.contains(&chains.to_string()), "{set}");
    lab.run_inside(|| {
        sys::netns::unshare_net().unwrap();
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        work();
    });
}

/// Chains of two sockets and of dozens, for which sock_diag misses and repeats rows.
#[test]
fn root_long_chains_lose_nothing() {
    testkit::require_root!();
    with_own_table(&Lab::new("walkchains"), 256, read_under_churn);
    with_own_table(&Lab::new("walkchurn"), 4096, read_under_churn);
}

#[test]
fn root_the_common_table_loses_nothing() {
    testkit::require_root!();
    Lab::new("walkcommon").run_inside(read_under_churn);
}

/// Memory after the end of a small table is not read as chains, and a scan that continues within a cache line repeats
/// no chain.
#[test]
fn root_small_tables_end_where_they_end() {
    testkit::require_root!();
    for chains in [1, 2, 4, 16, 32, 64, 128] {
        with_own_table(&Lab::new("walksmall"), chains, || {
            // 6,000 rows do not fit into the memory of one call; 1,500 rows of one chain do.
            let held = pairs(if chains < 4 { 750 } else { 3_000 });
            let stable = ends(&held);
            let cache = BackendCache::new();
            assert_eq!(read_once(&cache, &stable), (0, 0), "{chains} chains");
        });
    }
}

/// A single chain that does not fit into the memory of the walk is read in portions.
#[test]
fn root_a_chain_that_is_too_long() {
    testkit::require_root!();
    with_own_table(&Lab::new("walkfull"), 1, || {
        // 6,000 rows of 48 bytes; the walk has room for 256 KiB.
        let held = pairs(3_000);
        let run = |via| {
            let host = Host::live();
            let options = Options { via, order: vec![Proto::Tcp], walk_from: Some(1), ..here() };
            let mut rows = 0;
            let connected = demand(record::rows::need::TIMER, vec![crate::rows::is("state", "established")]);
            let stats = SocketSource::new(&host, options).run(&connected, &mut |_| {
                rows += 1;
                Next::More
            });
            (rows, stats.unwrap())
        };
        for via in [None, Some(Via::Bpf)] {
            let (rows, stats) = run(via);
            assert_eq!((rows, &stats.via[..], stats.is_partial()), (6_000, &["bpf"][..], false), "{stats:?}");
            assert!(stats.why.is_empty() && stats.duplicates == 0, "{stats:?}");
        }
        drop(held);
    });
}
