//! Checks the promises of SECURITY.md about the whole program through its system calls.

use std::path::Path;
use testkit::netns::Lab;

/// Commands that only read, one for each source of rows.
const READERS: &[&[&str]] = &[
    &[],
    &["sockets"],
    &["sockets", "--all-netns", "state = listen"],
    &["flows"],
    &["nat"],
    &["nat", "top"],
    &["nat", "stats"],
    &["support"],
    &["ss", "-tanp"],
    &["netstat", "-tanp"],
    &["conntrack", "-L"],
];

/// The lines of `strace -f -e trace=CALLS` for `netwren ARGS` in a lab.
fn calls(lab: &Lab, log: &Path, calls: &str, args: &[&str]) -> Vec<String> {
    let (log_name, trace) = (log.display().to_string(), format!("trace={calls}"));
    let netwren = testkit::program::netwren().display().to_string();
    // Other namespaces and processes of the machine may make the result incomplete, so the exit code is ignored.
    let traced = [&["-f", "-qq", "-e", &trace, "-o", &log_name, &netwren][..], args].concat();
    lab.command("strace").args(traced).output().expect("strace starts");
    std::fs::read_to_string(log).expect("strace writes").lines().map(str::to_owned).collect()
}

fn furnished(name: &str) -> Option<Lab> {
    if !testkit::tool::require("strace") {
        return None;
    }
    let lab = Lab::new(name);
    lab.listen_tcp(3);
    Some(lab)
}

/// A command that only reads opens no file for writing: it sets no sysctl, writes nothing below /etc, and leaves no
/// file.
#[test]
fn root_reading_writes_no_file() {
    testkit::require_root!();
    let Some(lab) = furnished("readonly") else { return };
    for args in READERS {
        let opened = calls(&lab, &lab.dir().join("trace"), "open,openat,creat,mkdir,mkdirat,unlink,rename", args);
        assert!(opened.iter().any(|line| line.contains("O_RDONLY")), "{args:?}: a trace at all");
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "creat(", "mkdir", "unlink", "rename"];
        let written: Vec<&String> = opened.iter().filter(|l| writes.iter().any(|word| l.contains(word))).collect();
        assert!(written.is_empty(), "{args:?}: {written:?}");
    }
}

/// Without `--resolve` (and with `-n` for the faces that resolve by default) no packet is sent and no port is opened.
#[test]
fn root_nothing_is_sent_unless_names_are_asked_for() {
    testkit::require_root!();
    let Some(lab) = furnished("silent") else { return };
    for args in READERS {
        let sent = calls(&lab, &lab.dir().join("trace"), "connect,bind,listen,sendto,sendmsg,sendmmsg", args);
        let internet: Vec<&String> = sent.iter().filter(|line| line.contains("sa_family=AF_INET")).collect();
        assert!(internet.is_empty(), "{args:?}: {internet:?}");
        assert!(!sent.iter().any(|line| line.contains("listen(")), "{args:?}: nothing listens");
    }
}

/// The faces `netstat` and `lstf` resolve names by default, as the tools do; `-n` keeps them silent.
#[test]
fn root_faces_that_resolve_by_default_are_silent_with_n() {
    testkit::require_root!();
    let Some(lab) = furnished("silentfaces") else { return };
    for args in [&["netstat", "-tan"][..], &["lstf", "-n"]] {
        let sent = calls(&lab, &lab.dir().join("trace"), "connect,sendto,sendmsg,sendmmsg", args);
        assert!(!sent.iter().any(|line| line.contains("htons(53)")), "{args:?}: {sent:?}");
    }
}
