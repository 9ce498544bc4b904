//! `netwren nat stateless` between three namespaces: what is published is reached, nothing is tracked, nothing stays.

use crate::run::{Ran, netwren_in};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use testkit::netns::Lab;
use testkit::routed::Routed;

const PUBLISHED: [&str; 4] = [
    "--publish=8080:172.17.0.2:80",
    "--publish=5353:172.17.0.2:53/udp",
    "--publish=[2001:db8::1]:8080:[fd17::2]:80",
    "--publish=[2001:db8::1]:5353:[fd17::2]:53/udp",
];

fn stateless(routed: &Routed, words: &[&str]) -> Ran {
    netwren_in(&routed.router, &[&["nat", "stateless"], words].concat())
}

/// Every answer is what was asked, upside down, by whoever is asked, as often as `times`.
fn serve(lab: &Lab, times: usize) -> Vec<std::thread::JoinHandle<()>> {
    let sockets = lab.inside(|| {
        let all = "[::]:80".parse::<SocketAddr>().unwrap();
        (TcpListener::bind(all).unwrap(), UdpSocket::bind("[::]:53").unwrap())
    });
    let (tcp, udp) = sockets;
    udp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let answer = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
    vec![
        std::thread::spawn(move || {
            for stream in tcp.incoming().take(times) {
                let (mut stream, mut asked) = (stream.unwrap(), Vec::new());
                stream.read_to_end(&mut asked).unwrap();
                stream.write_all(&answer(&asked)).unwrap();
            }
        }),
        std::thread::spawn(move || {
            for _ in 0..times {
                let mut asked = [0; 64];
                let (len, from) = udp.recv_from(&mut asked).unwrap();
                udp.send_to(&answer(&asked[..len]), from).unwrap();
            }
        }),
    ]
}

/// What TCP and UDP answer at `addr`, asked from inside `lab`.
fn ask(lab: &Lab, addr: &str) -> [String; 2] {
    let patience = Some(Duration::from_secs(10));
    lab.inside(|| {
        let to: SocketAddr = format!("{addr}:8080").parse().unwrap();
        let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(10)).unwrap();
        stream.set_read_timeout(patience).unwrap();
        stream.write_all(b"stream").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut by_tcp = String::new();
        stream.read_to_string(&mut by_tcp).unwrap();
        let udp = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
        // Connected: an answer from another address would not come through.
        udp.connect(format!("{addr}:5353")).unwrap();
        udp.set_read_timeout(patience).unwrap();
        udp.send(b"gram").unwrap();
        let mut bytes = [0; 64];
        let len = udp.recv(&mut bytes).unwrap();
        [by_tcp, String::from_utf8_lossy(&bytes[..len]).into_owned()]
    })
}

fn tracked(routed: &Routed) -> Vec<String> {
    let table = routed.router.inside(|| std::fs::read_to_string("/proc/thread-self/net/nf_conntrack")).unwrap();
    table.lines().map(str::to_owned).collect()
}

#[test]
fn root_a_published_port_is_reached_both_ways_and_tracked_nowhere() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let routed = Routed::new("stateless");
    // Somebody else on the box wants its packets tracked.
    routed.router.output("nft", &["add table inet other"]);
    routed.router.output("nft", &["add chain inet other seen { type filter hook prerouting priority 0; }"]);
    routed.router.output("nft", &["add rule inet other seen ct state new counter"]);
    let plan: Vec<&str> = ["plan"].iter().chain(&PUBLISHED).copied().collect();

    let shown = stateless(&routed, &plan).ok();
    assert!(shown.contains("ip daddr 192.0.2.1 tcp dport 8080 counter name tcp_8080_0_in notrack"), "{shown}");
    stateless(&routed, &["verify"]).says(1, &["there is no table inet netwren_stateless"]);
    let preview = stateless(&routed, &[&plan[..], &["--apply"]].concat());
    assert!(preview.stderr.contains("nothing was done, --yes applies these rules"));
    assert_eq!(preview.ok(), shown);
    stateless(&routed, &["verify"]).says(1, &["there is no table"]);

    stateless(&routed, &[&plan[..], &["--apply", "--yes"]].concat()).says(0, &["applied", "--undo --yes"]);
    stateless(&routed, &["verify"]).says(1, &["not hit in both directions: tcp_8080_0"]);
    let servers = serve(&routed.server, 4);
    for addr in ["192.0.2.1", "[2001:db8::1]"] {
        assert_eq!(ask(&routed.client, addr), ["maerts", "marg"], "{addr} from the client");
        assert_eq!(ask(&routed.router, addr), ["maerts", "marg"], "{addr} from the box itself");
    }
    servers.into_iter().for_each(|server| server.join().unwrap());
    let found = tracked(&routed);
    assert!(found.iter().all(|line| !line.contains("port=80 ") && !line.contains("port=53 ")), "{found:?}");
    let verified = stateless(&routed, &["verify", "-o", "json"]).ok();
    let rows: Vec<serde_json::Value> = verified.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 4, "{verified}");
    assert!(rows.iter().all(|row| row["both"] == true && row["packets_in"].as_u64() > Some(1)), "{verified}");

    // Once more is the same; taken away it is as before, and nothing else is touched.
    stateless(&routed, &[&plan[..], &["--apply", "--yes"]].concat()).ok();
    let listed = stateless(&routed, &["plan", "--undo"]);
    assert!(listed.stderr.contains("nothing was done"));
    assert!(listed.ok().contains("counter tcp_8080_0_in"));
    stateless(&routed, &["plan", "--undo", "--yes"]).says(0, &["is gone"]);
    stateless(&routed, &["plan", "--undo", "--yes"]).says(0, &["nothing to undo"]);
    assert!(routed.router.output("nft", &["list", "tables"]).trim() == "table inet other");
}

#[test]
fn root_what_cannot_be_published_is_said_before_anything_changes() {
    testkit::require_root!();
    let lab = Lab::new("statelessnot");
    let plan = |words: &[&str]| netwren_in(&lab, &[&["nat", "stateless", "plan", "--apply", "--yes"], words].concat());
    plan(&["-p", "80:10.0.0.2:80"]).says(1, &["this host has no address of that family"]);
    plan(&["-p", "192.0.2.1:21:10.0.0.2:21"]).says(1, &["FTP opens further ports", "--no-helper"]);
    plan(&["-p", "192.0.2.1:80:web:80"]).says(1, &["it is no IP address"]);
    plan(&["-p", "80:10.0.0.2"]).says(2, &["it is written [ADDR:]PORT:BACKEND:PORT"]);
    plan(&["-p", "192.0.2.1:80:10.0.0.2:80", "-p", "192.0.2.1:80:10.0.0.3:80"]).says(1, &["one port for two backends"]);
    let table = netwren_in(&lab, &["nat", "stateless", "verify"]);
    if testkit::tool::have("nft") {
        table.says(1, &["there is no table"]);
    }
}

/// Without the program that applies rules they can still be written.
#[test]
fn root_without_nft_the_rules_are_written_and_not_applied() {
    testkit::require_root!();
    let lab = Lab::new("statelessnonft");
    let run = |words: &[&str]| {
        let mut command = lab.command("/usr/bin/env");
        let program = testkit::program::netwren();
        let words = ["nat", "stateless", "plan", "-p", "192.0.2.1:80:10.0.0.2:80"].iter().chain(words);
        Ran::of(command.arg("PATH=/nonexistent").arg(program).args(words).output().unwrap())
    };
    assert!(run(&[]).ok().contains("ip daddr set 10.0.0.2"));
    run(&["--apply", "--yes"]).says(4, &["nft is not installed: install the package nftables"]);
}
