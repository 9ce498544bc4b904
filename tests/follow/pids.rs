//! Numbers of processes are those of the reader's pid namespace.
use super::{COLUMNS, bpf_works, listen, parse};
use crate::going::Going;
use crate::run::clean;
use std::process::Command;
use sys::sandbox::{Limit, confine};
use testkit::netns::Lab;

/// In a container a process has another number than the kernel's own; a process outside has none.
#[test]
fn root_a_container_sees_its_own_numbers() {
    require_bpf!();
    let lab = Lab::new("followpids");
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let [go, who] = ["go", "who"].map(|name| lab.dir().join(name));
    // The shell connects when it is told to, and netwren takes the place of its parent.
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
