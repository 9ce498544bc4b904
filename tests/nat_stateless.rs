//! `netwren nat stateless` with three namespaces: published ports are reachable, nothing is tracked, and nothing is
//! left over.

use crate::run::{Ran, command, netwren_in};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};

const PUBLISHED: [&str; 4] = [
    "--publish=8080:172.17.0.2:80",
    "--publish=5353:172.17.0.2:53/udp",
    "--publish=[2001:db8::1]:8080:[fd17::2]:80",
    "--publish=[2001:db8::1]:5353:[fd17::2]:53/udp",
];

fn stateless(routed: &Routed, words: &[&str]) -> Ran {
    netwren_in(&routed.router, &[&["nat", "stateless"], words].concat())
}

/// Servers that answer each request with its reversed bytes until the test ends.
fn serve(lab: &Lab) {
    let sockets = lab.run_inside(|| {
        let all = "[::]:80".parse::<SocketAddr>().unwrap();
        (TcpListener::bind(all).unwrap(), UdpSocket::bind("[::]:53").unwrap())
    });
    let (tcp, udp) = sockets;
    let answer = |bytes: &[u8]| bytes.iter().rev().copied().collect::<Vec<u8>>();
    std::thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            let mut asked = Vec::new();
            let _ = stream.read_to_end(&mut asked).and_then(|_| stream.write_all(&answer(&asked)));
        }
    });
    std::thread::spawn(move || {
        let mut asked = [0; 64];
        while let Ok((len, from)) = udp.recv_from(&mut asked) {
            let _ = udp.send_to(&answer(&asked[..len]), from);
        }
    });
}

/// Runs `netwren nat stateless` while the client continuously sends requests to both addresses.
fn while_asking(routed: &Routed, words: &[&str]) -> Ran {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| stateless(routed, words));
        while !run.is_finished() {
            for addr in ["192.0.2.1", "[2001:db8::1]"] {
                // An answer may be missing if rules are being applied at that moment.
                let _ = try_ask(&routed.client, addr, Duration::from_millis(500));
            }
        }
        run.join().unwrap()
    })
}

/// The answers to TCP and UDP requests from `lab` to `addr`.
#[track_caller]
fn ask(lab: &Lab, addr: &str) -> [String; 2] {
    try_ask(lab, addr, Duration::from_secs(10)).unwrap()
}

fn try_ask(lab: &Lab, addr: &str, patience: Duration) -> std::io::Result<[String; 2]> {
    lab.run_inside(|| {
        let to: SocketAddr = format!("{addr}:8080").parse().unwrap();
        let mut stream = TcpStream::connect_timeout(&to, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(b"stream")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut by_tcp = String::new();
        stream.read_to_string(&mut by_tcp)?;
        let udp = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
        // On a connected socket, an answer from a different address would not be received.
        udp.connect(format!("{addr}:5353"))?;
        udp.set_read_timeout(Some(patience))?;
        udp.send(b"gram")?;
        let mut bytes = [0; 64];
        let len = udp.recv(&mut bytes)?;
        Ok([by_tcp, String::from_utf8_lossy(&bytes[..len]).into_owned()])
    })
}

fn tracked(routed: &Routed) -> Vec<String> {
    let table = routed.router.run_inside(|| std::fs::read_to_string("/proc/thread-self/net/nf_conntrack")).unwrap();
    table.lines().map(str::to_owned).collect()
}

#[test]
fn root_a_published_port_is_reached_both_ways_and_tracked_nowhere() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let routed = Routed::new("stateless");
    // Another ruleset on the router requires connection tracking.
    routed.router.output("nft", &["add table inet other"]);
    routed.router.output("nft", &["add chain inet other seen { type filter hook prerouting priority 0; }"]);
    routed.router.output("nft", &["add rule inet other seen ct state new counter"]);
    let plan: Vec<&str> = ["plan"].iter().chain(&PUBLISHED).copied().collect();

    let shown = stateless(&routed, &plan).ok();
    assert!(shown.contains("ip daddr 192.0.2.1 tcp dport 8080 counter name tcp_8080_0_in notrack"), "{shown}");
    stateless(&routed, &["verify"]).says(1, &["table inet netwren_stateless does not exist"]);
    // Docker has such a rule against direct access to containers.
    routed.router.output("nft", &["add chain inet other direct { type filter hook prerouting priority raw; }"]);
    routed.router.output("nft", &["add rule inet other direct ip daddr 172.17.0.2 iifname != \"s1\" drop"]);
    let preview = stateless(&routed, &[&plan[..], &["--apply"]].concat());
    assert!(preview.stderr.contains("nothing was changed, --yes applies these rules"));
    assert_eq!(preview.ok(), shown);
    stateless(&routed, &["verify"]).says(1, &["does not exist"]);

    stateless(&routed, &[&plan[..], &["--apply", "--yes", "--probe=0"]].concat()).says(0, &["applied", "--undo --yes"]);
    stateless(&routed, &["verify", "--within=0"]).says(1, &["no packets in both directions within 0 s: tcp_8080_0"]);
    serve(&routed.server);
    for addr in ["192.0.2.1", "[2001:db8::1]"] {
        assert_eq!(ask(&routed.client, addr), ["maerts", "marg"], "{addr} from the client");
        assert_eq!(ask(&routed.router, addr), ["maerts", "marg"], "{addr} from the box itself");
    }
    let found = tracked(&routed);
    assert!(found.iter().all(|line| !line.contains("port=80 ") && !line.contains("port=53 ")), "{found:?}");
    // Earlier counts are no evidence, so only new packets are considered.
    stateless(&routed, &["verify", "--within=0"]).says(1, &["no packets in both directions"]);
    let verified = while_asking(&routed, &["verify", "--within=60", "-o", "json"]).ok();
    let rows: Vec<serde_json::Value> = verified.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 4, "{verified}");
    assert!(rows.iter().all(|row| row["both"] == true && row["packets_in"].as_u64() >= Some(1)), "{verified}");

    // Applying again changes nothing; undoing restores the previous state and touches nothing else.
    while_asking(&routed, &[&plan[..], &["--apply", "--yes", "--probe=60"]].concat())
        .says(0, &["packets pass in both directions"]);
    let listed = stateless(&routed, &["plan", "--undo"]);
    assert!(listed.stderr.contains("nothing was changed"));
    assert!(listed.ok().contains("counter tcp_8080_0_in"));
    stateless(&routed, &["plan", "--undo", "--yes"]).says(0, &["was removed"]);
    stateless(&routed, &["plan", "--undo", "--yes"]).says(0, &["nothing to undo"]);
    assert!(routed.router.output("nft", &["list", "tables"]).trim() == "table inet other");
}

#[test]
fn root_impossible_ports_are_refused_before_anything_changes() {
    testkit::require_root!();
    let lab = Lab::new("statelessnot");
    let plan = |words: &[&str]| netwren_in(&lab, &[&["nat", "stateless", "plan", "--apply", "--yes"], words].concat());
    plan(&["-p", "80:10.0.0.2:80"]).says(1, &["this host has no address of that family"]);
    plan(&["-p", "192.0.2.1:21:10.0.0.2:21"]).says(1, &["FTP opens further ports", "--no-helper"]);
    plan(&["-p", "192.0.2.1:80:web:80"]).says(1, &["it is not an IP address"]);
    plan(&["-p", "80:10.0.0.2"]).says(2, &["the format is [ADDR:]PORT:BACKEND:PORT"]);
    plan(&["-p", "192.0.2.1:80:10.0.0.2:80", "-p", "192.0.2.1:80:10.0.0.3:80"]).says(1, &["one port for two backends"]);
    let table = netwren_in(&lab, &["nat", "stateless", "verify"]);
    if testkit::tool::is_installed("nft") {
        table.says(1, &["does not exist"]);
    }
}

/// If nft is missing, the rules can still be printed.
#[test]
fn root_without_nft_the_rules_are_written_and_not_applied() {
    testkit::require_root!();
    let lab = Lab::new("statelessnonft");
    // nft is searched only in fixed folders, so the test hides the folders that contain it.
    let empty = lab.dir().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let holding = |folder: &&&str| Path::new(folder).join("nft").exists();
    let covers = ["/usr/sbin", "/sbin"]
        .iter()
        .filter(holding)
        .map(|folder| Limit::Cover { with: empty.clone(), place: folder.into() });
    let limits: Vec<Limit> = std::iter::once(Limit::Network(lab.path())).chain(covers).collect();
    let run = |words: &[&str]| {
        let mut command = command(&[&["nat", "stateless", "plan", "-p", "192.0.2.1:80:10.0.0.2:80"], words].concat());
        confine(&mut command, &limits).unwrap();
        Ran::of(command.output().unwrap())
    };
    assert!(run(&[]).ok().contains("ip daddr set 10.0.0.2"));
    run(&["--apply", "--yes"]).says(4, &["nft is not installed", "install the package nftables"]);
}

const ONE: [&str; 3] = ["plan", "--publish=192.0.2.1:5353:172.17.0.2:53/udp", "--apply"];

/// Runs `netwren nat stateless plan …` while the client sends datagrams that are never answered.
fn while_sending(routed: &Routed, words: &[&str]) -> Ran {
    let udp = routed.client.run_inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    udp.connect("192.0.2.1:5353").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| stateless(routed, &[&ONE[..], words].concat()));
        while !run.is_finished() {
            let _ = udp.send(b"?");
            let _ = udp.recv(&mut [0; 8]);
        }
        run.join().unwrap()
    })
}

#[test]
fn root_issue_10_rules_by_which_one_direction_moves_are_taken_back() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let routed = Routed::new("statelessway");
    // The server accepts packets without ever answering, not even with an ICMP error.
    let _silent = routed.server.run_inside(|| UdpSocket::bind("0.0.0.0:53")).unwrap();
    let tables = || routed.router.output("nft", &["list", "tables"]);
    let undone = &["packets pass in one direction only: udp_5353: ", " 0 answers", "undone: the rules were removed"];
    while_sending(&routed, &["--yes", "--probe=1"]).says(1, undone);
    assert_eq!(tables().trim(), "");
    while_sending(&routed, &["--yes", "--probe=1", "--no-undo"]).says(1, &["0 answers", "the rules stay in place"]);
    assert_eq!(tables().trim(), "table inet netwren_stateless");
    // The rules applied earlier are restored, and the new rules are gone.
    let other = ["plan", "-p", "192.0.2.1:9999:172.17.0.2:99", "--apply", "--yes", "--probe=0"];
    stateless(&routed, &other).says(0, &["applied"]);
    while_sending(&routed, &["--yes", "--probe=1"]).says(1, &["the rules applied before are in place again"]);
    let rules = routed.router.output("nft", &["list", "table", "inet", "netwren_stateless"]);
    assert!(rules.contains("tcp dport 9999") && !rules.contains("dport 5353"), "{rules}");
}

#[test]
fn root_issue_10_obstacles_are_reported_before_anything_changes() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let routed = Routed::new("statelesspre");
    let nft = |words: &str| routed.router.output("nft", &[words]);
    let apply = || stateless(&routed, &[&ONE[..], &["--yes", "--probe=0"]].concat());
    nft("add table ip filter");
    nft("add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }");
    nft("add rule ip filter FORWARD ct state established,related accept");
    nft("add rule ip filter FORWARD ct state new accept");
    apply()
        .says(1, &["`policy drop` in the chain ip filter FORWARD drops packets to the backend", "nothing was changed"]);
    nft("insert rule ip filter FORWARD ct state untracked accept");
    nft("add chain ip filter direct { type filter hook prerouting priority mangle; }");
    nft("add rule ip filter direct ip daddr 172.17.0.2 iifname != \"s1\" counter drop");
    apply().says(1, &["in the chain ip filter direct drops packets to the backend", "nothing was changed"]);
    nft("flush chain ip filter direct");
    routed.router.run_inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "0")).unwrap();
    apply().says(1, &["net.ipv4.ip_forward is 0", "nothing was changed"]);
    assert_eq!(nft("list tables").trim(), "table ip filter");
    routed.router.run_inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
    apply().says(0, &["applied"]);
}

/// The README's example with two similar addresses: the address on the backend's side is left out, because clients do
/// not use it.
#[test]
fn root_issue_10_the_address_towards_the_backend_is_left_out() {
    testkit::require_root!();
    let lab = Lab::new("statelesstwo");
    for (dev, addr) in [("w0", "172.17.5.1/24"), ("b0", "172.17.0.1/24")] {
        let peer = format!("{dev}p");
        lab.ip(&["link", "add", dev, "type", "veth", "peer", "name", &peer]);
        lab.ip(&["link", "set", &peer, "up"]);
        lab.ip(&["addr", "add", addr, "dev", dev]);
        lab.ip(&["link", "set", dev, "up"]);
    }
    lab.ip(&["route", "add", "default", "via", "172.17.5.254"]);
    let plan = netwren_in(&lab, &["nat", "stateless", "plan", "--publish", "8080:172.17.0.2:8080"]).ok();
    assert!(plan.contains("ip daddr 172.17.5.1 tcp dport 8080"), "{plan}");
}
