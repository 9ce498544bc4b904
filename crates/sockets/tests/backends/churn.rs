//! A table that changes while it is read: no stable socket is shown twice.
use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use record::{Next, Proto, Source};
use sockets::{Options, SocketSource};
use sys::{Host, NetNs};
use testkit::netns::Lab;

use crate::rows::{demand, here};

const STABLE: usize = 1500;

/// Chains of a hundred sockets: in a table of 64 buckets nearly every receive boundary is in a bucket that changes.
#[test]
fn root_doubles_are_removed() {
    testkit::require_root!();
    let lab = Lab::new("churn");
    let set = lab.output("sysctl", &["-w", "net.ipv4.tcp_child_ehash_entries=64"]);
    assert!(set.contains("64"), "{set}");
    // A child namespace has a separate table.
    lab.run_inside(|| {
        sys::netns::unshare_net().unwrap();
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        let netns = NetNs::current().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let pairs: Vec<_> =
            (0..STABLE).map(|_| (TcpStream::connect(at).unwrap(), listener.accept().unwrap().0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| churn(&netns, &stop));
            }
            let _stop = StopOnDrop(&stop);
            let duplicates: u64 = (0..40).map(|_| read_once(&pairs)).sum();
            println!("{duplicates} duplicates removed in 40 dumps");
        });
    });
}

/// Stops the churn even if the reader panics, because the scope waits for its threads.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// Opens and closes connections until `stop` is set.
fn churn(netns: &NetNs, stop: &AtomicBool) {
    let _inside = netns.enter().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    while !stop.load(Ordering::Relaxed) {
        let Ok(client) = TcpStream::connect(at) else { continue };
        let server = listener.accept().unwrap().0;
        drop((server, client));
    }
}

// Reads one dump and returns the number of repeated rows that were removed. No stable socket may be shown twice.
fn read_once(pairs: &[(TcpStream, TcpStream)]) -> u64 {
    let port = |stream: &TcpStream| stream.local_addr().unwrap().port();
    let stable: std::collections::HashSet<u16> = pairs.iter().map(|(client, _)| port(client)).collect();
    let mut shown: HashMap<u64, u32> = HashMap::new();
    let mut clients = 0;
    let host = Host::live();
    let options = Options { order: vec![Proto::Tcp], ..here() };
    let stats = SocketSource::new(&host, options).run(&demand(0, Vec::new()), &mut |row| {
        *shown.entry(row.cookie).or_default() += 1;
        clients += usize::from(stable.contains(&row.local.port));
        // Stands in for the work of a reader.
        std::hint::black_box(row);
        Next::More
    });
    let stats = stats.unwrap();
    let twice = shown.values().filter(|times| **times > 1).count();
    assert_eq!(twice, 0, "{stats:?}");
    assert!(clients > STABLE / 2);
    stats.duplicates
}
