//! The same sockets as ss(8) shows, in the same states and with the same queues.
use record::rows::need;
use record::{Addr, Proto, State};
use testkit::netns::Lab;

use crate::odd_sockets;
use crate::rows::{Kept, live};

const STATES: [&str; 12] = [
    "UNKNOWN",
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
];

fn end(end: (Addr, u16)) -> String {
    let port = if end.1 == 0 { "*".to_owned() } else { end.1.to_string() };
    match end.0 {
        // ss writes the wildcard of a dual-stack socket as `*`.
        Addr::V6(octets) if octets == [0; 16] => format!("*:{port}"),
        Addr::V6(_) => format!("[{}]:{port}", end.0),
        Addr::V4(_) => format!("{}:{port}", end.0),
    }
}

fn as_ss(row: &Kept) -> String {
    let state = STATES[usize::from(row.state.0)];
    let queues = format!("{} {}", row.rqueue, row.wqueue.unwrap_or(0));
    format!("{state} {queues} {} {}", end(row.local), end(row.peer))
}

// `[fe80::1]%eth0:80` and `[::]:80` in netwren's notation.
fn normal(word: &str) -> String {
    let (addr, port) = word.rsplit_once(':').unwrap();
    let addr = addr.split('%').next().unwrap();
    format!("{}:{port}", if addr == "[::]" { "*" } else { addr })
}

fn lines(lab: &Lab, args: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = lab
        .output("ss", args)
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (local, peer) = (normal(words[3]), normal(words[4]));
            format!("{} {} {} {local} {peer}", words[0], words[1], words[2])
        })
        .collect();
    lines.sort();
    lines
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn root_tcp_as_ss_shows_it() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    testkit::require_tool!("python3");
    let lab = Lab::new("sstcp");
    let _ = (lab.connect_v4(30), lab.connect_v6(20), lab.connect_mapped(20), lab.connect_link_local(3));
    let _ = (lab.listen_tcp(20), lab.time_wait(5), lab.half_closed(5), lab.make_unaccepted(3), lab.syn_sent());
    odd_sockets::open(&lab);
    let ours = lab.run_inside(|| live(Proto::Tcp, None, 0));
    assert_eq!(sorted(ours.iter().map(as_ss).collect()), lines(&lab, &["-Htan"]));
}

#[test]
fn root_udp_as_ss_shows_it() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    let lab = Lab::new("ssudp");
    for _ in 0..10 {
        lab.udp(([0, 0, 0, 0], 0).into());
        lab.udp((std::net::Ipv6Addr::UNSPECIFIED, 0).into());
        lab.udp_pair();
    }
    let ours = lab.run_inside(|| live(Proto::Udp, None, 0));
    assert_eq!(sorted(ours.iter().map(as_ss).collect()), lines(&lab, &["-Huan"]));
    // If ss prints both tables, it prefixes each line with the table.
    let both = lab.output("ss", &["-Htuan"]).lines().count();
    assert_eq!(both, ours.len() + lab.run_inside(|| live(Proto::Tcp, None, 0)).len());
}

fn unix_as_ss(row: &Kept) -> String {
    let kind = ["", "u_str", "u_dgr", "", "", "u_seq"][usize::from(row.unix_type)];
    let path = match row.path.as_deref() {
        None => "*".to_owned(),
        Some(path) => String::from_utf8_lossy(path).replace('\0', "@"),
    };
    let state = if row.state == State::CLOSE { "UNCONN" } else { STATES[usize::from(row.state.0)] };
    let (queue, limit) = (row.rqueue, row.wqueue.unwrap_or(0));
    format!("{kind} {state} {queue} {limit} {path} {} * {}", row.inode, row.peer_inode.unwrap_or(0))
}

#[test]
fn root_unix_as_ss_shows_it() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    testkit::require_tool!("python3");
    let lab = Lab::new("ssunix");
    lab.unix_stream("stream", 4);
    lab.unix_abstract("abstract", 2);
    lab.unix_datagram("datagram");
    lab.unix_pair();
    odd_sockets::open(&lab);
    let ours = lab.run_inside(|| live(Proto::Unix, None, need::UNIX_NAME | need::UNIX_PEER | need::QUEUES));
    let theirs = lab.output("ss", &["-Hxan"]);
    let theirs = theirs.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.join(" ")
    });
    assert_eq!(sorted(ours.iter().map(unix_as_ss).collect()), sorted(theirs.collect()));
}
