//! `capture` drops its privileges before it reads a packet, and continues with the tasks that need none.

use crate::capture::{command, rings};
use crate::capture_read::{pcap_of, udp};
use crate::going::Going;
use crate::run::{Ran, clean, command_for_anyone, netwren};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use sys::caps::Cap;
use testkit::authority::Authority;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

const COLUMNS: &str = "iface,dst,dport,len";
/// Destination port of [`capture`], which no other test uses: one capture sees the packets of every namespace.
const PORT: u16 = 7181;
pub(crate) const NOBODY: u32 = 65_534;

fn send(lab: &Lab, port: u16) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let _ = socket.send_to(b"0123456789", (Ipv4Addr::new(127, 0, 0, 9), port));
    });
}

/// The lines `NAME:` of each thread's status in /proc, in the order of `names`.
pub(crate) fn of_threads(pid: u32, names: &[&str]) -> Vec<Vec<String>> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |path: &Path| {
        let status = std::fs::read_to_string(path.join("status")).unwrap();
        let of_name = |name: &&str| status.lines().find_map(|line| line.strip_prefix(*name)?.strip_prefix(':'));
        let words = names.iter().map(|name| of_name(name).unwrap().split_whitespace().collect::<Vec<_>>().join(" "));
        words.collect()
    };
    tasks.map(|task| of_thread(&task.unwrap().path())).collect()
}

const SETS: [&str; 7] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];

fn nothing(bound: &str) -> Vec<String> {
    let none = "0".repeat(16);
    [&none, &none, &none, bound, &none, "1", "2"].map(str::to_owned).to_vec()
}

fn capture(lab: &Lab, args: &[&str]) -> Going<String> {
    let filter = format!("proto = udp and dport = {PORT}");
    let args = [&["-v", "--columns", COLUMNS, &filter], args].concat();
    Going::past_header(command(lab, &args), COLUMNS, |line| line)
}

#[test]
fn root_capture_has_no_rights_when_it_looks_at_packets() {
    testkit::require_root!();
    let lab = Lab::new("caprights");
    let inside = ["-N", lab.name()];
    let all = ["--all-netns", "--resolve"];
    for (args, user) in [(&[][..], 0), (&["-i", "lo", "-Z", "nobody"], NOBODY), (&all, 0), (&inside, 0)] {
        let mut going = capture(&lab, args);
        send(&lab, PORT);
        going.read_until("a packet", |lines| !lines.is_empty());
        let pid = going.child.id();
        // A separate thread looks up names for `--resolve`.
        testkit::wait_until("no thread has rights", || {
            of_threads(pid, &SETS).iter().all(|thread| *thread == nothing(&"0".repeat(16)))
        });
        for ids in of_threads(pid, &["Uid", "Gid", "Groups"]) {
            assert_eq!(ids[0], [user.to_string().as_str(); 4].join(" "), "{args:?}");
            assert!(user == 0 || ids[1..] == [[ids[1].split(' ').next().unwrap(); 4].join(" "), ids[2].clone()]);
            assert!(user == 0 || !ids[2].split(' ').any(|group| group == "0"), "{ids:?}");
        }
        let (lines, ran) = going.end();
        let end = format!("\t{PORT}\t52");
        assert!(lines.iter().all(|line| line.starts_with("lo\t") && line.ends_with(&end)), "{lines:?}");
        for words in ["rights: all capabilities were dropped", "rights: unneeded system calls are blocked"] {
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
        assert_eq!(ran.stderr.contains("rights: now running as user nobody"), user == NOBODY);
        // With every namespace, other tests' packets arrive as well, perhaps more than the ring holds.
        let is_full = args.contains(&"--all-netns") && ran.stderr.contains("packets lost: the ring");
        assert_eq!(ran.code, if is_full { 3 } else { 0 }, "{}", ran.stderr);
    }
    Ran::of(command(&lab, &["-Z", "nobody-there", "--for", "1"]).output().unwrap())
        .says(4, &["there is no user nobody-there in /etc/passwd"]);
}

/// With `--resolve`, no thread has privileges before the first packet and lookup, including the resolver thread.
#[test]
fn root_threads_that_wait_have_no_rights_either() {
    testkit::require_root!();
    let lab = Lab::new("caprwait");
    let nothing_left = |pid| of_threads(pid, &SETS).iter().all(|thread| *thread == nothing(&"0".repeat(16)));
    for args in [&["--resolve"][..], &["--resolve", "-i", "lo", "-Z", "nobody"]] {
        let going = capture(&lab, args);
        let pid = going.child.id();
        testkit::wait_until("no thread has rights", || {
            let threads = of_threads(pid, &["Name"]);
            threads.iter().any(|thread| thread[0] == "names") && nothing_left(pid)
        });
        let (_, ran) = going.end();
        assert!(ran.stderr.contains("rights: all capabilities were dropped"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("keep their capabilities"), "{}", ran.stderr);
    }
    let mut face = lab.command(testkit::program::netwren().to_str().unwrap());
    clean(&mut face).args(["tcpdump", "-l", "-i", "lo", "udp port 7123"]);
    let going: Going<String> = Going::spawn(face, |line| line);
    testkit::wait_until("no thread has rights", || {
        let threads = of_threads(going.child.id(), &["Name"]);
        threads.iter().any(|thread| thread[0] == "names") && nothing_left(going.child.id())
    });
    going.end();
}

/// The file is opened before privileges are dropped, so a folder that only root can access works for any user.
#[test]
fn root_a_file_is_written_as_another_user() {
    testkit::require_root!();
    let lab = Lab::new("capuser");
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = dir.path().join("all.pcapng");
    let words = ["-Z", "nobody", "-i", "lo", "-w", path.to_str().unwrap(), "udp port 7123"];
    let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    let pid = going.child.id();
    testkit::wait_until("it has no rights", || {
        of_threads(pid, &["Uid", "Seccomp"]).concat() == [[NOBODY.to_string().as_str(); 4].join(" "), "2".to_owned()]
    });
    send(&lab, 7123);
    let (_, ran) = going.end();
    assert!(ran.stderr.contains("1 written to "), "{}", ran.stderr);
    ran.ok();
    assert_eq!(netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", "dport"]).ok(), "7123\n");
}

/// In another user's folder only CAP_DAC_OVERRIDE is kept; renamed files are still reopened.
#[test]
fn root_files_of_outputs_are_reopened_without_rights() {
    testkit::require_root!();
    let lab = Lab::new("capto");
    for (owner, left) in [(0, 0), (NOBODY, 1 << Cap::DacOverride as u8)] {
        let dir = tempfile::tempdir().unwrap();
        chown(dir.path(), Some(owner), Some(owner)).unwrap();
        let path = dir.path().join("rows.json");
        let spool = tempfile::tempdir().unwrap();
        let to = format!("json:{}", path.display());
        let words = ["-v", "--to", &to, "--spool", spool.path().to_str().unwrap(), "dport = 7123"];
        let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
        testkit::wait_until("the ring is there", || rings(&lab) == 1);
        let written = || std::fs::read_to_string(&path).unwrap_or_default().lines().count();
        let shown = |set: u64| format!("{set:016x}");
        testkit::wait_until("no thread has more rights", || {
            let threads = of_threads(going.child.id(), &["CapEff", "CapBnd", "NoNewPrivs", "Seccomp"]);
            threads.len() > 1 && threads.iter().all(|thread| *thread == [&shown(left), &shown(left), "1", "2"])
        });
        send(&lab, 7123);
        testkit::wait_until("a row", || written() > 0);
        std::fs::rename(&path, dir.path().join("rows.1")).unwrap();
        going.signal("-HUP");
        testkit::wait_until("a row in a new file", || {
            send(&lab, 7123);
            written() > 0
        });
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), 0);
        let (_, ran) = going.end();
        let says = if left == 0 { "all capabilities were dropped" } else { "were dropped except CAP_DAC_OVERRIDE" };
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
        ran.ok();
    }
}

/// The program that compresses files is also started without privileges.
#[test]
fn root_files_of_a_capture_are_packed() {
    testkit::require_root!();
    let lab = Lab::new("capzstd");
    let path = lab.dir().join("all.pcapng");
    let to = format!("pcapng:{}", path.display());
    let words = ["--to", &to, "--rotate-size", "1MiB", "--rotate-zstd", "dport = 7123"];
    let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..1500).for_each(|_| _ = socket.send_to(&[7; 1000], (Ipv4Addr::LOCALHOST, 7123)));
    });
    let packed = lab.dir().join("all.pcapng.1.zst");
    testkit::wait_until("a file is packed", || packed.exists());
    going.end().1.ok();
    let shown = netwren(&["capture", "-r", packed.to_str().unwrap(), "-H", "--by", "dport"]).ok();
    assert!(shown.starts_with("7123\t"), "{shown}");
}

/// A receiver of each transport receives every row once. The system calls that deliver it, and that confirm the
/// delivery, are among those that are left.
#[test]
fn root_a_capture_without_rights_delivers_by_every_transport() {
    testkit::require_root!();
    const ROWS: u16 = 20;
    let lab = Lab::new("capall");
    let path = |name: &str| lab.dir().join(name).display().to_string();
    let tcp = lab.run_inside(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let udp = lab.run_inside(|| UdpSocket::bind("127.0.0.1:0")).unwrap();
    let unix = UnixListener::bind(path("stream")).unwrap();
    let datagrams = UnixDatagram::bind(path("datagrams")).unwrap();
    let mut targets = vec![
        format!("json+tcp://{}", tcp.local_addr().unwrap()),
        format!("syslog+udp://{}", udp.local_addr().unwrap()),
        format!("json+unix:{}", path("stream")),
        format!("syslog+unix:{}", path("datagrams")),
        format!("json:{}", path("lines")),
    ];
    if crate::sqlite::have_sqlite() {
        targets.push(format!("sqlite:{}", path("rows.db")));
    }
    let server = tls_server(&lab, &mut targets);
    let mut words =
        vec!["-i", "lo", "--latency", "10ms", "--stats", "-c", "dport", "udp and dport >= 7200 and dport < 7220"];
    words.extend(targets.iter().flat_map(|target| ["--to", target]));
    let ca = server.as_ref().map(|(_, ca)| ca.clone()).unwrap_or_default();
    words.extend(["--tls-ca", &ca].into_iter().filter(|_| server.is_some()));
    let going: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("no thread has rights", || {
        rings(&lab) == 1 && of_threads(going.child.id(), &["Seccomp"]).iter().all(|thread| thread[0] == "2")
    });
    let (streams, mut got) = ([OwnedFd::from(tcp.accept().unwrap().0), unix.accept().unwrap().0.into()], 0);
    let received = std::thread::scope(|scope| {
        let streams = streams.map(|stream| scope.spawn(|| lines_of(stream)));
        for port in 7200..7200 + ROWS {
            send(&lab, port);
            // The next row waits until this one is there: it finds nothing in the queue of its output.
            datagrams.recv(&mut [0; 2048]).unwrap();
            udp.recv(&mut [0; 2048]).unwrap();
            got += 1;
        }
        let (lines, ran) = going.end();
        let stats: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        let outputs = stats["outputs"].as_array().unwrap();
        assert_eq!(outputs.len(), targets.len(), "{stats}");
        for output in outputs {
            let numbers = ["seen", "delivered", "resent", "failures"].map(|name| output[name].as_u64().unwrap());
            assert_eq!(numbers, [u64::from(ROWS), u64::from(ROWS), 0, 0], "{output} {}", ran.stderr);
        }
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        streams.map(|stream| stream.join().unwrap())
    });
    let wanted: Vec<String> = (7200..7200 + ROWS).map(|port| format!("{{\"dport\":{port}}}")).collect();
    assert_eq!((got, received), (ROWS, [wanted.clone(), wanted]));
}

fn lines_of(stream: OwnedFd) -> Vec<String> {
    BufReader::new(std::fs::File::from(stream)).lines().map(Result::unwrap).collect()
}

/// Starts a TLS receiver and adds it to the targets; returns it and the file of its authority.
fn tls_server(lab: &Lab, targets: &mut Vec<String>) -> Option<(KilledChild, String)> {
    if !crate::receivers::has_tls() || !testkit::tool::require("openssl") {
        return None;
    }
    let authority = Authority::new();
    authority.sign("receiver", "IP:127.0.0.1", (-3600, 3600));
    let file = |name: &str| authority.file(name).display().to_string();
    let mut server = lab.command("openssl");
    server.args([
        "s_server",
        "-quiet",
        "-naccept",
        "1",
        "-accept",
        "6514",
        "-cert",
        &file("receiver.pem"),
        "-key",
        &file("receiver.key"),
    ]);
    let server = server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    lab.wait_until("it listens", || lab.output("ss", &["-Hltn"]).contains(":6514"));
    let ca = lab.dir().join("ca.pem");
    std::fs::copy(authority.file("ca.pem"), &ca).unwrap();
    targets.push("json+tls://127.0.0.1:6514".to_owned());
    Some((KilledChild(server), ca.display().to_string()))
}

struct KilledChild(Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file is parsed with access only to the files that are already open.
#[test]
fn root_a_file_is_parsed_without_rights() {
    testkit::require_root!();
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["capture", "-r", "-", "-v", "-H", "-c", "dport"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // netwren waits for the rest of the header.
    pipe.write_all(&pcap_of(&[])[..2]).unwrap();
    let pid = child.id();
    testkit::wait_until("it has no rights", || of_threads(pid, &SETS) == [nothing(&"0".repeat(16))]);
    pipe.write_all(&pcap_of(&[&udp(1000, b"ab")])[2..]).unwrap();
    drop(pipe);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert!(ran.stderr.contains("rights: no file can be opened") || ran.stderr.contains("has no Landlock"));
    assert_eq!(ran.ok(), "1000\n");
}

/// The same holds for packets in files that `netwren tcpdump` reads, after their header has been read.
#[test]
fn root_tcpdumps_packets_of_a_file_are_parsed_without_rights() {
    testkit::require_root!();
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["tcpdump", "-n", "-t", "-r", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let (head, packets) = (24, pcap_of(&[&udp(1000, b"ab")]));
    pipe.write_all(&packets[..head]).unwrap();
    let pid = child.id();
    testkit::wait_until("it has no rights", || of_threads(pid, &SETS) == [nothing(&"0".repeat(16))]);
    pipe.write_all(&packets[head..]).unwrap();
    drop(pipe);
    let out = Ran::of(child.wait_with_output().unwrap()).ok();
    assert!(out.contains("10.0.0.1.53 > 10.0.0.2.1000: "), "{out}");
}

/// After the first packet may have arrived, netwren opens no file.
#[test]
fn root_no_file_is_opened_while_packets_are_parsed() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = Lab::new("capstrace");
    let log = lab.dir().join("calls");
    let (log_name, program) = (log.display().to_string(), testkit::program::netwren().display().to_string());
    lab.output("strace", &["-f", "-o", &log_name, &program, "capture", "--for", "0.3", "-H"]);
    let calls = std::fs::read_to_string(&log).unwrap();
    let (before, after) = calls.split_once("SECCOMP_SET_MODE_FILTER").unwrap();
    assert!(before.contains("AF_PACKET") && before.contains("PR_SET_NO_NEW_PRIVS"));
    assert!(after.contains("PACKET_STATISTICS"));
    for call in ["open(", "openat(", "execve(", "setns(", "EPERM", "EACCES"] {
        assert!(!after.contains(call), "{call}: {after}");
    }
}

/// A process without privileges to drop continues.
#[test]
fn root_without_rights_there_is_nothing_to_give_up() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().join("a.pcap");
    std::fs::write(&path, pcap_of(&[&udp(1000, b"ab")])).unwrap();
    let mut command = command_for_anyone(&["capture", "-r", path.to_str().unwrap(), "-v", "-H", "-c", "dport"]);
    confine(&mut command, &[Limit::User { uid: NOBODY, gid: NOBODY }]).unwrap();
    let ran = Ran::of(command.output().unwrap());
    assert!(ran.stderr.contains("rights: there were no capabilities to drop"), "{}", ran.stderr);
    assert_eq!(ran.ok(), "1000\n");
    let mut command = command_for_anyone(&["capture", "-r", path.to_str().unwrap(), "-Z", "root"]);
    confine(&mut command, &[Limit::User { uid: NOBODY, gid: NOBODY }]).unwrap();
    Ran::of(command.output().unwrap()).says(4, &["cannot become root: operation not permitted"]);
}
