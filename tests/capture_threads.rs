//! `capture --threads`: several rings on one interface lose no packets and keep their order.

use crate::capture::{command, rings};
use crate::capture_rights::of_threads;
use crate::going::Going;
use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::netns::Lab;

/// Number of flows, and packets per flow.
const FLOWS: usize = 16;
const EACH: u32 = 500;
const PORT: u16 = 7200;
/// The longest duration of the flood.
const FLOOD: Duration = Duration::from_secs(20);

/// Sends `EACH` numbered datagrams from each of `FLOWS` sockets, from two threads at once.
fn send(lab: &Lab) {
    let sockets: Vec<UdpSocket> =
        lab.inside(|| (0..FLOWS).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect());
    std::thread::scope(|scope| {
        for half in sockets.chunks(FLOWS / 2) {
            scope.spawn(move || {
                for number in 0..EACH {
                    for socket in half {
                        // Some calls return the ICMP error of the previous datagram; repeat until the datagram is
                        // sent.
                        while socket.send_to(&number.to_be_bytes(), (Ipv4Addr::LOCALHOST, PORT)).is_err() {}
                    }
                }
            });
        }
    });
}

/// Drops arriving packets before the host answers.
fn drop_all(lab: &Lab) {
    lab.nft(&format!(
        "table inet t {{\n chain i {{ type filter hook input priority 0\n udp dport {PORT} drop\n }}\n }}"
    ));
}

/// The sequence numbers of each flow and the timestamps in a pcap file: little-endian, ns or µs.
fn read(file: &[u8]) -> (HashMap<u16, Vec<u32>>, Vec<u64>) {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let scale = if word(0) == 0xa1b2_3c4d { 1 } else { 1000 };
    let (mut at, mut flows, mut times) = (24, HashMap::<u16, Vec<u32>>::new(), Vec::new());
    while at < file.len() {
        let (captured, frame) = (word(at + 8) as usize, at + 16);
        times.push(u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)) * scale);
        // Ethernet, IPv4 without options, UDP.
        let port = u16::from_be_bytes(file[frame + 34..frame + 36].try_into().unwrap());
        let number = u32::from_be_bytes(file[frame + 42..frame + 46].try_into().unwrap());
        flows.entry(port).or_default().push(number);
        at = frame + captured;
    }
    (flows, times)
}

/// Every packet is in the file; the packets of a flow keep their order, and the file is sorted by time.
#[test]
fn root_threads_lose_nothing_and_keep_flows_in_order() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("capthreads");
    drop_all(&lab);
    let file = lab.dir().join("all.pcap");
    let filter = format!("udp dst port {PORT}");
    for place in [&["-i", "lo"][..], &[]] {
        let words = [place, &["--threads", "3", "-w", file.to_str().unwrap(), &filter]].concat();
        let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
        let pid = going.child.id();
        testkit::wait_until("three rings and their threads", || {
            rings(&lab) == 3 && of_threads(pid, &["Name"]).len() >= 4
        });
        // Every thread has dropped its privileges.
        testkit::wait_until("no rights", || {
            of_threads(pid, &["CapEff", "Seccomp"]).iter().all(|of| of[0] == "0".repeat(16) && of[1] == "2")
        });
        send(&lab);
        let (_, ran) = going.end();
        let all = FLOWS as u32 * EACH;
        assert!(ran.stderr.contains(&format!("{all} packets received, 0 dropped by the ring")), "{}", ran.stderr);
        ran.ok();
        let (flows, times) = read(&std::fs::read(&file).unwrap());
        let expected: Vec<u32> = (0..EACH).collect();
        assert_eq!(flows.len(), FLOWS);
        flows.iter().for_each(|(port, numbers)| assert_eq!(*numbers, expected, "{port}"));
        // The kernel takes the timestamp before it puts the packet into the ring, so the order may differ by some µs,
        // or more if the kernel is interrupted.
        let back = times.windows(2).map(|pair| pair[0].saturating_sub(pair[1])).max().unwrap();
        assert!(back < 1_000_000, "{back} ns back");
    }
}

/// The same applies to lines of text, and to packets that netwren itself filters.
#[test]
fn root_lines_of_threads_are_in_order() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("capthrtext");
    drop_all(&lab);
    let columns = "sport,ip_id";
    let words = ["--columns", columns, "-i", "lo", "--threads", "2", "udp and len = 46 and dport = 7200"];
    let mut going: Going<String> = Going::past_header(command(&lab, &words), columns, |line| line);
    send(&lab);
    let all = FLOWS * EACH as usize;
    going.read_until("every packet", |lines| lines.len() >= all);
    let (lines, ran) = going.end();
    assert_eq!(lines.len(), all);
    let mut last = HashMap::<&str, u16>::new();
    for line in &lines {
        let (port, id) = line.split_once('\t').unwrap();
        let id: u16 = id.parse().unwrap();
        // The IP IDs of a socket increase, and may wrap around.
        let before = last.insert(port, id);
        assert!(before.is_none_or(|before| id.wrapping_sub(before) < 0x8000), "{line} after {before:?}");
    }
    assert_eq!(last.len(), FLOWS);
    ran.ok();
}

/// Packets that do not fit into one of the rings are counted exactly.
#[test]
fn root_losses_of_all_rings_are_counted() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("capthrloss");
    drop_all(&lab);
    let filter = format!("udp dst port {PORT}");
    let words = ["-i", "lo", "-H", "-c", "sport", "--threads", "2", "--buffer", "64KiB", &filter];
    let mut going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the rings are there", || rings(&lab) == 2);
    going.signal("-STOP");
    send(&lab);
    going.signal("-CONT");
    going.read_until("some packets", |lines| !lines.is_empty());
    let (lines, ran) = going.end();
    let all = FLOWS as u32 * EACH;
    let number = |words: &str| {
        let before = ran.stderr.split_once(words).unwrap().0;
        before.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    let (received, dropped) = (number(" packets received"), number(" dropped by the ring"));
    assert_eq!((received, lines.len() as u32 + dropped), (all, all), "{}", ran.stderr);
    assert!(dropped > 0);
    ran.says(3, &["packets lost: the ring of"]);
}

/// Ctrl-C ends a capture whose rings fill faster than they are read.
#[test]
fn root_threads_end_while_packets_keep_coming() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("capthrend");
    drop_all(&lab);
    let filter = format!("udp dst port {PORT}");
    let words = ["-i", "lo", "-H", "-c", "sport", "--threads", "2", &filter];
    let mut going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the rings are there", || rings(&lab) == 2);
    let is_over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let flood = || {
            let socket = lab.inside(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
            // The flood has a limit, so that the test fails instead of flooding forever if a capture does not end.
            let until = Instant::now() + FLOOD;
            while !is_over.load(Ordering::Relaxed) && Instant::now() < until {
                (0..64).for_each(|_| _ = socket.send_to(&[0; 4], (Ipv4Addr::LOCALHOST, PORT)));
            }
            is_over.load(Ordering::Relaxed)
        };
        let senders: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
        going.read_until("many packets", |lines| lines.len() > 1000);
        let (_, ran) = going.end();
        is_over.store(true, Ordering::Relaxed);
        assert!(ran.stderr.contains("packets received"), "{}", ran.stderr);
        senders.into_iter().all(|sender| sender.join().unwrap())
    });
    assert!(sent, "it ended only with the flood");
}
