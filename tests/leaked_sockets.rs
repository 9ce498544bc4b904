//! TCP sockets that are neither bound nor connected. No kernel table lists them.

use crate::run::netwren_in;
use testkit::netns::Lab;

/// A program that creates TCP sockets without using them and runs until its input ends.
const HOLDER: &str = "import socket, sys\n\
    held = [socket.socket(family, socket.SOCK_STREAM) for family in [socket.AF_INET] * 20 + [socket.AF_INET6] * 5]\n\
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)\n\
    bound.bind(('127.0.0.1', 4000))\n\
    bound.listen()\n\
    print('held', flush=True)\n\
    sys.stdin.read()\n";

#[test]
fn root_sockets_that_are_in_no_table_are_counted_and_shown_with_their_holders() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let lab = Lab::new("leakedsockets");
    let mut holder = lab.command("python3");
    holder.args(["-c", HOLDER]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(line, "held\n");
    let summary = netwren_in(&lab, &["ss", "-s"]).ok();
    assert!(summary.contains("closed 25,"), "{summary}");
    let args = ["sockets", "-H", "-c", "proto,family,state,local_addr,pid", "state = close"];
    let shown = netwren_in(&lab, &args).ok();
    let row = |family: &str| format!("tcp\t{family}\tclose\t-\t{}", holder.id());
    assert_eq!(shown.lines().filter(|line| *line == row("inet")).count(), 20, "{shown}");
    assert_eq!(shown.lines().filter(|line| *line == row("inet6")).count(), 5, "{shown}");
    let by = netwren_in(&lab, &["sockets", "-H", "state = close and proto = tcp", "--by", "pid"]).ok();
    assert_eq!(by, format!("{}\t25\n", holder.id()));
    assert_eq!(netwren_in(&lab, &["sockets", "-H", "state = close and local_port = 4000"]).ok(), "");
    drop(holder.stdin.take());
    holder.wait().unwrap();
}
