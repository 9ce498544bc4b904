//! Rows and files have the packet addresses of log records from every family and hook of nft.

use crate::capture::frames_to;
use crate::going::Going;
use crate::log::command;
use crate::run::netwren;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use testkit::netns::Lab;
use testkit::routed::Routed;

/// Family, hook and device of each chain.
const CHAINS: &[(&str, &str, &str)] = &[
    ("ip", "prerouting", ""),
    ("ip", "input", ""),
    ("ip", "forward", ""),
    ("ip", "output", ""),
    ("ip", "postrouting", ""),
    ("ip6", "prerouting", ""),
    ("ip6", "forward", ""),
    ("ip6", "output", ""),
    ("inet", "prerouting", ""),
    ("inet", "forward", ""),
    ("inet", "output", ""),
    ("inet", "ingress", "device c1"),
    ("arp", "input", ""),
    ("arp", "output", ""),
    ("bridge", "prerouting", ""),
    ("bridge", "input", ""),
    ("bridge", "forward", ""),
    ("bridge", "output", ""),
    ("bridge", "postrouting", ""),
    ("netdev", "ingress", "device c1"),
    ("netdev", "egress", "device s1"),
];

/// Loads a ruleset. Prints a warning and returns false if this kernel lacks the hook.
fn load(lab: &Lab, name: &str, rules: &str) -> bool {
    let mut nft = lab.command("nft").args(["-f", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    let output = nft.wait_with_output().unwrap();
    if !output.status.success() {
        testkit::print_loud(&format!("not tested here: {name}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    output.status.success()
}

/// Adds rules that log to groups 5 and 6; returns their prefixes.
fn log_all(lab: &Lab) -> Vec<String> {
    let log = |prefix: &str| format!("counter log prefix \"{prefix}\" group 5 log prefix \"{prefix}\" group 6");
    let mut prefixes = Vec::new();
    for (family, hook, device) in CHAINS {
        let prefix = format!("{family}/{hook}");
        let wanted = if *family == "arp" { "" } else { "udp dport 7777" };
        let tagged = match *family {
            "netdev" if *hook == "ingress" => format!("meta protocol 0x8100 {}\n", log("netdev/tags")),
            _ => String::new(),
        };
        let chain = format!(
            "chain c {{ type filter hook {hook} {device} priority -300\n{wanted} {}\n{tagged} }}",
            log(&prefix)
        );
        if load(lab, &prefix, &format!("table {family} t_{hook} {{ {chain}\n}}\n")) {
            prefixes.extend((!tagged.is_empty()).then(|| "netdev/tags".to_owned()));
            prefixes.push(prefix);
        }
    }
    prefixes
}

/// Creates a bridge on the router that connects the other labs: 10.8.0.1, 10.8.0.2 (server), 10.8.0.3 (client).
fn bridged(hosts: &Routed) {
    hosts.router.ip(&["link", "add", "br0", "type", "bridge", "forward_delay", "0"]);
    hosts.router.ip(&["addr", "add", "10.8.0.1/24", "dev", "br0"]);
    hosts.router.ip(&["link", "set", "br0", "up"]);
    for (lab, near, far, address) in
        [(&hosts.server, "p0", "p1", "10.8.0.2/24"), (&hosts.client, "q0", "q1", "10.8.0.3/24")]
    {
        lab.ip(&["link", "add", near, "type", "veth", "peer", "name", far, "netns", hosts.router.name()]);
        lab.ip(&["addr", "add", address, "dev", near]);
        lab.ip(&["link", "set", near, "up"]);
        hosts.router.ip(&["link", "set", far, "master", "br0"]);
        hosts.router.ip(&["link", "set", far, "up"]);
    }
}

fn send(lab: &Lab, to: &str) {
    lab.run_inside(|| {
        let to: SocketAddr = to.parse().unwrap();
        let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
        // The first send may fail with an error from an earlier packet.
        let _ = socket.send_to(b"netwren", to).or_else(|_| socket.send_to(b"netwren", to));
    });
}

fn traffic(hosts: &Routed) {
    for to in ["172.17.0.2:7777", "[fd17::2]:7777", "192.0.2.1:7777", "10.8.0.2:7777"] {
        send(&hosts.client, to);
    }
    for to in ["172.17.0.2:7777", "[fd17::2]:7777", "10.8.0.2:7777"] {
        send(&hosts.router, to);
    }
    send(&hosts.server, "10.8.0.1:7777");
    let tags = [0x88, 0xa8, 0, 7, 0x81, 0, 0, 50, 8, 0];
    let ip = [0x45, 0, 0, 32, 0, 0, 0, 0, 9, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    let udp = [0, 54, 0x1e, 0x61, 0, 12, 0, 0, b'a', b'b', b'c', b'd'];
    hosts.client.run_inside(|| frames_to("c0").write_all(&[&[2; 12][..], &tags, &ip, &udp].concat()).unwrap());
}

/// Returns the packet count of each rule.
fn counted(lab: &Lab) -> BTreeMap<String, usize> {
    let rules = lab.output("nft", &["list", "ruleset"]);
    let one = |line: &str| {
        let packets = line.split("packets ").nth(1)?.split(' ').next()?.parse().ok()?;
        Some((line.split("prefix \"").nth(1)?.split('"').next()?.to_owned(), packets))
    };
    rules.lines().filter_map(one).collect()
}

#[test]
fn root_records_of_every_hook_have_their_addresses() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("tcpdump");
    let hosts = Routed::new("loghook");
    bridged(&hosts);
    let dir = tempfile::tempdir().unwrap();
    let [pcap, pcapng] = ["records.pcap", "records.pcapng"].map(|name| dir.path().join(name));
    let columns = "prefix,src,dst,dport,vlan";
    let words = ["--columns", columns, "--group", "5", "--latency", "10ms"];
    let mut rows = Going::past_header(command(&hosts.router, &words), columns, |line| line);
    let targets = [&pcap, &pcapng].map(|path| format!("{}:{}", path.extension().unwrap().display(), path.display()));
    let words = ["--group", "6", "--latency", "10ms", "--to", &targets[0], "--to", &targets[1]];
    let files = Going::<String>::spawn(command(&hosts.router, &words), |line| line);
    testkit::wait_until("both groups are bound", || hosts.router.log_groups().len() == 2);
    let prefixes = log_all(&hosts.router);
    assert!(prefixes.len() > 15, "{prefixes:?}");
    testkit::wait_until("each rule has seen a packet", || {
        traffic(&hosts);
        hosts.router.ip(&["neigh", "flush", "all"]);
        let counted = counted(&hosts.router);
        prefixes.iter().all(|prefix| counted.get(prefix).is_some_and(|packets| *packets > 0))
    });
    let total = |lab: &Lab| counted(lab).values().sum::<usize>();
    rows.read_until("all records", |lines| lines.len() >= total(&hosts.router));
    let (lines, ran) = rows.end();
    ran.ok();
    let mut by_prefix: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let [prefix, src, dst, dport, vlan] = cells[..] else { panic!("{line}") };
        *by_prefix.entry(prefix).or_default() += 1;
        assert!(src != "-" && dst != "-", "{line}");
        assert_eq!(dport, if prefix.starts_with("arp/") { "-" } else { "7777" }, "{line}");
        assert_eq!(vlan, if prefix == "netdev/tags" { "7" } else { "-" }, "{line}");
    }
    let datagrams = lines.iter().filter(|line| line.contains("\t7777\t")).count();
    // pcap holds IP only: the records of ARP are counted as left out.
    files.end().1.says(3, &["they are not IP"]);
    let read = Command::new("tcpdump").args(["-nn", "-r"]).arg(&pcap).arg("udp dst port 7777").output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    let in_pcap = read.lines().filter(|line| line.contains(".7777: UDP, length")).count();
    assert!(in_pcap >= datagrams, "{in_pcap} of {datagrams} in pcap");
    let words = ["capture", "-H", "--columns", "src,dst,dport", "-r", pcapng.to_str().unwrap()];
    let copied = netwren(&words).ok();
    assert!(copied.lines().count() >= lines.len());
    assert!(copied.lines().all(|line| !line.starts_with("-\t")), "{copied}");
    assert!(copied.lines().filter(|line| line.ends_with("\t7777")).count() >= datagrams);
}
