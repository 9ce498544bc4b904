#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! Tests owners with the real kernel, with recordings, and with processes that hide.
use super::*;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sys::Errno;
use sys::fault::{Fault, arm, disarm_all};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Names the task of a copy of this test program; see [`child`].
const CHILD: &str = "NETWREN_TEST_CHILD";

fn inode(socket: &impl AsRawFd) -> u64 {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
    walk::socket_inode(link.as_os_str().as_encoded_bytes()).unwrap()
}

fn seen(owners: &Owners, inode: u64) -> Vec<(u32, u32)> {
    let mut seen: Vec<_> = owners.of(inode).iter().map(|owner| (owner.pid, owner.fd)).collect();
    // Other tests check which owner is shown first.
    seen.sort_unstable();
    seen
}

/// Only these processes: a process started by a concurrent test holds all our descriptors until its program starts.
fn seen_of(pids: &[u32], owners: &Owners, inode: u64) -> Vec<(u32, u32)> {
    seen(owners, inode).into_iter().filter(|(pid, _)| pids.contains(pid)).collect()
}

fn by_proc(host: &Host) -> Result<Owners, HostError> {
    OwnersReader::new(Some(OwnersBackend::Proc)).read(host)
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A copy of this program in a world-readable place, which runs `task` in [`child`].
///
/// Another process copies it: a file that was open for writing here may survive in the child of a concurrent test until
/// that calls exec, and cannot be run until then ("text file busy").
fn again(dir: &Path, task: &str) -> Command {
    let copy = dir.join("again");
    assert!(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status().unwrap().success());
    std::fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    events_of(copy, task)
}

/// This program, which runs `task` in [`child`].
fn events_of(program: std::path::PathBuf, task: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "owners::tests::child", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, task).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// This is not a test itself: [`again`] runs it in another process.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (task, number) = task.split_once(' ').unwrap();
    let number: u64 = number.parse().unwrap();
    match task {
        "look" => {
            let owners = by_proc(&Host::live()).unwrap();
            let found = owners.of(number).len();
            println!("\nsaw {found} {:?} {}", owners.report, owners.report.lines().join(" | "));
        }
        "hold" => {
            let most = testkit::sandbox::raise_open_files(number + 50).unwrap();
            let count = number.min(most.saturating_sub(50));
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let held: Vec<_> = (1..count).map(|_| socket.try_clone().unwrap()).collect();
            println!("\nholds {} {}", inode(&socket), held.len() + 1);
            // Waits until the parent closes its end.
            let _ = std::io::stdin().read(&mut [0]);
        }
        "reuse" => pid_reuse(),
        "idle" => calls_for_idle(number as u32),
        other => panic!("no task {other}"),
    }
}

/// The backends that can be opened here.
fn backends() -> Vec<OwnersBackend> {
    let may_bpf = Facts::read(&Host::live()).unwrap().may_bpf;
    if !may_bpf {
        let _ = std::io::stderr().write_all(b"skipped in part: no BPF here\n");
    }
    [OwnersBackend::Proc, OwnersBackend::Bpf]
        .into_iter()
        .filter(|backend| *backend == OwnersBackend::Proc || may_bpf)
        .collect()
}

fn read_by(backend: OwnersBackend) -> Owners {
    let owners = OwnersReader::new(Some(backend)).read(&Host::live()).unwrap();
    assert!(owners.report.ended.is_none() && owners.report.backend == backend, "{:?}", owners.report);
    owners
}

/// A Python program that ends with its input; its first line is read as numbers.
fn script(text: &str) -> (Child, Vec<u64>) {
    let mut command = Command::new("python3");
    command.args(["-c", text]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let line = line_of(&mut child, "numbers ");
    (child, line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect())
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

fn line_of(child: &mut Child, word: &str) -> String {
    let stdout = child.stdout.as_mut().unwrap();
    let mut lines = BufReader::new(stdout).lines().map(Result::unwrap);
    lines.find(|line| line.starts_with(word)).unwrap()
}

#[test]
fn one_socket_held_twice_here_and_once_by_a_child() {
    let (socket, other_end) = UnixStream::pair().unwrap();
    let twin = socket.try_clone().unwrap();
    // The name contains everything that could fool a terminal.
    let script = r#"printf 'e\033[31m\n\t\377v' > /proc/$$/comm; echo ready; read x"#;
    let stdin = OwnedFd::from(socket.try_clone().unwrap());
    let mut command = Command::new("sh");
    let mut child = command.args(["-c", script]).stdin(stdin).stdout(Stdio::piped()).spawn().unwrap();
    // Otherwise the command would hold the child's stdin, and with it the socket, a third time.
    drop(command);
    assert_eq!(line_of(&mut child, "ready"), "ready");
    let owners = by_proc(&Host::live()).unwrap();
    let mine = std::process::id();
    let (a, b) = (socket.as_raw_fd() as u32, twin.as_raw_fd() as u32);
    let mut expected = vec![(mine, a.min(b)), (mine, a.max(b)), (child.id(), 0)];
    expected.sort_unstable();
    assert_eq!(seen_of(&[mine, child.id()], &owners, inode(&socket)), expected);
    let found = owners.owners(Key::Id(inode(&socket)));
    let theirs = found.iter().find(|owner| owner.pid == child.id()).unwrap();
    assert_eq!(theirs.process.as_bytes(), b"e\x1b[31m\n\t\xffv");
    assert_eq!(owners.value(Key::Id(inode(&socket))), Value::Owners(found));
    assert_eq!(owners.value(Key::Id(u64::MAX)), Value::Null);
    let report = owners.report();
    assert!(report.processes > 1 && report.fds >= report.sockets && report.sockets >= 3, "{report:?}");
    drop((socket, twin, other_end));
    child.wait().unwrap();
}

#[test]
fn a_recording_tells_the_same_anywhere() {
    let socket = listener();
    let tmp = tempfile::tempdir().unwrap();
    let tape = tmp.path().join("tape");
    let host = Host::live().recording(&tape).unwrap();
    let live = by_proc(&host).unwrap();
    host.finish().unwrap();
    let replayed = by_proc(&Host::open_replay(&tape).unwrap()).unwrap();
    let mine = std::process::id();
    assert_eq!(seen_of(&[mine], &replayed, inode(&socket)), [(mine, socket.as_raw_fd() as u32)]);
    assert_eq!(replayed.of(inode(&socket)), live.of(inode(&socket)));
    assert_eq!(replayed.report, live.report);
}

#[test]
fn a_recording_that_is_cut_keeps_what_it_has_and_says_so() {
    let tmp = temp_memory();
    let proc = fake_proc(tmp.path(), 7, 15_000);
    let tape = tmp.path().join("tape");
    let host = proc.recording(&tape).unwrap();
    by_proc(&host).unwrap();
    host.finish().unwrap();
    let bytes = std::fs::read(&tape).unwrap();
    std::fs::write(&tape, &bytes[..bytes.len() / 2]).unwrap();
    let cut = by_proc(&Host::open_replay(&tape).unwrap()).unwrap();
    assert!((1..15_000).contains(&cut.report.sockets), "{:?}", cut.report);
    assert!(cut.report.is_partial());
    assert_eq!(
        cut.report.lines(),
        ["owners of sockets are incomplete: cannot replay owners@proc: the recording breaks off here"]
    );
    let error = by_proc(&Host::open_replay(&empty_tape(tmp.path())).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "cannot replay owners@proc: not in the recording");
}

fn empty_tape(dir: &Path) -> std::path::PathBuf {
    let tape = dir.join("empty");
    Host::live().recording(&tape).unwrap().finish().unwrap();
    tape
}

proptest::proptest! {
    #[test]
    fn any_block_ends(bytes in proptest::collection::vec(0u8..4, 0..400)) {
        fuzz_owners(&bytes);
    }
}

#[test]
fn garbled_blocks_are_an_error_with_a_place() {
    let (mut gather, mut report) = (Gather::default(), OwnersReport::default());
    let error = add(OwnersBackend::Proc, &[2, 0, 0], &mut gather, &mut report).unwrap_err();
    assert_eq!(error.to_string(), "the recorded owners of sockets are malformed at byte 0");
    let error = add(OwnersBackend::Bpf, &[1, 0, 0, 0, 3, 0, 0, 0, 9], &mut gather, &mut report).unwrap_err();
    assert_eq!(error.to_string(), "the recorded owners of sockets are malformed at byte 8");
}

/// A directory in memory if available: a hundred thousand links are slow on a disk.
fn temp_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// A /proc with one process of `count` descriptors, all of them sockets except every tenth.
fn fake_proc(dir: &Path, pid: u32, count: u32) -> Host {
    let fds = dir.join(format!("proc/{pid}/fd"));
    std::fs::create_dir_all(&fds).unwrap();
    std::fs::write(dir.join(format!("proc/{pid}/comm")), "many\n").unwrap();
    for fd in 0..count {
        let target = if fd % 10 == 9 { "/dev/null".into() } else { format!("socket:[{}]", 1_000_000 + fd) };
        std::os::unix::fs::symlink(target, fds.join(fd.to_string())).unwrap();
    }
    Host::with_roots(dir.join("proc"), "/sys".into(), "/etc".into())
}

#[test]
fn a_hundred_thousand_descriptors_in_one_process() {
    let tmp = temp_memory();
    let owners = by_proc(&fake_proc(tmp.path(), 4242, 100_000)).unwrap();
    let report = owners.report();
    assert_eq!((report.processes, report.fds, report.sockets), (1, 100_000, 90_000));
    for fd in 0..100_000 {
        let owner = Owner { pid: 4242, fd, process: record::Comm::new(b"many"), started: 0 };
        let expected: &[Owner] = if fd % 10 == 9 { &[] } else { &[owner] };
        assert_eq!(owners.of(1_000_000 + u64::from(fd)), expected);
    }
}

#[test]
fn root_a_hundred_thousand_descriptors_of_a_living_process() {
    testkit::require_root!();
    let tmp = tempfile::tempdir().unwrap();
    let mut child = again(tmp.path(), "hold 100000").spawn().unwrap();
    let line = line_of(&mut child, "holds ");
    let numbers: Vec<u64> = line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
    if numbers[1] < 100_000 {
        // Written directly to stderr: the harness captures the output of passing tests.
        let line = format!("skipped in part: only {} descriptors (CAP_SYS_RESOURCE is missing)\n", numbers[1]);
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    for backend in backends() {
        let owners = read_by(backend);
        let found = owners.of(numbers[0]);
        assert_eq!(found.len() as u64, numbers[1], "{backend:?}");
        assert!(found.iter().all(|owner| owner.pid == child.id()));
        assert!(found.windows(2).all(|pair| pair[0].fd < pair[1].fd));
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn processes_that_vanish_or_refuse_cost_their_owners_only() {
    let socket = listener();
    // The first openat is /proc, the next ones are processes: one has ended, one is unreadable.
    arm("openat", 1, 1, Fault::Fails(Errno::NOENT));
    arm("openat", 1, 1, Fault::Fails(Errno::ACCES));
    let owners = by_proc(&Host::live()).unwrap();
    disarm_all();
    assert!(owners.report.vanished >= 1 && owners.report.unreadable >= 1, "{:?}", owners.report);
    let owners = by_proc(&Host::live()).unwrap();
    assert_eq!(seen_of(&[std::process::id()], &owners, inode(&socket)).len(), 1);
}

#[test]
fn a_process_that_goes_while_its_descriptors_are_read() {
    let tmp = tempfile::tempdir().unwrap();
    let host = fake_proc(tmp.path(), 9, 30);
    arm("readlinkat", 10, 1000, Fault::Fails(Errno::NOENT));
    let owners = by_proc(&host).unwrap();
    disarm_all();
    assert_eq!((owners.report.sockets, owners.report.unreadable), (9, 0), "{:?}", owners.report);
    arm("readlinkat", 0, 1000, Fault::Fails(Errno::ACCES));
    let owners = by_proc(&host).unwrap();
    disarm_all();
    assert_eq!((owners.report.sockets, owners.report.unreadable), (0, 1), "{:?}", owners.report);
    // The name was removed with the process: the owner is still known by number.
    std::fs::remove_file(tmp.path().join("proc/9/comm")).unwrap();
    let owners = by_proc(&host).unwrap();
    assert_eq!(owners.of(1_000_000), [Owner { pid: 9, fd: 0, process: record::Comm::default(), started: 0 }]);
}

#[test]
fn no_proc_at_all_is_an_error() {
    let tmp = tempfile::tempdir().unwrap();
    let host = Host::with_roots(tmp.path().join("none"), "/sys".into(), "/etc".into());
    let error = by_proc(&host).unwrap_err().to_string();
    assert!(error.starts_with("cannot open ") && error.ends_with(": no such file or directory"), "{error}");
}

fn look(limits: &[Limit]) -> String {
    let socket = listener();
    let tmp = tempfile::tempdir().unwrap();
    let mut command = again(tmp.path(), &format!("look {}", inode(&socket)));
    confine(&mut command, limits).unwrap();
    let mut child = command.spawn().unwrap();
    let line = line_of(&mut child, "saw ");
    assert!(child.wait().unwrap().success());
    line
}

const NOBODY: Limit = Limit::User { uid: 65534, gid: 65534 };

#[test]
fn root_another_user_sees_no_owner_and_says_why() {
    testkit::require_root!();
    let saw = look(&[NOBODY]);
    assert!(saw.starts_with("saw 0 ") && saw.contains("hidden: false"), "{saw}");
    assert!(saw.contains("processes unreadable: permission denied (needs CAP_SYS_PTRACE or root; `netwren"), "{saw}");
}

#[test]
fn root_hidden_processes() {
    testkit::require_root!();
    let saw = look(&[Limit::HidePid(2), NOBODY]);
    assert!(saw.starts_with("saw 0 ") && saw.contains("unreadable: 0") && saw.contains("hidden: true"), "{saw}");
    assert!(saw.contains("| ") || saw.ends_with("lists what works)"), "{saw}");
    let saw = look(&[Limit::HidePid(1), NOBODY]);
    assert!(saw.starts_with("saw 0 ") && saw.contains("hidden: false") && !saw.contains("unreadable: 0"), "{saw}");
    let saw = look(&[Limit::HidePid(2)]);
    assert!(!saw.starts_with("saw 0 ") && saw.contains("hidden: false"), "{saw}");
}

#[test]
fn root_the_same_owners_as_ss() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    let lab = Lab::new("owners");
    lab.listen_tcp(50);
    let _ = lab.connect_v4(20);
    lab.make_unaccepted(2);
    lab.time_wait(2);
    for backend in backends() {
        // A child of another test may hold the sockets until it executes its program.
        let both = || compare_with_ss(&lab.output("ss", &["-Htanpe"]), &read_by(backend));
        let (compared, differences) = testkit::until_equal(both, |(_, differences)| differences.is_empty());
        assert!(differences.is_empty(), "{backend:?}: {differences:#?}");
        assert!(compared >= 90, "{compared} owners by {backend:?}");
    }
}

/// Returns the number of owners, and a line for each socket with different owners: ours, ss's, and ss's own line.
fn compare_with_ss(text: &str, owners: &Owners) -> (usize, Vec<String>) {
    let (mut compared, mut differences) = (0, Vec::new());
    for line in text.lines() {
        let number = |mark: &str| line.split(mark).nth(1)?.split([' ', ',', ')']).next()?.parse::<u64>().ok();
        let ours: Vec<_> = seen(owners, number("ino:").unwrap_or(0));
        let theirs: BTreeMap<u64, u64> = line
            .match_indices("pid=")
            .map(|(at, _)| {
                let rest = &line[at..];
                let word = |mark: &str| rest.split(mark).nth(1)?.split([',', ')']).next()?.parse().ok();
                (word("fd=").unwrap(), word("pid=").unwrap())
            })
            .collect();
        let theirs: Vec<_> = theirs.into_iter().map(|(fd, pid)| (pid as u32, fd as u32)).collect();
        if ours != theirs {
            differences.push(format!("{ours:?} {theirs:?} {line}"));
        }
        compared += ours.len();
    }
    (compared, differences)
}

/// The first process passes its listener to an older one over a unix socket; a later child inherits it.
const HANDED_ON: &str = "
import os, socket, sys
mine, theirs = socket.socketpair()
before = os.fork()
if not before:
    mine.close()
    _, handed, _, _ = socket.recv_fds(theirs, 1, 2)
    theirs.send(str(handed[0]).encode())
    theirs.recv(1)
    os._exit(0)
theirs.close()
held = socket.socket()
inode = os.fstat(held.fileno()).st_ino
socket.send_fds(mine, [b'x'], [held.fileno()])
fd = int(mine.recv(9))
ready, tell = os.pipe()
after = os.fork()
if not after:
    os.close(tell)
    os.read(ready, 1)
    os._exit(0)
print('numbers', inode, os.getpid(), held.fileno(), before, fd, after, held.fileno(), flush=True)
sys.stdin.read()
os.close(tell)
mine.close()
os.wait(), os.wait()
";

#[test]
fn root_every_holder_of_a_socket_by_every_backend() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (child, numbers) = script(HANDED_ON);
    let mut expected: Vec<_> = numbers[1..].chunks(2).map(|pair| (pair[0] as u32, pair[1] as u32)).collect();
    expected.sort_unstable();
    for backend in backends() {
        assert_eq!(seen(&read_by(backend), numbers[0]), expected, "{backend:?}");
    }
    end(child);
}

/// Registers two sockets with an io_uring and closes the descriptor of the first. Zeros where there is no io_uring.
const REGISTERED: &str = "
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
ring = libc.syscall(425, 4, (ctypes.c_uint32 * 30)())
closed, kept = socket.socket(), socket.socket()
inodes = [os.fstat(held.fileno()).st_ino for held in (closed, kept)]
files = (ctypes.c_int * 4)(-1, closed.fileno(), kept.fileno(), -1)
is_registered = ring >= 0 and libc.syscall(427, ring, 2, files, 4) == 0
closed.close()
print('numbers', *inodes, os.getpid(), ring if is_registered else 0, kept.fileno(), flush=True)
sys.stdin.read()
";

#[test]
fn a_socket_in_an_io_uring_has_its_process() {
    testkit::require_tool!("python3");
    let (child, numbers) = script(REGISTERED);
    let [pid, ring, kept] = [2, 3, 4].map(|at| numbers[at] as u32);
    if ring == 0 {
        end(child);
        return testkit::print_loud("skipped: no io_uring here");
    }
    for backend in backends() {
        let owners = read_by(backend);
        assert_eq!(seen(&owners, numbers[0]), [(pid, ring | Owner::IN_RING)], "{backend:?}");
        assert_eq!(owners.of(numbers[0])[0].process.as_bytes(), b"python3", "{backend:?}");
        assert_eq!(seen(&owners, numbers[1]), [(pid, kept)], "{backend:?}: its descriptor counts");
        assert_eq!((owners.report.rings_unread, owners.report.ring_refusal), (0, None));
    }
    end(child);
}

/// A process sends sockets over a pair of unix sockets and over a connection that is not accepted. The receiving
/// process does not read the messages. The sender closes all sockets but one.
const IN_FLIGHT: &str = "
import os, socket, sys
mine, theirs = socket.socketpair()
server = socket.socket(socket.AF_UNIX)
server.bind('\\0nw-%d' % os.getpid())
server.listen()
go, done = os.pipe()
receiver = os.fork()
if not receiver:
    mine.close()
    os.close(done)
    os.read(go, 1)
    os._exit(0)
client = socket.socket(socket.AF_UNIX)
client.connect(server.getsockname())
held = [socket.socket() for _ in range(303)]
inodes = [os.fstat(one.fileno()).st_ino for one in held]
numbers = [one.fileno() for one in held]
socket.send_fds(mine, [b'x'], numbers[:200])
socket.send_fds(mine, [b'y'], [os.open('/dev/null', 0)] + numbers[200:301])
socket.send_fds(client, [b'z'], numbers[301:302])
socket.send_fds(client, [b'z'], numbers[302:])
for one in held[:-1]:
    one.close()
print('numbers', receiver, theirs.fileno(), server.fileno(), os.getpid(), numbers[-1], *inodes, flush=True)
theirs.close()
server.close()
sys.stdin.read()
os.close(done)
os.wait()
";

#[test]
fn root_a_socket_in_flight_is_the_receivers() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (child, numbers) = script(IN_FLIGHT);
    let [receiver, pair, server, sender, kept] = [0, 1, 2, 3, 4].map(|at| numbers[at] as u32);
    let inodes = &numbers[5..];
    for backend in backends() {
        let owners = read_by(backend);
        assert_eq!(owners.report.in_flight_ended, None, "{:?}", owners.report);
        assert_eq!(seen(&owners, inodes[302]), [(sender, kept)], "{backend:?}: the sender has a descriptor");
        if backend == OwnersBackend::Proc {
            assert!(seen(&owners, inodes[0]).is_empty());
            continue;
        }
        let holder = |fd| [(receiver, fd | Owner::IN_FLIGHT)];
        for inode in &inodes[..301] {
            assert_eq!(seen(&owners, *inode), holder(pair));
        }
        assert_eq!(seen(&owners, inodes[301]), holder(server), "not accepted");
    }
    end(child);
}

/// Sends more sockets than are looked at.
const TOO_MANY_IN_FLIGHT: &str = "
import os, socket, sys
mine, theirs = socket.socketpair()
held = socket.socket()
for _ in range(5):
    socket.send_fds(mine, [b'x'], [held.fileno()] * 253)
inode = os.fstat(held.fileno()).st_ino
held.close()
print('numbers', os.getpid(), theirs.fileno(), inode, flush=True)
sys.stdin.read()
";

#[test]
fn root_messages_that_are_not_looked_at_are_counted() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (child, numbers) = script(TOO_MANY_IN_FLIGHT);
    for backend in backends().into_iter().filter(|backend| *backend == OwnersBackend::Bpf) {
        let owners = read_by(backend);
        let holder = (numbers[0] as u32, numbers[1] as u32 | Owner::IN_FLIGHT);
        assert_eq!(seen(&owners, numbers[2]), [holder], "{:?}", owners.report);
        assert!(owners.report.queues_unread >= 1 && owners.report.is_partial(), "{:?}", owners.report);
        let lines = owners.report.lines().join(" ");
        assert!(lines.contains("owners of sockets in flight are missing: "), "{lines}");
    }
    end(child);
}

#[test]
fn io_urings_of_a_fake_host_and_of_its_recording() {
    let tmp = tempfile::tempdir().unwrap();
    let host = fake_proc(tmp.path(), 7, 3);
    let link = |fd: u32| {
        let place = tmp.path().join(format!("proc/7/fd/{fd}"));
        std::os::unix::fs::symlink("anon_inode:[io_uring]", place).unwrap();
    };
    [3, 4, 5].into_iter().for_each(link);
    let infos = tmp.path().join("proc/7/task/7/fdinfo");
    std::fs::create_dir_all(&infos).unwrap();
    std::fs::write(infos.join("3"), "UserFiles:\t2\n    0: socket:[77]\n    1: socket:[1000001]\n").unwrap();
    // The ring 4 is locked, and 5 was closed since.
    std::fs::write(infos.join("4"), "pos:\t0\n").unwrap();
    let tape = tmp.path().join("tape");
    let host = host.recording(&tape).unwrap();
    let live = by_proc(&host).unwrap();
    host.finish().unwrap();
    for owners in [live, by_proc(&Host::open_replay(&tape).unwrap()).unwrap()] {
        assert_eq!(seen(&owners, 77), [(7, 3 | Owner::IN_RING)]);
        assert_eq!(seen(&owners, 1_000_001), [(7, 1)]);
        assert_eq!((owners.report.fds, owners.report.sockets, owners.report.rings_unread), (6, 4, 1));
        let why = "the kernel does not name them while they are in use (run netwren again)";
        let line = format!("owners of sockets registered with 1 io_uring are missing: {why}");
        assert_eq!(owners.report.lines(), [line]);
    }
}

/// A thread that unshares its descriptor table (CLONE_FILES off) and opens a socket in it.
const OWN_TABLE: &str = "
import ctypes, os, socket, sys, threading
told, done = threading.Event(), threading.Event()
def work():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    held = socket.socket()
    print('numbers', os.fstat(held.fileno()).st_ino, os.getpid(), threading.get_native_id(), held.fileno(), flush=True)
    done.wait()
thread = threading.Thread(target=work)
thread.start()
sys.stdin.read()
done.set()
thread.join()
";

#[test]
fn root_a_thread_with_its_own_descriptors() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (child, numbers) = script(OWN_TABLE);
    let (inode, pid, tid, fd) = (numbers[0], numbers[1] as u32, numbers[2], numbers[3] as u32);
    for backend in backends() {
        let owners = read_by(backend);
        assert_eq!(seen(&owners, inode), [(pid, fd)], "{backend:?}");
        assert_eq!(owners.value(Key::Pair(inode << 32 | u64::from(pid), fd)), Value::U64(tid));
    }
    end(child);
}

/// A server whose first thread has ended: /proc/PID/fd is empty, and so is /proc/PID/cmdline.
const FIRST_THREAD_ENDED: &str = "
import ctypes, os, platform, socket, sys, threading
held = socket.socket()
def work():
    open('/proc/self/task/%d/comm' % threading.get_native_id(), 'w').write('worker')
    while ') Z ' not in open('/proc/%d/task/%d/stat' % (os.getpid(), os.getpid())).read():
        pass
    print('numbers', os.fstat(held.fileno()).st_ino, os.getpid(), held.fileno(), flush=True)
    sys.stdin.read()
    os._exit(0)
open('/proc/self/comm', 'w').write('appserver')
for _ in range(3):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)
";

#[test]
fn root_a_process_has_its_first_threads_name_also_once_that_has_ended() {
    use crate::{ProcessParts, Processes};
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (child, numbers) = script(FIRST_THREAD_ENDED);
    let (inode, pid, fd) = (numbers[0], numbers[1] as u32, numbers[2] as u32);
    for backend in backends() {
        let owners = read_by(backend);
        assert_eq!(seen(&owners, inode), [(pid, fd)], "{backend:?}");
        assert_eq!(owners.of(inode)[0].process.as_bytes(), b"appserver", "{backend:?}");
    }
    let parts = ProcessParts { cmdlines: true, ..ProcessParts::default() };
    let processes = Processes::read(&Host::live(), &[pid], parts, u64::MAX).unwrap();
    let Value::Bytes(cmdline) = processes.cmdlines().value(Key::Id(pid.into())) else { panic!("no command line") };
    let cmdline = String::from_utf8_lossy(cmdline);
    assert!(cmdline.contains("python3 -c "), "{cmdline}");
    assert!(!crate::Identity::read(&Host::live(), pid).unwrap().has_ended);
    end(child);
}

/// A process that has erased its name.
const NAMELESS: &str = "
import os, socket, sys
held = socket.socket()
open('/proc/self/comm', 'w').write(chr(0))
print('numbers', os.fstat(held.fileno()).st_ino, os.getpid(), flush=True)
sys.stdin.read()
";

#[test]
fn root_a_process_without_a_name_is_called_by_its_command_line() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (child, numbers) = script(NAMELESS);
    assert_eq!(std::fs::read(format!("/proc/{}/comm", numbers[1])).unwrap(), b"\n");
    for backend in backends() {
        assert_eq!(read_by(backend).of(numbers[0])[0].process.as_bytes(), b"python3", "{backend:?}");
    }
    end(child);
}

#[test]
fn root_processes_in_pid_namespaces_have_two_numbers() {
    use crate::{ProcessParts, Processes};
    testkit::require_root!();
    testkit::require_tool!("unshare");
    let (socket, other_end) = UnixStream::pair().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "sh", "-c", "echo ready; read x"]).stdout(Stdio::piped());
    let mut child = command.stdin(OwnedFd::from(socket.try_clone().unwrap())).spawn().unwrap();
    drop(command);
    assert_eq!(line_of(&mut child, "ready"), "ready");
    for backend in backends() {
        // Children of other tests hold every descriptor of ours until their exec closes it.
        let owners = || -> Vec<(Vec<u8>, u32)> {
            let owners = read_by(backend);
            let others = owners.of(inode(&socket)).iter().filter(|o| o.pid != std::process::id());
            others.map(|owner| (owner.process.as_bytes().to_vec(), owner.pid)).collect()
        };
        let mut found = Vec::new();
        testkit::wait_until("unshare and sh are the only owners", || {
            found = owners();
            // The parent only waits, so it is not the first.
            found.iter().map(|(name, _)| name.as_slice()).eq([b"sh".as_slice(), b"unshare"])
        });
        found.reverse();
        assert_eq!(found[0].1, child.id());
        let pids: Vec<u32> = found.iter().map(|(_, pid)| *pid).collect();
        let parts = ProcessParts { container_pids: true, cmdlines: true, ..ProcessParts::default() };
        let processes = Processes::read(&Host::live(), &pids, parts, u64::MAX).unwrap();
        assert_eq!(processes.container_pids().get(pids[0]), None, "ours");
        assert_eq!(processes.container_pids().get(pids[1]), Some(1));
        let cmdline = processes.cmdlines().value(Key::Id(pids[1].into()));
        assert_eq!(cmdline, Value::Bytes(b"sh -c echo ready; read x"));
    }
    drop((socket, other_end));
    child.wait().unwrap();
}

/// The program writes rows in batches, and the rest with its totals at the end, no matter how full the last batch is.
#[test]
fn root_the_last_batch_may_be_as_full_as_it_likes() {
    testkit::require_root!();
    let mut sockets = Vec::new();
    for _ in 0..70 {
        sockets.push(UnixStream::pair().unwrap().0);
        for backend in backends() {
            let owners = read_by(backend);
            let us = |socket: &UnixStream| owners.of(inode(socket)).iter().any(|o| o.pid == std::process::id());
            assert!(owners.report.fds > 0 && sockets.iter().all(us), "{}: {:?}", sockets.len(), owners.report);
        }
    }
}

#[test]
fn root_a_pid_that_is_used_again() {
    testkit::require_root!();
    testkit::require_tool!("unshare");
    let inner = events_of(std::env::current_exe().unwrap(), "reuse 0");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc"]).arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir("/");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("reused by every backend"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs in a separate pid namespace, where the next pid can be chosen.
fn pid_reuse() {
    for backend in backends() {
        let reader = OwnersReader::new(Some(backend));
        let spawn = |program: &str, socket: &UnixStream| {
            let stdin = OwnedFd::from(socket.try_clone().unwrap());
            Command::new(program).arg("-").stdin(stdin).stdout(Stdio::null()).spawn().unwrap()
        };
        let held = |socket: &UnixStream| -> Vec<(u32, Vec<u8>)> {
            let owners = reader.read(&Host::live()).unwrap();
            let others = owners.of(inode(socket)).iter().filter(|owner| owner.pid != std::process::id());
            others.map(|owner| (owner.pid, owner.process.as_bytes().to_vec())).collect()
        };
        let (first, first_end) = UnixStream::pair().unwrap();
        let (second, second_end) = UnixStream::pair().unwrap();
        let mut one = spawn("cat", &first);
        let pid = one.id();
        testkit::wait_until("cat has begun", || held(&first) == [(pid, b"cat".to_vec())]);
        one.kill().unwrap();
        one.wait().unwrap();
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
        let mut two = spawn("tail", &second);
        assert_eq!(two.id(), pid, "the pid was to be used again");
        testkit::wait_until("tail has begun", || held(&second) == [(pid, b"tail".to_vec())]);
        assert_eq!(held(&first), [], "{backend:?}");
        two.kill().unwrap();
        two.wait().unwrap();
        drop((first_end, second_end));
    }
    println!("\nreused by every backend");
}

#[test]
fn root_no_process_is_unreadable_via_bpf() {
    testkit::require_root!();
    if !backends().contains(&OwnersBackend::Bpf) {
        return;
    }
    let socket = listener();
    let mut owners = read_by(OwnersBackend::Bpf);
    // Another test has a queue with more messages than are looked at.
    owners.report.queues_unread = 0;
    // Other tests fork: their children also hold it until they call exec.
    assert!(seen(&owners, inode(&socket)).contains(&(std::process::id(), socket.as_raw_fd() as u32)));
    assert!(owners.report.lines().is_empty() && !owners.report.is_partial(), "{:?}", owners.report);
    assert!(owners.report.fds > owners.report.sockets && owners.report.processes > 0, "{:?}", owners.report);
}

#[test]
fn root_refused_bpf_falls_back_to_proc_and_is_reported() {
    testkit::require_root!();
    if !backends().contains(&OwnersBackend::Bpf) {
        return;
    }
    let socket = listener();
    let reader = OwnersReader::default();
    arm("bpf", 0, 1_000, Fault::Fails(Errno::PERM));
    let owners = reader.read_by_bpf_or_proc(&Host::live()).unwrap();
    disarm_all();
    assert!(seen(&owners, inode(&socket)).contains(&(std::process::id(), socket.as_raw_fd() as u32)));
    assert_eq!((owners.report.backend, owners.report.via()), (OwnersBackend::Proc, "owners@proc (bpf refused)"));
    assert!(owners.report.refused.as_ref().unwrap().contains("operation not permitted"), "{:?}", owners.report);
    assert!(!owners.report.lines().iter().any(|line| line.contains("bpf")), "silently");
    // If the user requested BPF, the refusal is an error.
    arm("bpf", 0, 1_000, Fault::Fails(Errno::PERM));
    let refused = OwnersReader::new(Some(OwnersBackend::Bpf)).read(&Host::live()).map(drop);
    disarm_all();
    assert!(refused.unwrap_err().to_string().contains("operation not permitted"));
    // A reader that was refused does not try again in every round.
    assert_eq!(reader.read_by_bpf_or_proc(&Host::live()).unwrap().report.backend, OwnersBackend::Proc);
}

#[test]
fn root_a_recording_of_every_backend_is_replayed_without_a_kernel() {
    testkit::require_root!();
    let socket = listener();
    let tmp = tempfile::tempdir().unwrap();
    for backend in backends() {
        let tape = tmp.path().join(backend.stream());
        let host = Host::live().recording(&tape).unwrap();
        let reader = OwnersReader::new(Some(backend));
        let (first, second) = (reader.read(&host).unwrap(), reader.read(&host).unwrap());
        host.finish().unwrap();
        let replay = Host::open_replay(&tape).unwrap();
        let reader = OwnersReader::default();
        for live in [first, second] {
            let again = reader.read(&replay).unwrap();
            assert_eq!(again.report, live.report, "{backend:?}");
            assert_eq!(again.of(inode(&socket)), live.of(inode(&socket)));
            assert_eq!(again.pids(), live.pids());
        }
    }
}

#[test]
fn root_hundreds_of_idle_processes() {
    testkit::require_root!();
    let (socket, other_end) = UnixStream::pair().unwrap();
    let mut children = Vec::new();
    for _ in 0..300 {
        let stdin = OwnedFd::from(socket.try_clone().unwrap());
        children.push(Command::new("sleep").arg("60").stdin(stdin).stdout(Stdio::null()).spawn().unwrap());
    }
    let mut expected: Vec<_> = children.iter().map(|child| (child.id(), 0)).collect();
    expected.push((std::process::id(), socket.as_raw_fd() as u32));
    expected.sort_unstable();
    let pids: Vec<u32> = expected.iter().map(|(pid, _)| *pid).collect();
    for backend in backends() {
        let owners = read_by(backend);
        assert_eq!(seen_of(&pids, &owners, inode(&socket)), expected, "{backend:?}");
        assert!(owners.pids().len() >= 301);
    }
    children.iter_mut().for_each(|child| child.kill().unwrap());
    children.iter_mut().for_each(|child| _ = child.wait().unwrap());
    drop(other_end);
}

/// Runs in a separate process, because calls are counted for all threads.
fn calls_for_idle(processes: u32) {
    let tmp = temp_memory();
    let hosts: Vec<Host> = (1..=processes).map(|pid| fake_proc(tmp.path(), pid, 20)).collect();
    let host = &hosts[0];
    let before = sys::cost::syscalls();
    let report = by_proc(host).unwrap().report;
    let calls = sys::cost::syscalls() - before;
    assert_eq!((report.processes, report.fds), (processes, 20 * u64::from(processes)));
    println!("\ncalls {calls}");
}

#[test]
fn three_thousand_idle_processes_cost_a_fixed_number_of_calls_each() {
    let calls = |processes: u32| -> u64 {
        let mut child = events_of(std::env::current_exe().unwrap(), &format!("idle {processes}")).spawn().unwrap();
        let line = line_of(&mut child, "calls ");
        child.wait().unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let (few, many) = (calls(300), calls(3_000));
    assert!(many < few * 11, "{few} calls for 300 processes, {many} for 3 000");
}

#[test]
fn the_lines_at_the_end() {
    let report = OwnersReport { unreadable: 1, refusal: Some(Errno::PERM), over: 3, sockets: 9, ..Default::default() };
    assert_eq!(
        report.lines(),
        [
            "owners of 1 process unreadable: operation not permitted (needs CAP_SYS_PTRACE or root; \
             `netwren support` lists what works)",
            "owners of 3 sockets left out: the limit is 9"
        ]
    );
    let report = OwnersReport { unreadable: 2, refusal: Some(Errno::MFILE), ..Default::default() };
    assert_eq!(
        report.lines(),
        ["owners of 2 processes unreadable: too many open files (`netwren support` lists what works)"]
    );
    assert!(OwnersReport::default().lines().is_empty() && !OwnersReport::default().is_partial());
}
