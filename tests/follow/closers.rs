//! `sockets --follow` names the process that closes a connection, not a task that had its last reference.

use super::{Event, Following, bpf_works};
use std::process::Command;
use testkit::netns::Lab;

/// Prints its pid, connects to itself and closes the client's end so that a different task has the last reference: a
/// child process whose exec closes the inherited descriptor, or the kernel thread that cleans up an io_uring.
const CLOSER: &str = r#"
import ctypes, os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
def by_exec():
    waiting, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(waiting, 1)
        os.execvp("true", ["true"])
    client.close()
    os.write(go, b"x")
    os.waitpid(child, 0)
def by_io_uring():
    # io_uring_setup and io_uring_register(IORING_REGISTER_FILES), on x86-64 and arm64 alike.
    call = ctypes.CDLL(None, use_errno=True).syscall
    ring = call(425, 1, ctypes.create_string_buffer(120))
    if ring < 0 or call(427, ring, 2, (ctypes.c_int * 1)(client.fileno()), 1) < 0:
        sys.exit("no io_uring: " + os.strerror(ctypes.get_errno()))
print(os.getpid(), flush=True)
{"exec": by_exec, "io_uring": by_io_uring}[sys.argv[1]]()
"#;

/// The close events of such a connection, and the pid of the process that made it; `None` if the kernel lacks
/// io_uring.
fn closed_by(lab: &Lab, how: &str) -> Option<(u32, Vec<Event>)> {
    let mut following = Following::by_bpf(lab);
    let out = lab.run_inside(|| Command::new("python3").args(["-c", CLOSER, how]).output()).expect("python3 starts");
    let said = String::from_utf8_lossy(&out.stderr);
    if said.starts_with("no io_uring") {
        eprintln!("skipped: {said}");
        return None;
    }
    assert!(out.status.success(), "{said}");
    let pid = String::from_utf8_lossy(&out.stdout).trim().parse().expect("it prints its pid");
    following.read_until("both ends, twice", |events| events.len() >= 4);
    let (events, _) = following.end();
    Some((pid, events.into_iter().filter(|event| event.event == "close").collect()))
}

/// A connection stays with the process that made it if another has only its last reference.
#[test]
fn root_who_has_the_last_reference_closes_nothing() {
    require_bpf!();
    if !std::fs::read_to_string("/proc/kallsyms").expect("root may read it").contains(" bpf_rdonly_cast\n") {
        eprintln!("skipped: before Linux 6.2 the last reference decides");
        return;
    }
    let lab = Lab::new("followref");
    for how in ["exec", "io_uring"] {
        let Some((pid, closings)) = closed_by(&lab, how) else { continue };
        assert_eq!(closings.len(), 2, "{how}: {closings:?}");
        assert!(closings.iter().all(|event| event.pid == Some(pid)), "{how}: {pid}, {closings:?}");
    }
}
