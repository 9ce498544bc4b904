//! Processes with sockets: this test binary started again as a server's worker or as a client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// The environment variable with the task of a child process.
const ROLE: &str = "NETWREN_TEST_ROLE";

/// A child process that is killed on drop.
pub(super) struct Worker(Child);

impl Worker {
    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn again(role: &str) -> Command {
    // Another user can also start the program by this path, wherever it is located.
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", "follow::workers::work", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

/// A worker that accepts on an existing listener.
pub(super) fn acceptor(lab: &Lab, listener: &TcpListener) -> Worker {
    let listener = listener.as_fd().try_clone_to_owned().expect("a descriptor can be doubled");
    let mut command = again("accept");
    command.stdin(listener).stdout(Stdio::null());
    Worker(lab.run_inside(|| command.spawn()).expect("the worker starts"))
}

/// A worker that accepts one connection after the other without requesting the peer's address, and echoes each byte.
/// `None` without Python: Rust's standard library always requests the address.
pub(super) fn unasking_acceptor(lab: &Lab, listener: &TcpListener) -> Option<Worker> {
    const ACCEPTOR: &str = "
import ctypes, os
while True:
    fd = ctypes.CDLL(None).accept(0, None, None)
    while os.write(fd, os.read(fd, 1)):
        pass
    os.close(fd)
";
    if !testkit::tool::is_installed("python3") {
        return None;
    }
    let listener = listener.as_fd().try_clone_to_owned().expect("a descriptor can be doubled");
    let mut command = Command::new("python3");
    command.args(["-c", ACCEPTOR]).stdin(listener).stdout(Stdio::null());
    Some(Worker(lab.run_inside(|| command.spawn()).expect("python starts")))
}

/// The processes that have a descriptor with the target `socket:[INODE]`.
fn holders(name: &Path) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|link| link == name))
    };
    pids.filter(holds).collect()
}

/// A process that is the only holder of an existing connection until it is killed.
pub(super) fn keeper(lab: &Lab, stream: TcpStream) -> Worker {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_fd().as_raw_fd())).expect("it is open");
    let mut command = again("keep");
    command.stdin(std::os::fd::OwnedFd::from(stream)).stdout(Stdio::piped());
    let mut child = lab.run_inside(|| command.spawn()).expect("the keeper starts");
    // Wait until it has started, because the parent must keep the connection open until then.
    let mut out = child.stdout.take().expect("it is piped");
    let mut said = Vec::new();
    while !said.ends_with(b"kept\n") {
        let mut byte = [0];
        assert_eq!(out.read(&mut byte).expect("the keeper speaks"), 1, "it went away");
        said.push(byte[0]);
    }
    drop(command);
    let worker = Worker(child);
    // A child of another test shares this process's descriptors until its exec.
    lab.wait_until("nobody else holds it", || holders(&name) == [worker.pid()]);
    worker
}

/// A process with `count` open connections to itself, which end on drop. `None` if the descriptor limit is too low.
pub(super) fn crowd(lab: &Lab, count: usize) -> Option<Worker> {
    let mut command = again(&format!("crowd {count}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut worker = Worker(lab.run_inside(|| command.spawn()).expect("the crowd starts"));
    let out = BufReader::new(worker.0.stdout.take().expect("it is piped"));
    let said = out.lines().map_while(Result::ok).find(|line| line == "open" || line == "too few descriptors");
    (said? == "open").then_some(worker)
}

/// Makes `count` connections as the user `uid`, each to a different address, and closes them at once.
pub(super) fn fill_flows(lab: &Lab, count: usize, uid: u32) {
    let mut command = again(&format!("fill {count}"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    confine(&mut command, &[Limit::Network(lab.path()), Limit::User { uid, gid: uid }]).expect("the user exists");
    assert!(command.status().expect("the worker starts").success());
}

fn fill(count: usize) {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    for number in 0..u32::try_from(count).expect("it is small") {
        let addr = std::net::Ipv4Addr::from(u32::from_be_bytes([127, 1, 0, 0]) + number);
        let stream = TcpStream::connect((addr, port)).expect("the listener is there");
        drop((listener.accept().expect("it has come"), stream));
    }
}

/// The pid of a client, and for each connection its own port and the pid of the acceptor.
pub(super) struct Talked {
    pub(super) pid: u32,
    pub(super) accepted: Vec<(u16, u32)>,
}

pub(super) fn client(lab: &Lab, server: &str, count: usize) -> Talked {
    let mut command = again(&format!("connect {count} {server}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = lab.run_inside(|| command.spawn()).expect("the client starts");
    let pid = child.id();
    let out = child.wait_with_output().expect("the client ends");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}");
    let talked = |line: &str| {
        let (port, pid) = line.strip_prefix("conn ")?.split_once(' ')?;
        Some((port.parse().ok()?, pid.parse().ok()?))
    };
    Talked { pid, accepted: text.lines().filter_map(talked).collect() }
}

/// Runs the task of a child process; it is a test only in form.
#[test]
fn work() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    match words[..] {
        ["accept"] => accept(),
        ["keep"] => {
            // The test harness may have written the beginning of a line.
            println!("\nkept");
            std::io::stdout().flush().expect("the parent listens");
            loop {
                std::thread::park();
            }
        }
        ["fill", count] => fill(count.parse().expect("a number")),
        ["crowd", count] => stay_open(count.parse().expect("a number")),
        ["connect", count, server] => connect(count.parse().expect("a number"), server),
        _ => panic!("no such role: {role}"),
    }
}

fn accept() {
    let listener = std::io::stdin().as_fd().try_clone_to_owned().expect("stdin is the listener");
    for stream in TcpListener::from(listener).incoming() {
        let mut stream = stream.expect("accept works");
        stream.write_all(&std::process::id().to_le_bytes()).expect("the client reads");
        // The client closes first, so its end enters TIME_WAIT and the listener's port stays free.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
}

fn stay_open(count: usize) {
    let needed = 2 * count as u64 + 100;
    if testkit::sandbox::raise_open_files(needed).expect("the limit can be read") < needed {
        println!("\ntoo few descriptors");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    let addr = listener.local_addr().expect("it is bound");
    let connect = || (TcpStream::connect(addr).expect("it listens"), listener.accept().expect("accept works").0);
    let _pairs: Vec<_> = (0..count).map(|_| connect()).collect();
    println!("\nopen");
    loop {
        std::thread::park();
    }
}

fn connect(count: usize, server: &str) {
    let mut out = String::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(server).expect("the server listens");
        let mut pid = [0; 4];
        stream.read_exact(&mut pid).expect("the server says its pid");
        stream.write_all(b"thanks").expect("the server reads");
        let port = stream.local_addr().expect("it is bound").port();
        out.push_str(&format!("conn {port} {}\n", u32::from_le_bytes(pid)));
    }
    print!("\n{out}");
}
