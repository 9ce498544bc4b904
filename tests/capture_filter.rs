//! FILTER of `capture`: what tcpdump takes, with the same answers, and our own fields beside it.

use crate::capture::{command, marked_traffic, of_pcap, of_pcapng, rings};
use crate::capture_read::{pcap_of, udp};
use crate::going::Going;
use crate::run::netwren;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use testkit::netns::Lab;
use testkit::routed::Routed;

/// Every frame of the traffic ends in the mark; these choose among them.
const EXPRESSIONS: &[&str] = &[
    "",
    "udp",
    "tcp port 7125",
    "tcp[tcpflags] & tcp-push != 0 and greater 500",
    "udp port 7126 and len > 700",
    "vlan 77",
    "ip and not vlan",
    "host 192.0.2.1 and not tcp or vlan",
    "inbound and ip",
    "net 172.17.0.0/16 and (dst port 7125 or 7126)",
];

fn tcpdump(hosts: &Routed, file: &std::path::Path, expression: &str) -> Child {
    let mut tcpdump = hosts.router.command("tcpdump");
    tcpdump.args(["-i", "c1", "-B", "16384", "-U", "--immediate-mode", "--time-stamp-precision=nano", "-Z", "root"]);
    tcpdump.arg("-w").arg(file).args(expression.split_whitespace());
    tcpdump.stderr(Stdio::null()).spawn().unwrap()
}

/// Live beside tcpdump, on tagged and plain packets, and on tcpdump's file.
#[test]
fn root_capture_takes_what_tcpdump_takes() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let hosts = Routed::new("capexpr");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, nth: usize| dir.path().join(format!("{name}{nth}"));
    let (mut ours, mut theirs): (Vec<Going<String>>, Vec<Child>) = Default::default();
    for (nth, expression) in EXPRESSIONS.iter().enumerate() {
        let to = format!("pcapng:{}", file("ours", nth).display());
        let words = ["-i", "c1", "--buffer", "16MiB", "--to", &to, expression];
        ours.push(Going::spawn(command(&hosts.router, &words), |line| line));
        theirs.push(tcpdump(&hosts, &file("theirs", nth), expression));
    }
    testkit::wait_until("all rings are there", || rings(&hosts.router) == EXPRESSIONS.len() * 2);
    // tcpdump opens its file once it captures.
    testkit::wait_until("tcpdump has begun", || (0..EXPRESSIONS.len()).all(|nth| file("theirs", nth).exists()));
    marked_traffic(&hosts);
    let is_end = |frame: &(u64, u32, Vec<u8>)| frame.2.ends_with(b"the end netwren-mark");
    testkit::wait_until("tcpdump has it all", || of_pcap(&file("theirs", 0)).iter().any(is_end));
    for (going, mut tcpdump) in ours.into_iter().zip(theirs) {
        going.end().1.ok();
        assert!(Command::new("kill").args(["-INT", &tcpdump.id().to_string()]).status().unwrap().success());
        tcpdump.wait().unwrap();
    }
    let bytes = |frames: Vec<(u64, u32, Vec<u8>)>| frames.into_iter().map(|frame| frame.2).collect::<Vec<_>>();
    for (nth, expression) in EXPRESSIONS.iter().enumerate() {
        let (own, peer) = (bytes(of_pcapng(&file("ours", nth))), bytes(of_pcap(&file("theirs", nth))));
        assert!(!peer.is_empty(), "`{expression}` takes nothing");
        assert!(own == peer, "`{expression}`: {} frames, tcpdump has {}", own.len(), peer.len());
        if expression.contains("inbound") {
            continue;
        }
        let again = file("again", nth);
        let to = format!("pcapng:{}", again.display());
        let words = [*expression, "--to", &to];
        netwren(&[&["capture", "-r", file("theirs", 0).to_str().unwrap()], &words[..]].concat()).ok();
        assert!(bytes(of_pcapng(&again)) == peer, "`{expression}` on a file");
    }
}

#[test]
fn fields_stand_beside_words_of_pcap_filter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcap");
    let frames = [udp(1000, b"ab"), udp(2000, b"abcd"), udp(3000, b"")];
    std::fs::write(&path, pcap_of(&frames.each_ref().map(Vec::as_slice))).unwrap();
    let shown = |filter: &str| netwren(&["capture", "-H", "-c", "dport", "-r", path.to_str().unwrap(), filter]).ok();
    for (filter, dports) in [
        ("udp port 1000", "1000\n"),
        ("port 53 and dport > 1000", "2000\n3000\n"),
        ("udp and info ~ 'len 4'", "2000\n"),
        ("port 3000 or info ~ 'len 4'", "2000\n3000\n"),
        ("udp and not (port 3000 or info ~ 'len 4')", "1000\n"),
        ("not dport in (1000, 2000) and udp", "3000\n"),
        ("tcp or netns = null", ""),
    ] {
        if filter == "tcp or netns = null" {
            let ran = netwren(&["capture", "-r", path.to_str().unwrap(), filter]);
            ran.says(2, &["`netns` is joined with words of pcap-filter by `and` only"]);
            continue;
        }
        assert_eq!(shown(filter), dports, "{filter}");
    }
    let words = ["capture", "-H", "-c", "dport", "-r", path.to_str().unwrap(), "udp", "and", "dst", "port", "1000"];
    assert_eq!(netwren(&words).ok(), "1000\n", "words need no quotes");
    let refused = |filter: &str| netwren(&["capture", "-r", path.to_str().unwrap(), filter]);
    refused("tcp port").says(2, &["filter, column 9: can't parse filter expression: syntax error"]);
    refused("dprot = 7").says(2, &["unknown field `dprot`; did you mean `dport`?"]);
}

/// To the byte; tcpdump opens a device, so the program for a tag looks beside the packet.
#[test]
fn root_programs_are_printed_as_tcpdump_prints_them() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    for expression in ["arp", "tcp[13] = 2", "ether proto 0x88cc"] {
        for form in ["-d", "-dd", "-ddd"] {
            let peer = Command::new("tcpdump").args(["-i", "lo", "-s", "1918", form, expression]).output().unwrap();
            let peer = String::from_utf8(peer.stdout).unwrap();
            assert_eq!(netwren(&["capture", form, expression]).ok(), peer, "{form} {expression}");
        }
    }
    netwren(&["capture", "-d", "proto = tcp"]).says(2, &["fields are tested here"]);
}

/// The programs for all link types are too long together: the kernel has that for Ethernet, and we judge the rest.
#[test]
fn root_a_filter_of_a_thousand_hosts_is_taken() {
    testkit::require_root!();
    let lab = Lab::new("caphosts");
    let hosts: Vec<String> = (0..1000).map(|nth| format!("host 10.77.{}.{}", nth / 250, nth % 250 + 1)).collect();
    let filter = format!("host 127.0.0.9 or {}", hosts.join(" or "));
    let columns = "iface,dst,dport";
    let words = ["--columns", columns, &filter];
    let mut going = Going::past_header(command(&lab, &words), columns, |line| line);
    lab.inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for host in ["127.0.0.8", "127.0.0.9"] {
            // An ICMP error of the datagram before is the answer to some.
            let _ = socket.send_to(b"x", (host, 7123)).or_else(|_| socket.send_to(b"x", (host, 7123)));
        }
    });
    going.read_until("the packet", |lines| lines.iter().any(|line| line == "lo\t127.0.0.9\t7123"));
    let (mut lines, ran) = going.end();
    // The errors go back to one of our own addresses.
    lines.retain(|line| line.ends_with("\t7123"));
    assert_eq!(lines, ["lo\t127.0.0.9\t7123"]);
    ran.ok();
}
