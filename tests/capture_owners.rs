//! `capture` shows the processes that send and receive packets.

use crate::capture::{command, rings};
use crate::capture_read::{pcap_of, udp};
use crate::capture_rights::{NOBODY, of_threads};
use crate::going::Going;
use crate::namespaces::ContainerGroup;
use crate::packet_tools::peer;
use crate::run::{Ran, clean};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdin, Command, Stdio};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Starts a capture in the lab; packets sent after this returns are captured.
fn capture(lab: &Lab, columns: &str, args: &[&str]) -> Going<String> {
    Going::past_header(command(lab, &[&["--columns", columns], args].concat()), columns, |line| line)
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A shell in the lab that sends a datagram from one socket to a port for each line of its input.
struct Sender {
    child: Child,
    lines: Option<ChildStdin>,
}

impl Sender {
    fn start(lab: &Lab, port: u16, limits: &[Limit]) -> Sender {
        let mut command = Command::new("bash");
        let script = format!("exec 3<>/dev/udp/127.0.0.1/{port}; while read line; do echo $line >&3; done");
        clean(&mut command).args(["-c", &script]).stdin(Stdio::piped());
        confine(&mut command, &[&[Limit::Network(lab.path())], limits].concat()).unwrap();
        let mut child = command.spawn().unwrap();
        let lines = child.stdin.take();
        Sender { child, lines }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self) {
        self.lines.as_mut().unwrap().write_all(b"0123456\n").unwrap();
    }

    /// Ends the shell, which closes its socket.
    fn end(mut self) {
        self.lines.take();
        self.child.wait().unwrap();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Over loopback both ends are local. A port without a listener has no owner; a sender's port may be reused by the
/// next sender.
#[test]
fn root_both_ends_of_a_packet_have_their_process() {
    testkit::require_root!();
    let lab = Lab::new("capown");
    let columns = "dport,src_process,src_pid,dst_process,dst_pid,process,uid,user,state";
    let receiver = lab.run_inside(|| UdpSocket::bind(at(7109)).unwrap());
    let mut going = capture(&lab, columns, &["udp and dport in (7109, 7110)"]);
    let (mut to_us, mut to_nobody) = (Sender::start(&lab, 7109, &[]), Sender::start(&lab, 7110, &[]));
    to_us.send();
    going.read_until("a packet", |lines| lines.len() == 1);
    to_nobody.send();
    going.read_until("another one", |lines| lines.len() == 2);
    let pids = [to_us.pid(), to_nobody.pid()];
    to_us.end();
    to_nobody.end();
    let (lines, ran) = going.end();
    drop(receiver);
    let (own, comm) = (std::process::id(), std::fs::read_to_string("/proc/self/comm").unwrap());
    let comm = comm.trim_end();
    let expected = [
        format!("7109\tbash\t{}\t{comm}\t{own}\tbash\t0\troot\testablished", pids[0]),
        format!("7110\tbash\t{}\t-\t-\tbash\t0\troot\testablished", pids[1]),
    ];
    assert_eq!(lines, expected);
    let says = "1 of 2 packets to or from this host have no owner at a local endpoint";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    right(&ran);
}

/// Cells with this process at both ends, named after its first thread: each test's thread has a different name.
fn own_ends() -> String {
    let (own, comm) = (std::process::id(), std::fs::read_to_string("/proc/self/comm").unwrap());
    let comm = comm.trim_end();
    format!("{own}\t{own}\t{comm}\t{comm}")
}

/// The connection has ended before its sockets could be looked up.
#[test]
fn root_a_short_connection_has_its_process() {
    testkit::require_root!();
    let lab = Lab::new("capshort");
    let columns = "src_pid,dst_pid,src_process,dst_process";
    let args = ["tcp port 7111"];
    let mut going = capture(&lab, columns, &args);
    for round in 1..=3 {
        lab.run_inside(|| {
            let listener = TcpListener::bind(at(7111)).unwrap();
            let client = TcpStream::connect(at(7111)).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            server.write_all(b"0123456").unwrap();
            drop((client, server));
        });
        // SYN, SYN-ACK, ACK, data, ACK, and the end.
        going.read_until("its packets", |lines| lines.len() >= 6 * round);
    }
    let (lines, ran) = going.end();
    if !ran_by_bpf(&lab) {
        return testkit::print_loud("skipped: without BPF short connections have no owners");
    }
    let own = own_ends();
    // The process that connected is known for each packet; after the listener is closed, the kernel alone may answer
    // the FIN.
    assert!(lines.iter().all(|line| *line == own), "{lines:?} {}", ran.stderr);
    right(&ran);
}

/// A question to a name server comes from a socket that lives for a moment: BPF reports its sender.
#[test]
fn root_a_short_socket_of_udp_has_its_process() {
    testkit::require_root!();
    let lab = Lab::new("capdns");
    let mut going = capture(&lab, "src_pid,dst_pid,src_process,dst_process", &["udp port 7118"]);
    let ends: [SocketAddr; 2] = [at(7118), (std::net::Ipv6Addr::LOCALHOST, 7118).into()];
    for (round, server) in ends.into_iter().enumerate() {
        lab.run_inside(|| {
            let receiver = UdpSocket::bind(server).unwrap();
            let sender = UdpSocket::bind((if server.is_ipv4() { "0.0.0.0" } else { "::" }, 0)).unwrap();
            sender.send_to(b"?", server).unwrap();
            let (_, peer) = receiver.recv_from(&mut [0; 9]).unwrap();
            receiver.send_to(b"!", peer).unwrap();
            sender.recv_from(&mut [0; 9]).unwrap();
        });
        going.read_until("question and answer", |lines| lines.len() == 2 * (round + 1));
    }
    let (lines, ran) = going.end();
    if !sees_senders() {
        return testkit::print_loud("skipped: before Linux 6.3, or without BPF, short sockets of UDP have no owners");
    }
    assert_eq!(lines, vec![own_ends(); 4], "{}", ran.stderr);
    right(&ran);
}

/// Another process sends over IPv4 from the port of our IPv6-only socket, and closes its socket at once.
#[test]
fn root_a_port_of_ipv6_only_lends_no_name_to_ipv4() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("capv6only");
    let script = "
import socket
for v6only in (1, 0):
    ours = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    ours.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
    ours.bind(('::', 7119 if v6only else 7120))
    globals()['kept%d' % v6only] = ours
kept0.recv(1)
";
    lab.spawn("python3", &["-c", script]);
    testkit::wait_until("both are bound", || bound(&lab) >= 2);
    let columns = "sport,src_pid,dst_process";
    let mut going = capture(&lab, columns, &["udp port 7119"]);
    let short = "
import socket, sys
short = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
short.bind(('', 7119))
short.sendto(b'x', ('127.0.0.1', 7120))
";
    let mut command = Command::new("python3");
    clean(&mut command).args(["-c", short]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut sender = command.spawn().unwrap();
    let pid = sender.id();
    assert!(sender.wait().unwrap().success());
    going.read_until("its packet", |lines| !lines.is_empty());
    let (lines, ran) = going.end();
    // The receiver accepts both families.
    let named = if sees_senders() { pid.to_string() } else { "-".to_owned() };
    assert_eq!(lines, [format!("7119\t{named}\tpython3")], "{}", ran.stderr);
}

/// Counts the UDP sockets of IPv6 in the lab.
fn bound(lab: &Lab) -> usize {
    let table = lab.output("cat", &["/proc/net/udp6"]);
    table.lines().count().saturating_sub(1)
}

/// True if the kernel has the tracepoint that reports senders, and BPF may use it.
fn sees_senders() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 3) && ran_by_bpf(&Lab::new("capbpf"))
}

/// True if BPF can follow connections here.
fn ran_by_bpf(lab: &Lab) -> bool {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["sockets", "--follow", "--via", "bpf", "--no-hooks", "--limit", "0"]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command.output().unwrap().status.success()
}

/// The process that parses packets has no privileges to look up owners; the process that looks them up never sees
/// packets, and ends with the first one.
#[test]
fn root_another_users_process_is_named_after_rights_were_given_up() {
    testkit::require_root!();
    for args in [&["udp port 7112"][..], &["-Z", "nobody", "udp port 7112"]] {
        let lab = Lab::new("capother");
        let mut going = capture(&lab, "src_process,src_pid,src_uid,src_user", args);
        let pid = going.child.id();
        testkit::wait_until("no thread has rights", || {
            let none = "0".repeat(16);
            of_threads(pid, &["CapPrm", "CapEff", "CapBnd", "Seccomp"])
                .iter()
                .all(|thread| *thread == [&none, &none, &none, "2"])
        });
        let helpers = children(pid);
        assert_eq!(helpers.len(), 1);
        let name = std::fs::read_to_string(format!("/proc/{}/comm", helpers[0])).unwrap();
        assert_eq!(name, "netwren-owners\n");
        let mut sender = Sender::start(&lab, 7112, &[Limit::User { uid: NOBODY, gid: NOBODY }]);
        sender.send();
        going.read_until("a packet", |lines| !lines.is_empty());
        let expected = format!("bash\t{}\t{NOBODY}\tnobody", sender.pid());
        going.signal("-KILL");
        assert_eq!(going.end().0[0], expected);
        testkit::wait_until("the helper has ended", || {
            !std::path::Path::new(&format!("/proc/{}", helpers[0])).exists()
        });
    }
}

/// The child processes of this process.
fn children(pid: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |child: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{pid}"))
    };
    all.filter(is_child).collect()
}

#[test]
fn root_packets_are_chosen_and_counted_by_their_process() {
    testkit::require_root!();
    let lab = Lab::new("capby");
    let receiver = lab.run_inside(|| UdpSocket::bind(at(7113)).unwrap());
    let (mut one, mut other) = (Sender::start(&lab, 7113, &[]), Sender::start(&lab, 7113, &[]));
    let filter = format!("udp and process = bash and pid = {} and uid = 0 and state = established", one.pid());
    let mut chosen = capture(&lab, "pid,dst_pid", &[&filter]);
    // The receiver matches as well: one local end is sufficient.
    let by_receiver = format!("dst_pid = {} or src_process = no-such", std::process::id());
    let mut all = capture(&lab, "pid", &[&by_receiver]);
    let words = ["--by", "pid", "--sum", "len", "-H", "dport = 7113"];
    let groups: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the rings are there", || rings(&lab) == 3);
    for _ in 0..3 {
        one.send();
        other.send();
    }
    one.send();
    chosen.read_until("four of one", |lines| lines.len() == 4);
    all.read_until("all", |lines| lines.len() == 7);
    let own = std::process::id();
    assert_eq!(chosen.end().0, vec![format!("{}\t{own}", one.pid()); 4]);
    right(&all.end().1);
    let (mut lines, ran) = groups.end();
    lines.sort_unstable();
    // A frame on loopback: 14 bytes of Ethernet header, 28 bytes of IP and UDP headers, then the payload.
    let mut expected = [format!("{}\t4\t{}", one.pid(), 4 * 50), format!("{}\t3\t{}", other.pid(), 3 * 50)];
    expected.sort_unstable();
    assert_eq!(lines, expected, "{}", ran.stderr);
    drop(receiver);
    right(&ran);
}

/// Each round shows the packets and bytes of each process, and the rate per second.
#[test]
fn root_rounds_tell_who_sends_how_much() {
    testkit::require_root!();
    let lab = Lab::new("capwatch");
    let receiver = lab.run_inside(|| UdpSocket::bind(at(7116)).unwrap());
    let mut sender = Sender::start(&lab, 7116, &[]);
    let columns = "pid\tcount\tsum_len\tpackets_per_s\tbytes_per_s";
    let words = ["--by", "pid", "--watch=0.2", "udp port 7116"];
    let mut going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    let rows = |lines: &[String]| -> Vec<Vec<u64>> {
        let is_row = |line: &&String| line.starts_with(|c: char| c.is_ascii_digit()) && !line.ends_with('Z');
        lines.iter().filter(is_row).map(|line| line.split('\t').map(|cell| cell.parse().unwrap()).collect()).collect()
    };
    for rounds in 1..=3 {
        sender.send();
        sender.send();
        // A round may end between the two.
        going.read_until("them", |lines| rows(lines).iter().map(|row| row[1]).sum::<u64>() == 2 * rounds);
    }
    let pid = u64::from(sender.pid());
    sender.end();
    let (lines, ran) = going.end();
    drop(receiver);
    let found = rows(&lines);
    assert!(lines.iter().filter(|line| *line == columns).count() >= 3, "{lines:?}");
    assert!(found.iter().all(|row| row[0] == pid && row[2] == 50 * row[1]), "{lines:?}");
    // The last round may be shorter and a late one longer, but no rate may be as low as with a round of five seconds.
    assert!(found.iter().all(|row| row[3] > 0 && row[4] > row[2] / 5), "{lines:?}");
    assert!(ran.stderr.contains("6 packets received"), "{}", ran.stderr);
    right(&ran);
}

/// A comment in the file names the process: at the first packet of a connection, and when it changes.
#[test]
fn root_a_file_says_whose_packets_they_are() {
    testkit::require_root!();
    let lab = Lab::new("capnote");
    let path = lab.dir().join("all.pcapng");
    let receiver = lab.run_inside(|| UdpSocket::bind(at(7117)).unwrap());
    let (mut one, mut other) = (Sender::start(&lab, 7117, &[]), Sender::start(&lab, 7117, &[]));
    let words =
        ["-w", path.to_str().unwrap(), "--comment", "src_process,src_pid,netns", "dport = 7117 and process = bash"];
    let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    for _ in 0..3 {
        one.send();
        other.send();
    }
    let received = |receiver: &UdpSocket| receiver.recv(&mut [0; 99]).unwrap();
    assert!((0..6).all(|_| received(&receiver) == 8));
    let (_, ran) = going.end();
    assert!(ran.stderr.contains("6 written to "), "{}", ran.stderr);
    right(&ran);
    let comments: Vec<String> =
        [&one, &other].map(|sender| format!("src_process=bash src_pid={} netns={}", sender.pid(), lab.name())).to_vec();
    let bytes = std::fs::read(&path).unwrap();
    for comment in &comments {
        assert_eq!(bytes.windows(comment.len()).filter(|part| *part == comment.as_bytes()).count(), 1, "{comment}");
    }
    if let Some(mut tshark) = peer("tshark") {
        let args = ["-r", path.to_str().unwrap(), "-T", "fields", "-e", "frame.comment"];
        let said = tshark.args(args).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_unstable();
        let mut expected = comments;
        expected.sort_unstable();
        assert_eq!((lines, said.lines().count()), (expected.iter().map(String::as_str).collect(), 6));
    }
}

/// Two namespaces use the same addresses and ports.
#[test]
fn root_each_namespace_has_its_own_processes() {
    testkit::require_root!();
    let labs = [Lab::new("capns1"), Lab::new("capns2")];
    let columns = "netns_id,src_pid";
    let mut going = capture(&labs[0], columns, &["--all-netns", "udp port 7114 and src_process = bash"]);
    let mut senders = labs.each_ref().map(|lab| Sender::start(lab, 7114, &[]));
    senders.iter_mut().for_each(Sender::send);
    going.read_until("two packets", |lines| lines.len() == 2);
    let (mut lines, _) = going.end();
    lines.sort_unstable();
    let line = |(lab, sender): (&Lab, &Sender)| {
        format!("{}\t{}", sys::NetNs::open(lab.path().to_str().unwrap()).unwrap().inode(), sender.pid())
    };
    let mut expected: Vec<String> = labs.iter().zip(&senders).map(line).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn root_the_container_of_a_process_is_shown() {
    testkit::require_root!();
    let lab = Lab::new("capcont");
    let mut sender = Sender::start(&lab, 7115, &[]);
    let Some(_group) = ContainerGroup::of(sender.pid()) else { return };
    let container = format!("{:012}", sender.pid());
    let filter = format!("udp port 7115 and container = {container}");
    let mut going = capture(&lab, "src_container,container,src_cmdline", &[&filter]);
    sender.send();
    going.read_until("a packet", |lines| !lines.is_empty());
    let line = going.end().0.remove(0);
    assert!(line.starts_with(&format!("{container}\t{container}\tbash -c exec 3<>/dev/udp/")), "{line}");
}

#[test]
fn root_processes_are_those_of_live_packets() {
    testkit::require_root!();
    let lab = Lab::new("capnoown");
    let path = lab.dir().join("a.pcap");
    std::fs::write(&path, pcap_of(&[&udp(1000, b"ab")])).unwrap();
    let path = path.to_str().unwrap();
    for args in [&["-r", path, "-c", "+src_process"][..], &["-r", path, "process = bash"]] {
        Ran::of(command(&lab, args).output().unwrap()).says(2, &["they are unknown with --read FILE"]);
    }
    let words = ["--for", "1", "port 53 or process = bash"];
    Ran::of(command(&lab, &words).output().unwrap())
        .says(2, &["`process` can be combined with pcap-filter expressions only by `and`"]);
    // A run in a named namespace ends like any other: it cannot return to its previous namespace, and does not need
    // to.
    let mut named = Command::new(testkit::program::netwren());
    clean(&mut named).args(["capture", "--netns", lab.name(), "--for", "0.1", "-H", "-c", "src_pid"]);
    right(&Ran::of(named.output().unwrap()));
}

/// The run succeeded, except perhaps for owners: without BPF, some sandboxes forbid even root to read process 1.
#[track_caller]
fn right(ran: &Ran) {
    let is_about_owners = ran.stderr.lines().any(|line| line.starts_with("netwren: owners of "));
    assert!(ran.code == 0 || ran.code == 3 && is_about_owners, "exit code {}; stderr: {}", ran.code, ran.stderr);
}
