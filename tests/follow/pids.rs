//! pids are shown as numbers of the reader's pid namespace.
use super::{COLUMNS, bpf_works, listen, parse};
use crate::going::Going;
use crate::run::clean;
use std::process::Command;
use sys::sandbox::{Limit, confine};
use testkit::netns::Lab;

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
    let connected = lab.inside(|| std::net::TcpStream::connect(addr)).unwrap();
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
        return testkit::loud("skipped: no MPTCP here");
    }
    following.read_until("both ends", |rows| rows.len() >= 4);
    let mut rows = std::mem::take(&mut following.read);
    rows.sort();
    let line = |event: &str, direction: &str| format!("{event}\t{direction}\tpython3");
    assert_eq!(rows, [line("close", "in"), line("close", "out"), line("open", "in"), line("open", "out")]);
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
