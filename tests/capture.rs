//! `capture` shows or counts every packet of an interface, byte for byte as tcpdump does.

use crate::going::Going;
use crate::run::{Ran, clean};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use sys::caps::Cap;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};

pub(crate) fn command(lab: &Lab, args: &[&str]) -> Command {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).arg("capture").args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

fn capture(lab: &Lab, columns: &str, args: &[&str]) -> Going<String> {
    Going::past_header(command(lab, &[&["--columns", columns], args].concat()), columns, |line| line)
}

/// Sends `count` datagrams of ten bytes to a port of the lab that no process listens on.
fn send(lab: &Lab, port: u16, count: usize) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..count {
            // Some calls return the ICMP error caused by the previous datagram.
            let _ = socket.send_to(b"0123456789", (Ipv4Addr::LOCALHOST, port));
        }
    });
}

#[test]
fn root_capture_shows_each_packet_once() {
    testkit::require_root!();
    let lab = Lab::new("capshow");
    let columns = "iface,direction,proto,src,dst,dport,len,caplen,info";
    let filter = "proto = udp and dport = 7123";
    let mut all = capture(&lab, columns, &[filter]);
    let mut lo = capture(&lab, columns, &["-i", "lo", "--latency", "0", filter]);
    let mut cut = capture(&lab, columns, &["-i", "lo", "--snaplen", "40", "--latency", "1ms", filter]);
    send(&lab, 7123, 3);
    let line = "lo\tin\tudp\t127.0.0.1\t127.0.0.1\t7123\t52\t52\tlen 10";
    for going in [&mut all, &mut lo, &mut cut] {
        going.read_until("three packets", |lines| lines.len() >= 3);
    }
    let of_cut = line.replace("\t52\t52\t", "\t52\t40\t");
    for (going, line) in [(all, line), (lo, line), (cut, of_cut.as_str())] {
        let (lines, ran) = going.end();
        assert_eq!(lines, [line; 3]);
        // The ICMP errors are packets as well.
        assert!(ran.stderr.contains("; 3 shown, 3 filtered\n"), "{}", ran.stderr);
        ran.ok();
    }
}

#[test]
fn root_capture_ends_at_its_limit_or_time() {
    testkit::require_root!();
    let lab = Lab::new("capend");
    let mut json: Going<String> =
        Going::spawn(command(&lab, &["-o", "json", "--limit", "2", "dport = 7123"]), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    send(&lab, 7123, 5);
    assert!(json.child.wait().unwrap().success());
    json.read_until("two objects", |lines| lines.len() == 2);
    let row: serde_json::Value = serde_json::from_str(&json.read[0]).unwrap();
    assert_eq!((&row["iface"], &row["proto"], &row["dport"]), (&"lo".into(), &"udp".into(), &7123.into()));
    assert_eq!((&row["vlan"], &row["caplen"]), (&serde_json::Value::Null, &52.into()));
    let ran = Ran::of(command(&lab, &["--for", "0.2", "-H"]).output().unwrap());
    assert!(ran.stderr.contains("0 packets received, 0 dropped by the ring, 0 by interfaces"), "{}", ran.stderr);
    assert_eq!(ran.ok(), "");
}

/// Number of bound packet sockets of processes in the lab's namespace. Those of a program that captures in all
/// namespaces do not count: another test may run one.
pub(crate) fn rings(lab: &Lab) -> usize {
    let listed = lab.output("cat", &["/proc/net/packet"]);
    let bound = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Columns `Proto` and `Inode`.
    let bound = bound.filter(|cells| cells.get(3) == Some(&"0003")).filter_map(|cells| cells.last().copied());
    let bound: Vec<String> = bound.map(|inode| format!("socket:[{inode}]")).collect();
    if bound.is_empty() {
        return 0;
    }
    let link = |path: String| std::fs::read_link(path).map(|target| target.to_string_lossy().into_owned());
    let inside = lab.run_inside(|| link("/proc/thread-self/ns/net".to_owned())).unwrap();
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let held = processes.filter(|pid| link(format!("/proc/{pid}/ns/net")).is_ok_and(|netns| netns == inside)).flat_map(
        |pid| {
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            open.filter_map(|fd| Some(std::fs::read_link(fd.path()).ok()?.to_string_lossy().into_owned()))
                .collect::<Vec<_>>()
        },
    );
    let held: std::collections::HashSet<String> = held.filter(|target| bound.contains(target)).collect();
    held.len()
}

/// Drops packets to port 7123 before the host answers, so the interface carries nothing else.
fn drop_7123(lab: &Lab) {
    lab.nft("table inet t {\n chain i { type filter hook input priority 0\n udp dport 7123 drop\n }\n }");
}

/// Packets that do not fit into the ring are counted: shown plus dropped packets equal the sent ones.
#[test]
fn root_capture_counts_what_is_lost() {
    const PACKETS: usize = 20_000;
    testkit::require_root!();
    let lab = Lab::new("caplost");
    drop_7123(&lab);
    let slow = capture(&lab, "len", &["-i", "lo", "--buffer", "64KiB"]);
    slow.signal("-STOP");
    send(&lab, 7123, PACKETS);
    slow.signal("-CONT");
    let (lines, ran) = slow.end();
    let dropped = PACKETS - lines.len();
    assert!(dropped > PACKETS / 2, "{dropped}");
    let received = format!("{PACKETS} packets received, {dropped} dropped by the ring");
    let lost = format!("of {} rows read: {dropped} lost", lines.len());
    ran.says(3, &[&received, &lost, "the ring of 64 KiB was full (raise with --buffer)"]);
}

/// Packets that arrive just before Ctrl-C are shown.
#[test]
fn root_capture_hands_out_the_last_packets() {
    testkit::require_root!();
    let lab = Lab::new("caplast");
    drop_7123(&lab);
    for words in [&["-i", "lo"][..], &["--snaplen", "65535", "--latency", "100ms"]] {
        let going = capture(&lab, "len", words);
        send(&lab, 7123, 400);
        let (lines, ran) = going.end();
        assert_eq!(lines.len(), 400, "{words:?} {}", ran.stderr);
        ran.ok();
    }
}

/// Receives the lines of stderr as they are written.
fn said(going: &mut Going<String>) -> Receiver<String> {
    let (sender, lines) = channel();
    let stderr = BufReader::new(going.child.stderr.take().unwrap());
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

fn wait_for(lines: &Receiver<String>, words: &str) {
    let mut all = Vec::new();
    testkit::wait_until(words, || {
        all.extend(lines.try_iter());
        all.iter().any(|line: &String| line.contains(words))
    });
}

#[test]
fn root_capture_goes_on_when_interfaces_go() {
    testkit::require_root!();
    let lab = Lab::new("capgone");
    let add = || {
        lab.ip(&["link", "add", "d0", "type", "veth", "peer", "name", "d9"]);
        lab.ip(&["link", "set", "d9", "up"]);
        lab.ip(&["link", "set", "d0", "up"]);
        lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "d0"]);
    };
    add();
    let mut going = capture(&lab, "iface", &["-i", "d0", "-i", "lo", "dport = 7123"]);
    let lines = said(&mut going);
    let out = || {
        lab.run_inside(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let _ = lab.output("ip", &["neigh", "replace", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", "d0"]);
            socket.send_to(b"0123456789", "192.0.2.9:7123").unwrap();
        });
    };
    out();
    going.read_until("a packet of d0", |rows| rows == ["d0"]);
    lab.ip(&["link", "set", "d0", "down"]);
    wait_for(&lines, "d0 went down: capturing continues when it is up");
    lab.ip(&["link", "del", "d0"]);
    wait_for(&lines, "d0 was removed: capturing continues when an interface of that name appears");
    send(&lab, 7123, 1);
    going.read_until("a packet of lo", |rows| rows == ["d0", "lo"]);
    add();
    wait_for(&lines, "d0 has reappeared");
    out();
    going.read_until("a packet of the new d0", |rows| rows == ["d0", "lo", "d0"]);
    // Repeat this with several packets: each is shown once, on whichever CPU it arrives.
    lab.ip(&["link", "del", "d0"]);
    wait_for(&lines, "d0 was removed: capturing continues when an interface of that name appears");
    add();
    wait_for(&lines, "d0 has reappeared");
    (0..20).for_each(|_| out());
    going.read_until("packets of the newest d0", |rows| rows.len() >= 23);
    lab.ip(&["link", "set", "d0", "down"]);
    lab.ip(&["link", "set", "d0", "name", "d1"]);
    wait_for(&lines, "d0 was renamed to d1: capturing continues");
    going.signal("-USR1");
    wait_for(&lines, "packets received, 0 dropped by the ring");
    going.signal("-INT");
    assert!(going.child.wait().unwrap().success());
    // Each packet is counted once, including the packets of the previous rings.
    wait_for(&lines, "; 23 shown, ");
}

#[test]
fn root_capture_sees_interfaces_and_namespaces_of_later() {
    testkit::require_root!();
    let (lab, other) = (Lab::new("caplater"), Lab::new("capother"));
    let mut all = capture(&lab, "iface,dst", &["iface = d0 and dport = 7123"]);
    let mut every = capture(&lab, "netns,iface,dport", &["--all-netns", "dport = 7124"]);
    lab.ip(&["link", "add", "d0", "type", "veth", "peer", "name", "d9"]);
    lab.ip(&["link", "set", "d9", "up"]);
    lab.ip(&["link", "set", "d0", "up"]);
    lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "d0"]);
    lab.ip(&["neigh", "replace", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", "d0"]);
    lab.run_inside(|| UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"0", "192.0.2.9:7123").unwrap());
    all.read_until("a packet of the new interface", |lines| lines == ["d0\t192.0.2.9"]);
    send(&other, 7124, 1);
    let expected = format!("{}\tlo\t7124", other.name());
    every.read_until("a packet of the other namespace", |lines| lines.contains(&expected));
    all.end().1.ok();
    every.end();
}

#[test]
fn root_capture_says_which_right_and_which_interface_is_missing() {
    testkit::require_root!();
    let lab = Lab::new("capdenied");
    let mut denied = command(&lab, &["--for", "1"]);
    confine(&mut denied, &[Limit::WithoutCaps(vec![Cap::NetRaw])]).unwrap();
    Ran::of(denied.output().unwrap()).says(4, &["operation not permitted (needs CAP_NET_RAW"]);
    let ran = Ran::of(command(&lab, &["-i", "nope\u{1b}"]).output().unwrap());
    ran.says(4, &["interface nope\\u{1b} does not exist; available: lo"]);
}

/// A TCP packet that the interface segments later is captured as one packet, longer than any frame.
#[test]
fn root_capture_takes_packets_that_are_longer_than_frames() {
    testkit::require_root!();
    let lab = Lab::new("caplong");
    let filter = "tcp dst port 7125 and len > 9000";
    let mut cut = capture(&lab, "len,caplen", &["-i", "lo", filter]);
    let mut whole = capture(&lab, "len,caplen", &["-i", "lo", "--snaplen", "262144", "--latency", "1ms", filter]);
    lab.run_inside(|| {
        let listener = TcpListener::bind("127.0.0.1:7125").unwrap();
        let mut sender = TcpStream::connect("127.0.0.1:7125").unwrap();
        let mut reader = listener.accept().unwrap().0;
        let text = vec![b'x'; 1 << 20];
        std::thread::scope(|scope| {
            scope.spawn(|| sender.write_all(&text).unwrap());
            reader.read_exact(&mut vec![0; 1 << 20]).unwrap();
        });
    });
    let numbers = |line: &String| line.split('\t').map(|cell| cell.parse().unwrap()).collect::<Vec<u32>>();
    cut.read_until("a long packet", |lines| !lines.is_empty());
    whole.read_until("a long packet", |lines| !lines.is_empty());
    let (cut, of_cut) = cut.end();
    let (whole, of_whole) = whole.end();
    for numbers in cut.iter().map(numbers) {
        assert!(numbers[0] > 9000 && numbers[1] == 1918, "{numbers:?}");
    }
    for numbers in whole.iter().map(numbers) {
        assert!(numbers[0] > 9000 && numbers[0] == numbers[1], "{numbers:?}");
    }
    assert_eq!(cut.len(), whole.len());
    of_cut.ok();
    of_whole.ok();
}

/// A frame of a file: timestamp in ns, length, bytes.
pub(crate) type FileFrame = (u64, u32, Vec<u8>);

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The end of every payload in the test.
const MARK: &[u8] = b"netwren-mark";

fn is_marked(frame: &FileFrame) -> bool {
    frame.2.windows(MARK.len()).any(|window| window == MARK)
}

/// The marked frames of a pcap file with nanosecond timestamps.
pub(crate) fn of_pcap(path: &Path) -> Vec<FileFrame> {
    let bytes = std::fs::read(path).unwrap();
    let mut found = Vec::new();
    let mut rest = bytes.get(24..).unwrap_or_default();
    while rest.len() >= 16 {
        let [s, ns, caplen, len] = [0, 4, 8, 12].map(|at| u32_at(rest, at));
        let Some(frame) = rest.get(16..16 + caplen as usize) else { break };
        found.push((u64::from(s) * 1_000_000_000 + u64::from(ns), len, frame.to_vec()));
        rest = &rest[16 + caplen as usize..];
    }
    found.retain(is_marked);
    found
}

/// The marked frames of a pcapng file.
pub(crate) fn of_pcapng(path: &Path) -> Vec<FileFrame> {
    let bytes = std::fs::read(path).unwrap();
    let (mut found, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let length = u32_at(rest, 4) as usize;
        if u32_at(rest, 0) == 6 {
            let [high, low, caplen, len] = [12, 16, 20, 24].map(|at| u32_at(rest, at));
            found.push((u64::from(high) << 32 | u64::from(low), len, rest[28..28 + caplen as usize].to_vec()));
        }
        rest = &rest[length..];
    }
    found.retain(is_marked);
    found
}

/// netwren writes the same frames and lengths as a tcpdump that runs at the same time, with nearly the same timestamps
/// (each socket has its own timestamp if the kernel has not set one). The traffic contains small frames, TCP
/// super-packets and VLAN tags. The test covers both ways of writing: from rows, and directly from the ring, where
/// similar packets are written together.
#[test]
fn root_capture_files_are_those_of_tcpdump() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let hosts = Routed::new("capfile");
    let dir = tempfile::tempdir().unwrap();
    let theirs = dir.path().join("theirs.pcap");
    let ours = ["rows.pcapng", "frames.pcapng", "frames.pcap"].map(|name| dir.path().join(name));
    let to = format!("pcapng:{}", ours[0].display());
    let words = [["--to", &to], ["-w", ours[1].to_str().unwrap()], ["-w", ours[2].to_str().unwrap()]];
    let going = words.map(|words| -> Going<String> {
        Going::spawn(command(&hosts.router, &[&["-i", "c1"], &words[..]].concat()), |line| line)
    });
    testkit::wait_until("the rings are there", || rings(&hosts.router) == 3);
    let mut tcpdump = hosts.router.command("tcpdump");
    tcpdump.args([
        "-i",
        "c1",
        "-B",
        "65536",
        "-U",
        "--immediate-mode",
        "--time-stamp-precision=nano",
        "-Z",
        "root",
        "-w",
    ]);
    let mut tcpdump = tcpdump.arg(&theirs).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(tcpdump.stderr.take().unwrap());
    let listens = said.by_ref().lines().map_while(Result::ok).any(|line| line.contains("listening on"));
    assert!(listens, "tcpdump captures");
    marked_traffic(&hosts);
    testkit::wait_until("tcpdump has it all", || {
        of_pcap(&theirs).iter().any(|frame| frame.2.ends_with(b"the end netwren-mark"))
    });
    for going in going {
        going.end().1.ok();
    }
    assert!(Command::new("kill").args(["-INT", &tcpdump.id().to_string()]).status().unwrap().success());
    tcpdump.wait().unwrap();
    let mut theirs = of_pcap(&theirs);
    // Two sockets may receive packets that two processors deliver at the same time in different orders.
    theirs.sort_by(|one, other| one.2.cmp(&other.2));
    assert!(theirs.iter().any(|frame| frame.1 > 1514), "super-packets");
    assert!(theirs.iter().any(|frame| frame.2[12..16] == [0x81, 0, 0, 77]), "tags");
    assert!(theirs.len() > 40);
    for ours in &ours {
        let name = ours.display();
        let mut own = if ours.extension().unwrap() == "pcap" { of_pcap(ours) } else { of_pcapng(ours) };
        own.sort_by(|one, other| one.2.cmp(&other.2));
        assert_eq!(own.len(), theirs.len(), "{name}");
        for (nth, (own, theirs)) in own.iter().zip(&theirs).enumerate() {
            assert_eq!((own.1, own.2.len()), (theirs.1, theirs.2.len()), "lengths of frame {nth} of {name}");
            assert!(own.0.abs_diff(theirs.0) < 10_000_000, "stamp of frame {nth} of {name}");
            assert!(own.2 == theirs.2, "bytes of frame {nth} of {name}");
        }
        let read = Command::new("tcpdump").args(["-n", "-r"]).arg(ours).output().unwrap();
        let stderr = String::from_utf8(read.stderr).unwrap();
        assert!(read.status.success() && !stderr.contains("truncated"), "{stderr}");
    }
}

/// Sends packets from the client that all end with the mark; the last one contains "the end".
pub(crate) fn marked_traffic(hosts: &Routed) {
    let listener = hosts.server.run_inside(|| TcpListener::bind("172.17.0.2:7125").unwrap());
    let reader = std::thread::spawn(move || listener.accept().unwrap().0.read_to_end(&mut Vec::new()).unwrap());
    hosts.client.run_inside(|| {
        let mut stream = TcpStream::connect("172.17.0.2:7125").unwrap();
        stream.write_all(&MARK.repeat(40_000)).unwrap();
        drop(stream);
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let mut tagged = frames_to("c0");
        let send = |bytes: &[u8], to: &str| socket.send_to(bytes, to.parse::<SocketAddr>().unwrap()).unwrap();
        for size in 0..20 {
            let payload = [&vec![b'x'; size * 70][..], MARK].concat();
            send(&payload, "192.0.2.1:7126");
            tagged.write_all(&[&[2; 12], &[0x81, 0, 0, 77, 0x12, 0x34][..], &payload].concat()).unwrap();
        }
        send(b"the end netwren-mark", "192.0.2.1:7126");
    });
    reader.join().unwrap();
}

/// A socket that sends every written frame through this interface of the calling thread's namespace.
pub(crate) fn frames_to(iface: &str) -> std::fs::File {
    let listed = Command::new("ip").args(["-o", "link", "show", iface]).output().unwrap();
    let index: u32 = String::from_utf8(listed.stdout).unwrap().split(':').next().unwrap().parse().unwrap();
    let socket = sys::socket::open(sys::socket::AF_PACKET, sys::socket::SOCK_RAW, 0).unwrap();
    let family = (sys::socket::AF_PACKET as u16).to_ne_bytes();
    let address = [&family[..], &[0, 3], &index.to_ne_bytes(), &[0; 12]].concat();
    sys::socket::bind_bytes(&socket, &address).unwrap();
    std::os::fd::OwnedFd::from(socket).into()
}
