//! Compares `ss -K` and `ss -E` of the face with the installed ss, on live sockets of labs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use testkit::netns::Lab;
use testkit::{mask, program, require_root, require_tool, tool, wait_until};

fn layout() -> &'static str {
    if tool::version("ss").expect("ss tells its version") >= tool::Version(6, 15, 0) { "6.15" } else { "6.1" }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The face, or the installed ss.
fn ss(lab: &Lab, ours: bool, before: &[&str], line: &str) -> Command {
    let mut command = if ours { lab.command(program::netwren()) } else { lab.command("stdbuf") };
    match ours {
        true => command.arg("ss").args(before).env("NETWREN_SS_LAYOUT", layout()),
        // ss itself buffers events in a pipe.
        false => command.args(["-oL", "ss"]),
    };
    command.args(line.split(' ')).env_remove("NETWREN_BUG_COMPATIBLE");
    command
}

/// A script that opens the same sockets on the same ports in every lab.
const SOCKETS: &str = r#"
import socket, sys, signal
kept = []
def new(kind=socket.SOCK_STREAM, family=socket.AF_INET, at=None):
    s = socket.socket(family, kind); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if at: s.bind(at)
    kept.append(s); return s
listener = new(at=("127.0.0.1", 8080)); listener.listen(5)
for port in (7001, 7002, 7003):
    new(at=("127.0.0.1", port)).connect(("127.0.0.1", 8080)); kept.append(listener.accept()[0])
six = new(family=socket.AF_INET6, at=("::", 8081)); six.listen(5)
new(family=socket.AF_INET6, at=("::1", 7004)).connect(("::1", 8081)); kept.append(six.accept()[0])
new(socket.SOCK_DGRAM, at=("0.0.0.0", 5300))
new(socket.SOCK_DGRAM, at=("127.0.0.1", 5301)).connect(("127.0.0.1", 5300))
kept += socket.socketpair()
open(sys.argv[1], "w").close(); signal.pause()
"#;

fn furnished(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    let ready = lab.dir().join("ready");
    lab.spawn("python3", &["-c", SOCKETS, ready.to_str().unwrap()]);
    lab.wait_until("the sockets", || ready.exists());
    lab
}

fn left(lab: &Lab) -> String {
    mask::sorted_lines(&lab.output("ss", &["-Htuan"]))
}

#[test]
fn root_kill_shows_and_closes_what_ss_does() {
    require_root!();
    require_tool!("ss");
    for (n, line) in [
        "-tnK dport = 8080 sport = 7002",
        "-tanK",
        "-tuanK",
        "-HtnK state established",
        "-tlnK",
        "-6tanK",
        "-tnK sport = 9999",
        "-tanpK dport = 8080",
        "-tKe dst 127.0.0.1:7001",
    ]
    .into_iter()
    .enumerate()
    {
        let (theirs, ours) = (furnished(&format!("killtheirs{n}")), furnished(&format!("killours{n}")));
        let run = |lab: &Lab, own: bool| ss(lab, own, &["--bug-compatible"], line).output().unwrap();
        let (they, we): (Output, Output) = (run(&theirs, false), run(&ours, true));
        let masked = |output: &Output| mask::sorted_lines(&mask::ss(&text(&output.stdout)));
        assert_eq!(numberless(&masked(&they)), numberless(&masked(&we)), "ss {line}: {}", text(&we.stderr));
        assert_eq!(they.status.code(), we.status.code(), "ss {line}");
        assert_eq!(left(&theirs), left(&ours), "after ss {line}");
    }
}

/// Masks inodes, cookies and pids, which differ from lab to lab together with their widths and following blanks. Sorts
/// words, because both ends of a connection close, and the hash table decides which is reported first.
fn numberless(lines: &str) -> String {
    let word = |word: &str| match word.split_once(':').or_else(|| word.split_once("pid=")) {
        Some((name @ ("ino" | "sk"), _)) => format!("{name}:N"),
        Some((name, rest)) if name.starts_with("users") => rest.split("pid=").next().unwrap_or("").to_owned(),
        _ => word.to_owned(),
    };
    let line = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(word).collect();
        words.sort();
        words.join(" ")
    };
    mask::sorted_lines(&lines.lines().map(|l| line(l) + "\n").collect::<String>())
}

/// The face does not show sockets that it failed to close, and leaves none open, unlike ss.
#[test]
fn root_kill_shows_only_what_was_closed() {
    require_root!();
    let lab = furnished("killunix");
    let ran = ss(&lab, true, &[], "-xnK").output().unwrap();
    assert_eq!(text(&ran.stdout).lines().count(), 1, "{}", text(&ran.stdout));
    assert!(text(&ran.stderr).contains("2 matching sockets cannot be closed by the kernel"), "{}", text(&ran.stderr));
    let old = ss(&lab, true, &["--bug-compatible"], "-xnK").output().unwrap();
    assert_eq!(text(&old.stdout).lines().count(), 3);
    // More than one receive buffer: all 700 are closed, although closing shifts the rest.
    let lab = Lab::new("killmany");
    let pairs = lab.connect_v4(700);
    let ran = ss(&lab, true, &[], &format!("-HtnK dport = {}", pairs[0].server.port())).output().unwrap();
    assert_eq!(text(&ran.stdout).lines().count(), 700);
    assert_eq!(lab.output("ss", &["-Htn"]), "");
}

#[test]
fn root_kill_without_the_right_closes_nothing() {
    require_root!();
    let lab = furnished("killdenied");
    let before = left(&lab);
    let mut command = Command::new(program::netwren());
    command.args(["ss", "-tanK"]);
    let limits = [
        testkit::sandbox::Limit::Network(lab.path()),
        testkit::sandbox::Limit::WithoutCaps(vec![sys::caps::Cap::NetAdmin]),
    ];
    testkit::sandbox::confine(&mut command, &limits).unwrap();
    let ran = command.output().unwrap();
    assert_eq!(text(&ran.stderr), "SOCK_DESTROY answers: Operation not permitted\n");
    assert_eq!(text(&ran.stdout).lines().count(), 1);
    assert_eq!(left(&lab), before);
}

/// A listener that writes to a file.
struct Listening {
    child: Child,
    ours: bool,
    file: std::path::PathBuf,
}

impl Listening {
    fn start(lab: &Lab, ours: bool, line: &str, name: &str) -> Listening {
        let file = lab.dir().join(name);
        // Not through `ip netns exec`, which would receive the signal: exec makes the child the program itself.
        let mut command = ss(lab, ours, &["--bug-compatible"], line);
        let out = std::fs::File::create(&file).unwrap();
        let child = command.stdout(out).stderr(Stdio::null()).spawn().unwrap();
        Listening { child, ours, file }
    }

    fn lines(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap()
    }

    /// Ends it; returns its exit code.
    fn end(mut self) -> Option<i32> {
        // In tests run in a shell's background SIGINT is ignored, and ss keeps it ignored.
        let signal = if self.ours { "-INT" } else { "-TERM" };
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

/// Number of sockets inside that listen to destroy events (sock_diag is protocol 4; the fourth column has the groups).
fn listeners(lab: &Lab) -> usize {
    let table = lab.run_inside(|| std::fs::read_to_string(Path::new("/proc/thread-self/net/netlink")).unwrap());
    let joined = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) == Some(&"4") && words.get(3).is_some_and(|groups| !groups.trim_start_matches('0').is_empty())
    };
    table.lines().filter(joined).count()
}

#[test]
fn root_events_are_those_of_ss() {
    require_root!();
    require_tool!("ss");
    const LINES: [&str; 10] = [
        "-E",
        "-tnE",
        "-tanEiemo",
        "-HuanE",
        "-tanE dport = 8080",
        "-4E",
        "-6nE",
        "-tnE state listening",
        "-nE sport = 5300",
        "-tnEK",
    ];
    // For ports in events ss ignores the protocol: 7003 has a name for UDP only.
    let lab = Lab::new("ssevents");
    let both: Vec<(Listening, Listening)> = LINES
        .iter()
        .enumerate()
        .map(|(n, line)| {
            (
                Listening::start(&lab, false, line, &format!("their{n}")),
                Listening::start(&lab, true, line, &format!("our{n}")),
            )
        })
        .collect();
    // ss listens twice with `-K`.
    wait_until("all listen", || listeners(&lab) == 2 * LINES.len() + 1);
    let ready = lab.dir().join("ready");
    lab.spawn("python3", &["-c", SOCKETS, ready.to_str().unwrap()]);
    lab.wait_until("the sockets", || ready.exists());
    lab.close_all();
    // The markers are closed last.
    lab.udp((Ipv4Addr::LOCALHOST, 5999).into());
    lab.listen((Ipv6Addr::LOCALHOST, 5998).into());
    lab.close_all();
    // Sockets that are still referenced may be destroyed later than sockets closed after them.
    let complete = |listening: &Listening| {
        let lines = listening.lines();
        [":5999 ", ":5998 "].iter().all(|marker| lines.contains(marker)) && lines.lines().count() >= 12
    };
    wait_until("the markers, and all before them", || complete(&both[0].0) && complete(&both[0].1));
    // Two CPUs may deliver the events of two ends in different orders to two listeners. An event that arrives
    // after all were equal may reach only one of two listeners, so they are not compared again.
    let sorted = |listening: &Listening| testkit::mask::sorted_lines(&listening.lines());
    wait_until("equal", || both.iter().all(|(their, our)| sorted(their) == sorted(our)));
    assert_eq!(both[9].0.lines().lines().count(), 1, "the heading alone");
    for (line, (their, our)) in LINES.iter().zip(both) {
        their.end();
        assert_eq!(our.end(), Some(0), "ss {line}");
    }
}

#[test]
fn root_events_of_tables_that_have_none() {
    require_root!();
    let lab = Lab::new("noevents");
    let ran = ss(&lab, true, &[], "-xE").output().unwrap();
    assert_eq!((ran.stdout, ran.stderr, ran.status.code()), (Vec::new(), Vec::new(), Some(255)));
}
