//! Compares `netwren tcpdump` without `-n` with this machine's tcpdump: names from files in the test's own /etc, and
//! from a name server in the test's network namespace.

use crate::capture::rings;
use crate::going::Going;
use crate::run::clean;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Creates the /etc that both tools see, with only the files about names.
fn etc(dir: &Path, switch: &str) {
    for name in ["passwd", "group"] {
        fs::copy(Path::new("/etc").join(name), dir.join(name)).unwrap();
    }
    for (name, text) in [
        (
            "hosts",
            "127.0.0.1 localhost l\n::1 ip6-localhost\n10.0.0.1 one.example.org one\n10.0.0.2\ttwo # 2\n\
                   2001:db8::1 six.example.org\n10.0.0.1 again\n",
        ),
        ("services", "ssh 22/tcp\nhttp 80/tcp www\nabout 7999/udp\ntname 4321/tcp\nuname 4321/udp\nlate 4321/udp\n"),
        ("ethers", "02:00:00:00:00:01 gateway.example # x\n2:0:0:0:0:7 seven\n"),
        ("nsswitch.conf", switch),
        ("resolv.conf", "nameserver 127.0.0.1\n"),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
}

/// A name server on the lab's 127.0.0.1; it ends on drop.
struct NameServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    fn new(lab: &Lab) -> NameServer {
        let socket = lab.run_inside(|| UdpSocket::bind("127.0.0.1:53").unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = move || {
            let mut query = [0; 512];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((len, from)) = socket.recv_from(&mut query) else { continue };
                socket.send_to(&answer(&query[..len]), from).unwrap();
            }
        };
        NameServer { stop, thread: Some(std::thread::spawn(serve)) }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Answers with the addresses of `named.example.org`, a name for `10.0.0.50`, a hostile name for `10.0.0.51`, the name
/// `10.0.0.1` for `10.0.0.52`, and a name for an IPv6 address. For all other queries, answers that the name does not
/// exist.
fn answer(query: &[u8]) -> Vec<u8> {
    // The server repeats only the question of a query, without further records such as EDNS.
    let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let kind = query[end - 3];
    let data: &[u8] = match query.get(12..16) {
        Some(b"\x0250\x01") => b"\x05fifty\x07example\x03org\0",
        Some(b"\x0251\x01") => b"\x05ev\x1bil\x03org\0",
        Some(b"\x0252\x01") => b"\x0210\x010\x010\x011\0",
        Some(b"\x01f\x01e") => b"\x03six\x04host\0",
        Some(b"\x05nam") if kind == 1 => &[10, 0, 0, 50],
        Some(b"\x05nam") if kind == 28 => &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xef],
        _ => b"",
    };
    let mut bytes = query[..end].to_vec();
    bytes[2..4].copy_from_slice(&[0x81, if data.is_empty() { 0x83 } else { 0x80 }]);
    bytes[6..12].copy_from_slice(&[0, u8::from(!data.is_empty()), 0, 0, 0, 0]);
    if !data.is_empty() {
        bytes.extend_from_slice(&[0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, data.len() as u8]);
        bytes.extend_from_slice(data);
    }
    bytes
}

fn ethernet(addresses: [u8; 12], kind: u16, payload: &[u8]) -> Vec<u8> {
    [&addresses[..], &kind.to_be_bytes(), payload].concat()
}

const GATEWAY: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 7];
const BROADCAST: [u8; 12] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x0c, 1, 2, 3];

fn v4(proto: u8, offset: u16, hosts: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let head = [&[0x45, 0][..], &len.to_be_bytes(), &[0, 1], &offset.to_be_bytes(), &[64, proto, 0, 0]].concat();
    [&head[..], &[10, 0, 0, hosts[0], 10, 0, 0, hosts[1]], payload].concat()
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let address = |last: u8| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let len = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0][..], &len, &[next, 64], &address(1), &address(0xef), payload].concat()
}

fn ports(sport: u16, dport: u16, rest: &[u8]) -> Vec<u8> {
    [&sport.to_be_bytes()[..], &dport.to_be_bytes(), rest].concat()
}

/// Packets with every kind of name.
fn frames() -> Vec<Vec<u8>> {
    let udp = |sport, dport| ports(sport, dport, &[0, 9, 0, 0, 7]);
    let segment = |sport, dport| ports(sport, dport, &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 2, 0, 0, 0, 0, 0]);
    let ip = |packet: Vec<u8>| ethernet(GATEWAY, 0x0800, &packet);
    let ip6 = |packet: Vec<u8>| ethernet(GATEWAY, 0x86dd, &packet);
    let quoted = |proto, ports: &[u8]| [&[3, 3, 0, 0, 0, 0, 0, 0][..], &v4(proto, 0, [2, 1], ports)].concat();
    let quoted6 = |next, ports: &[u8]| [&[1, 4, 0, 0, 0, 0, 0, 0][..], &v6(next, ports)].concat();
    let arp = |operation: u8| {
        let head = [0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1];
        [&head[..], &[0, 0x90, 0x69, 1, 2, 3, 10, 0, 0, 50]].concat()
    };
    let mut frames = vec![
        ip(v4(17, 0, [1, 2], &udp(4321, 9999))),
        ip(v4(17, 0, [1, 50], &udp(7999, 4321))),
        ip(v4(6, 0, [50, 2], &segment(22, 4321))),
        ip(v4(6, 0, [99, 51], &segment(80, 40000))),
        ip(v4(132, 0, [1, 2], &ports(4321, 22, &[0, 0, 0, 1, 0, 0, 0, 0]))),
        ip(v4(1, 0, [1, 2], &quoted(6, &segment(1, 22)))),
        ip(v4(1, 0, [1, 2], &quoted(17, &udp(1, 4321)))),
        ip(v4(1, 0, [1, 2], &quoted(200, &udp(1, 4321)))),
        ip(v4(2, 0, [1, 2], &[0x16, 0, 0, 0, 10, 0, 0, 50])),
        ip6(v6(17, &udp(4321, 7999))),
        ip6(v6(58, &quoted6(6, &segment(1, 22)))),
        ip6(v6(58, &quoted6(17, &udp(1, 4321)))),
        ip6(v6(58, &[&[135, 0, 0, 0, 0, 0, 0, 0][..], &v6(0, &[])[8..24]].concat())),
        ethernet(BROADCAST, 0x88b5, b"unknown"),
        ethernet(BROADCAST, 0x0800, &v4(17, 0, [1, 255], &udp(1, 2))),
        ethernet(BROADCAST, 3, &[0x11, 0x22, 3]),
    ];
    // Protocols that neither of the two programs decodes.
    let undecoded = [3, 5, 34, 60, 61, 99, 107, 142, 143, 200, 253, 255];
    frames.extend(undecoded.map(|proto| ip(v4(proto, 0, [1, 2], b"abcd"))));
    frames.extend([6, 89, 61].map(|proto| ip(v4(proto, 100, [1, 2], b"abcd"))));
    frames.extend((1..5).map(|operation| ethernet(BROADCAST, 0x0806, &arp(operation))));
    frames
}

fn pcap(file: &Path, frames: &[Vec<u8>]) {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for frame in frames {
        for word in [1_700_000_000, 1000, frame.len() as u32, frame.len() as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(frame);
    }
    fs::write(file, bytes).unwrap();
}

/// The tool in the lab, with this /etc.
fn inside(lab: &Lab, etc: &Path, program: &str, args: &[&str]) -> Command {
    let mut command = match program {
        "netwren" => Command::new(testkit::program::netwren()),
        other => Command::new(other),
    };
    clean(&mut command).args(if program == "netwren" { &["tcpdump"][..] } else { &[] }).args(args);
    let cover = Limit::Cover { with: etc.into(), place: "/etc".into() };
    confine(&mut command, &[Limit::Network(lab.path()), cover]).unwrap();
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SWITCHES: [&[&str]; 9] =
    [&[], &["-e"], &["-v"], &["-N"], &["-q"], &["-ev"], &["-n"], &["-nn", "-e"], &["-S", "-x"]];

#[test]
fn root_names_of_a_file_are_those_of_tcpdump() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("tdnames");
    let _server = NameServer::new(&lab);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pcap");
    pcap(&file, &frames());
    let etc_dir = dir.path().join("etc");
    fs::create_dir(&etc_dir).unwrap();
    for switch in ["", "hosts: files\nservices: files\n", "hosts: dns\nservices: db\nethers: db\n"] {
        etc(&etc_dir, switch);
        for switches in SWITCHES {
            let words = [&["-r", file.to_str().unwrap()], switches].concat();
            let [theirs, ours]: [Output; 2] =
                ["tcpdump", "netwren"].map(|program| inside(&lab, &etc_dir, program, &words).output().unwrap());
            assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{switch:?} {words:?}");
            assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{switch:?} {words:?}");
        }
        let plain = text(&inside(&lab, &etc_dir, "netwren", &["-r", file.to_str().unwrap()]).output().unwrap().stdout);
        assert_eq!(plain.contains("one.example.org.uname > two.9999"), switch.is_empty() || switch.contains(" files"));
        assert_eq!(plain.contains("fifty.example.org"), switch.is_empty() || switch.contains("dns"), "{plain}");
    }
}

/// Names from files may contain any bytes. A silent name server costs one second for each of three addresses, and a
/// message reports it.
#[test]
fn root_names_are_escaped_and_silent_servers_are_reported() {
    testkit::require_root!();
    let lab = Lab::new("tdhostile");
    let silent = lab.run_inside(|| UdpSocket::bind("127.0.0.1:53").unwrap());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pcap");
    let udp = ports(4321, 9999, &[0, 9, 0, 0, 7]);
    let packets = (60..80).map(|host| ethernet(GATEWAY, 0x0800, &v4(17, 0, [1, host], &udp)));
    pcap(&file, &packets.collect::<Vec<_>>());
    etc(dir.path(), "");
    fs::write(dir.path().join("hosts"), b"10.0.0.1 a\x1b[31m\xffb\n").unwrap();
    fs::write(dir.path().join("services"), "x\u{7}y 4321/udp\n").unwrap();
    fs::write(dir.path().join("ethers"), "2:0:0:0:0:1 m\u{9b}n\n").unwrap();
    let ran = inside(&lab, dir.path(), "netwren", &["-e", "-t", "-r", file.to_str().unwrap()]).output().unwrap();
    let stdout = text(&ran.stdout);
    let first = "02:00:00:00:00:07 (oui Unknown) > mM-BM-^[n, ethertype IPv4 (0x0800), length 43: \
                 a^[[31mM-^?b.x^Gy > 10.0.0.60.9999: UDP, length 1";
    assert_eq!(stdout.lines().next(), Some(first));
    assert_eq!(stdout.lines().count(), 20);
    assert!(stdout.lines().all(|line| line.contains("M-^?b.x^Gy > 10.0.0.")));
    let said = text(&ran.stderr);
    assert!(said.contains("addresses unknown: no name server answered (-n requests no names)\n"), "{said}");
    drop(silent);
}

#[test]
fn root_names_of_an_interface_are_those_of_tcpdump() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("tdlivename");
    lab.ip(&["addr", "add", "10.0.0.50/24", "dev", "lo"]);
    lab.ip(&["addr", "add", "10.0.0.1/32", "dev", "lo"]);
    let _server = NameServer::new(&lab);
    let dir = tempfile::tempdir().unwrap();
    etc(dir.path(), "");
    for (switches, expected) in [
        (&[][..], "IP fifty.example.org.uname > one.example.org.about: UDP, length 3"),
        (&["-N"], "IP fifty.uname > one.about: UDP, length 3"),
        // Resolving names needs no privileges.
        (&["-N", "-Z", "nobody"], "IP fifty.uname > one.about: UDP, length 3"),
        // The first network of the interface is 127.0.0.0/8.
        (&["-f"], "IP 10.0.0.50.uname > 10.0.0.1.about: UDP, length 3"),
        (&["-n"], "IP 10.0.0.50.4321 > 10.0.0.1.7999: UDP, length 3"),
        (
            &["-e", "-N"],
            "00:00:00:00:00:00 (oui Ethernet) > 00:00:00:00:00:00 (oui Ethernet), ethertype IPv4 \
                         (0x0800), length 45: fifty.uname > one.about: UDP, length 3",
        ),
    ] {
        let before = rings(&lab);
        let mut both = ["tcpdump", "netwren"].map(|program| {
            let words = [&["-t", "-l", "-i", "lo", "-c", "2"], switches, &["udp port 7999"]].concat();
            Going::<String>::spawn(inside(&lab, dir.path(), program, &words), |line| line)
        });
        testkit::wait_until("both rings are there", || rings(&lab) == before + 2);
        let send = || {
            let socket = UdpSocket::bind("10.0.0.50:4321").unwrap();
            (0..2).for_each(|_| _ = socket.send_to(b"abc", "10.0.0.1:7999"));
        };
        lab.run_inside(send);
        for going in &mut both {
            going.read_until("both packets", |lines| lines.len() == 2);
            assert_eq!(going.read, [expected, expected], "{switches:?}");
        }
    }
}

/// If no server answers, packets are shown with numbers, and none of them waits long.
#[test]
fn root_silent_servers_hold_no_packet_back() {
    testkit::require_root!();
    let lab = Lab::new("tdsilent");
    let silent = lab.run_inside(|| UdpSocket::bind("127.0.0.1:53").unwrap());
    let dir = tempfile::tempdir().unwrap();
    etc(dir.path(), "");
    let words = ["-t", "-l", "-i", "lo", "-c", "400", "udp port 7999"];
    let mut going = Going::<String>::spawn(inside(&lab, dir.path(), "netwren", &words), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    lab.run_inside(|| {
        for host in 0..200_u8 {
            let socket = UdpSocket::bind((Ipv4Addr::new(127, 1, 0, host), 4321)).unwrap();
            (0..2).for_each(|_| _ = socket.send_to(b"abc", (Ipv4Addr::new(127, 2, 0, host), 7999)).unwrap());
        }
    });
    going.read_until("all packets", |lines| lines.len() == 400);
    assert_eq!(going.read[399], "IP 127.1.0.199.uname > 127.2.0.199.about: UDP, length 3");
    drop(silent);
}

/// Names of hosts, networks, ports and protocols in expressions, from files and from a name server.
#[test]
fn root_names_in_expressions_are_those_of_tcpdump() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("tdwords");
    let _server = NameServer::new(&lab);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pcap");
    pcap(&file, &frames());
    let etc_dir = dir.path().join("etc");
    fs::create_dir(&etc_dir).unwrap();
    etc(&etc_dir, "");
    fs::copy("/etc/protocols", etc_dir.join("protocols")).unwrap();
    fs::write(etc_dir.join("networks"), "ours 10.0.0.1\n").unwrap();
    for (expression, at_least) in [
        ("host one", 10),
        ("host one.example.org", 10),
        ("host two and not host again", 0),
        ("host named.example.org", 5),
        ("src host six.example.org", 1),
        ("ether host gateway.example", 10),
        ("net ours", 10),
        ("port uname or port about", 1),
        ("tcp port ssh", 1),
        ("ip proto st", 1),
        ("host nosuch.example.org", 0),
        ("net nosuch", 0),
        ("port nosuch", 0),
        ("ether host nosuch", 0),
    ] {
        let words = ["-n", "-r", file.to_str().unwrap(), expression];
        let [theirs, ours]: [Output; 2] =
            ["tcpdump", "netwren"].map(|program| inside(&lab, &etc_dir, program, &words).output().unwrap());
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{expression}");
        assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{expression}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{expression}");
        assert!(text(&ours.stdout).lines().count() >= at_least, "{expression}: {}", text(&ours.stdout));
    }
}

/// The owner of an address chooses its name. netwren ignores a name that is itself an address or that no host can have.
#[test]
fn root_a_name_that_is_an_address_replaces_no_address() {
    testkit::require_root!();
    let lab = Lab::new("ptraddr");
    let _server = NameServer::new(&lab);
    let etc_dir = tempfile::tempdir().unwrap();
    etc(etc_dir.path(), "");
    let ends = [50, 51, 52].map(|last| Ipv4Addr::new(10, 0, 0, last));
    ends.iter().for_each(|end| lab.ip(&["addr", "add", &format!("{end}/32"), "dev", "lo"]));
    let listeners = ends.map(|end| lab.run_inside(|| std::net::TcpListener::bind((end, 7771)).unwrap()));
    let clients = ends.map(|end| lab.run_inside(|| std::net::TcpStream::connect((end, 7771)).unwrap()));
    let said = |words: &[&str]| {
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(words);
        let cover = Limit::Cover { with: etc_dir.path().into(), place: "/etc".into() };
        confine(&mut command, &[Limit::Network(lab.path()), cover]).unwrap();
        text(&command.output().unwrap().stdout)
    };
    for words in [
        &["netstat", "-tW"][..],
        &["ss", "-tr"],
        &["lstf"],
        &["sockets", "--resolve=5", "--columns", "local_addr,peer_addr", "state = established"],
        &["sockets", "--resolve=5", "-o", "csv", "--columns", "local,peer", "state = established"],
        &["flows", "--resolve=5"],
    ] {
        let all = said(words);
        for shown in ["fifty.example.org", "10.0.0.51", "10.0.0.52"] {
            assert!(all.contains(shown), "{words:?}: {shown}: {all}");
        }
        assert!(!all.contains("10.0.0.1:") && !all.contains("10.0.0.1\n") && !all.contains("ev"), "{words:?}: {all}");
    }
    let rows = said(&["sockets", "--resolve=5", "-o", "json", "-c", "peer", "state = established"]);
    let rows: Vec<serde_json::Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let name = |end: &str| {
        let row = rows.iter().find(|row| row["peer_addr"] == end).unwrap();
        row["peer_addr_name"].as_str().map(str::to_owned)
    };
    assert_eq!(name("10.0.0.50").as_deref(), Some("fifty.example.org"), "JSON has both");
    assert_eq!((name("10.0.0.51"), name("10.0.0.52")), (None, None));
    drop((listeners, clients));
}
