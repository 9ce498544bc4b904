//! The FILTER of `capture` accepts tcpdump's expressions with the same results, combined with netwren's own fields.

use crate::capture::{command, frames_to, marked_traffic, of_pcap, of_pcapng, rings};
use crate::capture_read::{pcap_of, udp};
use crate::going::Going;
use crate::run::{clean, netwren};
use std::io::Write;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};

/// Every frame of the traffic ends in the mark; these expressions select some of them.
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

/// Compares live captures of tagged and plain packets with tcpdump running at the same time, and then reads tcpdump's
/// file.
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
    // tcpdump creates its file when it starts capturing.
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

/// Expressions, each with a field comparison to append or an empty string.
const TAGGED: &[(&str, &str)] = &[
    ("udp port 53", ""),
    ("udp port 53", " and ttl > 1"),
    ("host 10.9.0.1", ""),
    ("host 10.9.0.1", " and ttl = 9"),
    ("vlan and udp port 53", ""),
    ("vlan and udp port 53", " and info ~ len"),
    ("vlan and vlan and host 10.9.0.1", ""),
    ("vlan 50", ""),
    ("udp and not vlan", " and ttl = 9"),
    ("ether[14:2] = 50", ""),
    ("ether[ip[0] - 69 + 14:2] = 0x4500 and host 10.9.0.1", ""),
    ("udp and len = 46", ""),
];

/// Sends a 46-byte datagram without a tag, with one, two and three tags, and with a 0x9100 tag.
fn tagged_frames(hosts: &Routed) {
    let ip = [0x45, 0, 0, 32, 0, 0, 0, 0, 9, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    let udp = [0, 53, 0, 99, 0, 12, 0, 0, b'a', b'b', b'c', b'd'];
    let chains: [&[u8]; 5] = [
        &[0x81, 0, 0, 50],
        &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 50],
        &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 0x81, 0, 0, 50],
        &[0x91, 0, 0, 7],
        &[],
    ];
    hosts.client.run_inside(|| {
        let mut socket = frames_to("c0");
        for tags in chains {
            socket.write_all(&[&[2; 12], tags, &[8, 0], &ip[..], &udp].concat()).unwrap();
        }
    });
}

/// netwren takes the packets that tcpdump takes from a file: on one interface, on all, with fields and from the file.
#[test]
fn root_an_expression_takes_the_same_tagged_packets_live_joined_and_from_a_file() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let hosts = Routed::new("captags");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.pcap");
    let ways = TAGGED.iter().flat_map(|one| [(one, &["-i", "c1"][..]), (one, &[])]);
    let live: Vec<_> = ways
        .map(|(one, ifaces)| {
            let expression = format!("{}{}", one.0, one.1);
            let words = [&["--columns", "len"], ifaces, &[&expression]].concat();
            (one, Going::past_header(command(&hosts.router, &words), "len", |line| line))
        })
        .collect();
    let mut all = tcpdump(&hosts, &file, "not ip6 and not arp");
    testkit::wait_until("all rings are there", || rings(&hosts.router) == live.len() + 1);
    testkit::wait_until("tcpdump has begun", || file.exists());
    tagged_frames(&hosts);
    let frames = || std::fs::read(&file).map_or(0, |bytes| bytes.len());
    testkit::wait_until("tcpdump has it all", || frames() == 24 + 5 * 16 + 5 * 46 + 4 * 7);
    assert!(Command::new("kill").args(["-INT", &all.id().to_string()]).status().unwrap().success());
    all.wait().unwrap();
    let path = file.to_str().unwrap();
    for ((expression, fields), going) in live {
        let read = Command::new("tcpdump").args(["-nn", "-t", "-e", "-r", path, expression]).output().unwrap();
        let read = String::from_utf8(read.stdout).unwrap();
        let length = |line: &str| line.split("length ").nth(1)?.split(':').next().map(str::to_owned);
        let peer: Vec<String> = read.lines().filter_map(length).collect();
        assert!(!peer.is_empty(), "{expression}");
        let expression = format!("{expression}{fields}");
        let ran = netwren(&["capture", "-H", "--columns", "len", "-r", path, &expression]);
        assert_eq!(ran.ok().lines().collect::<Vec<_>>(), peer, "{expression}, file");
        let (lines, ran) = going.end();
        assert_eq!(lines, peer, "{expression}, live");
        assert_eq!(ran.code, 0);
    }
}

/// netwren counts the packets that their tags hide, unless the expression is about tags.
#[test]
fn root_packets_that_match_after_their_tags_are_counted() {
    const SAYS: &str = "packets match the expression only inside VLAN tags";
    testkit::require_root!();
    let hosts = Routed::new("caphide");
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("all.pcapng");
    let expressions = ["ip host 10.9.0.1 and udp", "host 10.9.0.1 and not vlan", "src = 10.9.0.1"];
    let live = expressions.map(|expression| {
        let words = ["--columns", "vlan,inner_vlan", "-i", "c1", expression];
        Going::past_header(command(&hosts.router, &words), "vlan,inner_vlan", |line| line)
    });
    let all = Going::<String>::spawn(command(&hosts.router, &["-i", "c1", "-w", to.to_str().unwrap()]), |line| line);
    testkit::wait_until("all rings are there", || rings(&hosts.router) == 4);
    tagged_frames(&hosts);
    let [hidden, about_tags, fields] = live.map(|mut going| {
        // The frame without a tag comes last.
        going.read_until("all frames", |lines| lines.iter().any(|line| line == "-\t-"));
        going.end()
    });
    assert_eq!(hidden.0, ["-\t-"]);
    assert!(hidden.1.stderr.contains(&format!("3 {SAYS}")), "{}", hidden.1.stderr);
    assert_eq!(about_tags.0, ["-\t-"]);
    assert!(!about_tags.1.stderr.contains(SAYS));
    assert_eq!(fields.0, ["50\t-", "7\t50", "7\t8", "7\t-", "-\t-"]);
    all.end().1.ok();
    let read = |expression: &str| netwren(&["capture", "-r", to.to_str().unwrap(), expression]);
    read("host 10.9.0.1").says(0, &[&format!("4 {SAYS}"), "start it with `vlan and`"]);
    assert!(!read("vlan or host 10.9.0.1").stderr.contains(SAYS));
}

/// On all interfaces, tcpdump's expression does not see the outer tag, because the kernel keeps it in the metadata.
#[test]
fn root_tcpdump_of_all_interfaces_takes_tagged_packets() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let hosts = Routed::new("tdtags");
    let both = ["tcpdump", "netwren"].map(|program| {
        let mut command = match program {
            "netwren" => Command::new(testkit::program::netwren()),
            other => Command::new(other),
        };
        clean(&mut command).args((program == "netwren").then_some("tcpdump"));
        command.args(["-i", "any", "-nn", "-t", "-l", "--immediate-mode", "-Q", "in", "udp and dst port 99"]);
        confine(&mut command, &[Limit::Network(hosts.router.path())]).unwrap();
        Going::<String>::spawn(command, |line| line)
    });
    testkit::wait_until("both rings are there", || rings(&hosts.router) == 2);
    tagged_frames(&hosts);
    let [theirs, ours] = both.map(|mut going| {
        going.read_until("the last packet", |lines| lines.iter().any(|line| line.contains("IP 10.9.0.1.53")));
        let is_datagram = |line: &&String| line.contains("10.9.0.1.53 > 10.9.0.2.99");
        going.end().0.iter().filter(is_datagram).count()
    });
    // tcpdump leaves the 0x9100 tag in the packet, because this kernel does not remove it.
    assert_eq!((theirs, ours), (2, 3));
}

#[test]
fn fields_are_mixed_with_words_of_pcap_filter() {
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
            ran.says(2, &["`netns` can be combined with pcap-filter expressions only by `and`"]);
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

/// The output is identical byte for byte. tcpdump gets an interface, so its program finds the VLAN tag in the packet's
/// metadata.
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
    netwren(&["capture", "-d", "proto = tcp"]).says(2, &["netwren tests fields outside the kernel"]);
}

/// The programs for all link types together are too long, so the kernel filters Ethernet only, and netwren filters the
/// rest.
#[test]
fn root_a_filter_of_a_thousand_hosts_is_taken() {
    testkit::require_root!();
    let lab = Lab::new("caphosts");
    let hosts: Vec<String> = (0..1000).map(|nth| format!("host 10.77.{}.{}", nth / 250, nth % 250 + 1)).collect();
    let filter = format!("host 127.0.0.9 or {}", hosts.join(" or "));
    let columns = "iface,dst,dport";
    let words = ["--columns", columns, &filter];
    let mut going = Going::past_header(command(&lab, &words), columns, |line| line);
    lab.run_inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for host in ["127.0.0.8", "127.0.0.9"] {
            // Some calls return the ICMP error caused by the previous datagram.
            let _ = socket.send_to(b"x", (host, 7123)).or_else(|_| socket.send_to(b"x", (host, 7123)));
        }
    });
    going.read_until("the packet", |lines| lines.iter().any(|line| line == "lo\t127.0.0.9\t7123"));
    let (mut lines, ran) = going.end();
    // Ignore the ICMP errors, which go back to one of the host's own addresses.
    lines.retain(|line| line.ends_with("\t7123"));
    assert_eq!(lines, ["lo\t127.0.0.9\t7123"]);
    ran.ok();
}
