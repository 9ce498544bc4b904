//! pids are shown as numbers of the reader's pid namespace.
use super::{COLUMNS, bpf_works, listen, parse};
use crate::going::Going;
use crate::run::clean;
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// In a container a process has a different pid from the kernel's own; a process outside the container has no pid.
#[test]
fn root_a_container_sees_its_own_numbers() {
    require_bpf!();
    let lab = Lab::new("followpids");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let [go, who] = ["go", "who"].map(|name| lab.dir().join(name));
    // The shell connects when the file `go` exists; netwren replaces its parent process.
    let script = format!(
        "until [ -e {go} ]; do :; done | bash -c 'cat; echo $$ > {who}; exec 3<>/dev/tcp/127.0.0.1/{port}; read -u 3' &
         exec {program} sockets --follow --columns {COLUMNS}",
        go = go.display(),
        who = who.display(),
        port = addr.port(),
        program = testkit::program::netwren().display(),
    );
    let mut command = Command::new("unshare");
    clean(&mut command).args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut following = Going::past_header(command, COLUMNS, |line| parse(&line));
    std::fs::write(&go, "").unwrap();
    drop(listener.accept().unwrap());
    following.read_until("both ends", |events| events.len() >= 4);
    let inside: u32 = std::fs::read_to_string(&who).unwrap().trim().parse().unwrap();
    assert!(inside < 100, "a pid namespace of its own: {inside}");
    for event in &following.read {
        let pid = (event.peer == addr.port()).then_some(inside);
        assert_eq!(event.pid, pid, "{event:?}");
    }
}

/// One thread connects and a second thread accepts; each has its own name.
#[test]
fn root_a_connection_has_the_name_of_its_process_not_of_its_thread() {
    require_bpf!();
    let lab = Lab::new("followthreads");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let own = std::fs::read_to_string("/proc/self/comm").unwrap();
    let own = own.trim_end();
    let thread = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    assert_ne!(thread.trim_end(), own, "the test harness names its threads");
    let columns = "event,process";
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["sockets", "--follow", "--columns", columns, &format!("process = \"{own}\"")]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut following = Going::past_header(command, columns, |line| line);
    let connected = lab.run_inside(|| std::net::TcpStream::connect(addr)).unwrap();
    drop((listener.accept().unwrap(), connected));
    following.read_until("both ends", |rows| rows.len() >= 4);
    let line = |event: &str| format!("{event}\t{own}");
    let mut rows = std::mem::take(&mut following.read);
    rows.sort();
    assert_eq!(rows, [line("close"), line("close"), line("open"), line("open")]);
}

/// Both ends use MPTCP: the kernel reports a subflow, but the process holds the socket above it.
#[test]
fn root_a_connection_of_mptcp_has_its_process_at_both_ends() {
    require_bpf!();
    testkit::require_tool!("python3");
    let lab = Lab::new("followmptcp");
    let script = "
import socket
def made():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener = made()
listener.bind(('127.0.0.1', 7131))
listener.listen()
client = made()
client.connect(('127.0.0.1', 7131))
accepted, _ = listener.accept()
client.send(b'x')
accepted.recv(1)
client.close()
accepted.close()
";
    let columns = "event,direction,process";
    let mut command = Command::new(testkit::program::netwren());
    let filter = "local_port = 7131 or peer_port = 7131";
    clean(&mut command).args(["sockets", "--follow", "--columns", columns, filter]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut following = Going::past_header(command, columns, |line| line);
    let ran = lab.command("python3").args(["-c", script]).output().unwrap();
    if !ran.status.success() {
        return testkit::print_loud("skipped: no MPTCP here");
    }
    following.read_until("both ends", |rows| rows.len() >= 4);
    let mut rows = std::mem::take(&mut following.read);
    rows.sort();
    let line = |event: &str, direction: &str| format!("{event}\t{direction}\tpython3");
    assert_eq!(rows, [line("close", "in"), line("close", "out"), line("open", "in"), line("open", "out")]);
}

/// A connection of MPTCP, which a second subflow joins from 127.0.0.2 once data was received. With an argument, the
/// server accepts only then.
const JOINED: &str = "
import socket, subprocess, sys
def made():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener = made()
listener.bind(('127.0.0.1', 7131))
listener.listen()
client = made()
client.connect(('127.0.0.1', 7131))
is_late = len(sys.argv) > 1
accepted = None if is_late else listener.accept()[0]
client.send(b'x')
list_subflows = ['ss', '-Htn', 'state', 'established', 'sport = 7131']
while subprocess.run(list_subflows, capture_output=True).stdout.count(b'\\n') < 2:
    pass
accepted = accepted or listener.accept()[0]
accepted.recv(1)
client.close()
accepted.close()
";

/// Follows both ends of [`JOINED`]; `None` where the kernel or `ip` lacks MPTCP.
fn follow_joined(lab: &Lab, words: &[&str]) -> Option<(Vec<String>, crate::run::Ran)> {
    let ip = |words: &str| lab.command("ip").args(words.split(' ')).output().unwrap().status.success();
    if !ip("mptcp limits set subflow 2 add_addr_accepted 2") || !ip("mptcp endpoint add 127.0.0.2 dev lo subflow") {
        testkit::print_loud("skipped: no MPTCP here");
        return None;
    }
    let columns = "event,direction,local_addr,peer_addr,process";
    let mut command = Command::new(testkit::program::netwren());
    let filter = "local_port = 7131 or peer_port = 7131";
    clean(&mut command).args(["sockets", "--follow", "--columns", columns, filter]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut following = Going::past_header(command, columns, |line| line);
    assert!(lab.command("python3").args(["-c", JOINED]).args(words).output().unwrap().status.success());
    following.read_until("both ends of both subflows", |rows| rows.len() >= 8);
    Some(following.end())
}

/// A kernel thread opens the further subflow, and no process accepts it.
#[test]
fn root_subflows_of_mptcp_have_the_process_of_their_connection() {
    require_bpf!();
    testkit::require_tool!("python3");
    let lab = Lab::new("followjoin");
    let Some((mut rows, ran)) = follow_joined(&lab, &[]) else { return };
    rows.sort();
    let mut expected = Vec::new();
    for event in ["close", "open"] {
        for (direction, ends) in [
            ("in", "127.0.0.1\t127.0.0.1"),
            ("in", "127.0.0.1\t127.0.0.2"),
            ("out", "127.0.0.1\t127.0.0.1"),
            ("out", "127.0.0.2\t127.0.0.1"),
        ] {
            expected.push(format!("{event}\t{direction}\t{ends}\tpython3"));
        }
    }
    assert_eq!(rows, expected);
    ran.says(0, &["4 connections opened, 4 closed"]);
}

#[test]
fn root_subflows_that_join_before_the_connection_is_accepted_are_counted() {
    require_bpf!();
    testkit::require_tool!("python3");
    let lab = Lab::new("followlate");
    let Some((rows, ran)) = follow_joined(&lab, &["late"]) else { return };
    let joined = |row: &&String| row.starts_with("open\tin\t127.0.0.1\t127.0.0.2\t");
    assert_eq!(rows.iter().filter(joined).collect::<Vec<_>>(), ["open\tin\t127.0.0.1\t127.0.0.2\t-"]);
    let first = "open\tin\t127.0.0.1\t127.0.0.1\tpython3";
    assert!(rows.iter().any(|row| row == first), "{rows:?}");
    ran.says(3, &["subflows of MPTCP have no process: "]);
}

/// The connection and its process are older than the run.
const OLDER: &str = "
import socket, subprocess, sys
def made():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener = made()
listener.bind(('127.0.0.1', 7131))
listener.listen()
client = made()
client.connect(('127.0.0.1', 7131))
accepted, _ = listener.accept()
client.send(b'x')
accepted.recv(1)
accepted.send(b'y')
client.recv(1)
open(sys.argv[1], 'w').close()
sys.stdin.read()
";

#[test]
fn root_a_connection_of_mptcp_that_is_older_lends_its_process() {
    require_bpf!();
    testkit::require_tool!("python3");
    let lab = Lab::new("followolder");
    let ip = |words: &str| lab.command("ip").args(words.split(' ')).output().unwrap().status.success();
    if !ip("mptcp limits set subflow 2 add_addr_accepted 2") {
        return testkit::print_loud("skipped: no MPTCP here");
    }
    let ready = lab.dir().join("ready");
    let mut script = lab.command("python3");
    script.args(["-c", OLDER]).arg(&ready).stdin(std::process::Stdio::piped());
    let mut script = script.spawn().unwrap();
    lab.wait_until("a connection", || ready.exists());
    let columns = "event,local_addr,process";
    let mut command = Command::new(testkit::program::netwren());
    let filter = "local_port = 7131 or peer_port = 7131";
    clean(&mut command).args(["sockets", "--follow", "--columns", columns, filter]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut following = Going::past_header(command, columns, |line| line);
    // `ip` itself opens the subflow.
    assert!(ip("mptcp endpoint add 127.0.0.2 dev lo subflow"));
    following.read_until("the subflow", |rows| rows.len() >= 2);
    drop(script.stdin.take());
    assert!(script.wait().unwrap().success());
    following.read_until("the end", |rows| rows.len() >= 6);
    assert!(following.read.iter().all(|row| row.ends_with("\tpython3")), "{:?}", following.read);
}

/// The connecting process has ended, a child keeps its connection open, and another process has the same pid.
#[test]
fn root_issue_10_the_next_process_with_the_number_lends_no_command_line() {
    require_bpf!();
    let lab = Lab::new("followreused");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let [go, who, again, script] = ["go", "who", "again", "script"].map(|name| lab.dir().join(name));
    let steps = format!(
        "until [ -e {go} ]; do :; done
         bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; echo x >&3; sleep 1000 & echo $$ > {who}'
         for tick in 1 2 3; do
             read up idle < /proc/uptime; now=$up
             while [ $now = $up ]; do read now idle < /proc/uptime; done
         done
         read pid < {who}
         echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid
         sleep 999 & echo $! > {again}
         wait",
        go = go.display(),
        port = addr.port(),
        who = who.display(),
        again = again.display(),
    );
    std::fs::write(&script, steps).unwrap();
    let columns = "event,peer_port,pid,cmdline";
    let line = format!(
        "sh {} & exec {} sockets --follow --columns {columns} 'event = close and peer_port = {}'",
        script.display(),
        testkit::program::netwren().display(),
        addr.port()
    );
    let mut command = Command::new("unshare");
    clean(&mut command).args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &line]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut following = Going::past_header(command, columns, |line| line);
    std::fs::write(&go, "").unwrap();
    let accepted = listener.accept().unwrap();
    let number = |path| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    testkit::wait_until("another process has the number", || !number(&again).is_empty());
    assert_eq!(number(&who), number(&again));
    // Closing with unread bytes causes a reset, so the other end's close event has no running process.
    drop(accepted);
    following.read_until("the close", |rows| !rows.is_empty());
    assert_eq!(following.read, [format!("close\t{}\t{}\t-", addr.port(), number(&who))]);
}

#[test]
fn root_issue_10_a_running_process_has_its_command_line() {
    require_bpf!();
    let lab = Lab::new("followcmdline");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let columns = "peer_port,cmdline";
    let mut command = Command::new(testkit::program::netwren());
    let filter = format!("event = open and peer_port = {}", addr.port());
    clean(&mut command).args(["sockets", "--follow", "--columns", columns, &filter]);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let mut following = Going::past_header(command, columns, |line| line);
    let words = format!("exec 3<>/dev/tcp/127.0.0.1/{}; read -u 3", addr.port());
    let mut connects = Command::new("bash");
    connects.args(["-c", &words]);
    confine(&mut connects, &[Limit::Network(lab.path())]).unwrap();
    let mut connects = connects.spawn().unwrap();
    following.read_until("the opening", |rows| !rows.is_empty());
    assert_eq!(following.read, [format!("{}\tbash -c {words}", addr.port())]);
    drop(listener);
    connects.kill().unwrap();
    connects.wait().unwrap();
}
