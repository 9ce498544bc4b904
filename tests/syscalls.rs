//! The cost of a run, measured in system calls instead of time.

use crate::run::netwren_in;
use testkit::netns::Lab;

/// The number before `words` in the output of `--cost`.
fn number(line: &str, words: &str) -> u64 {
    let before = line.split(words).next().unwrap();
    before.rsplit([' ', '(']).find(|w| !w.is_empty()).unwrap().parse().unwrap()
}

/// A row of a plain list has 124 bytes of netlink data, so a call with a buffer of 32 KiB reads 260 rows.
#[test]
fn root_a_thousand_rows_cost_few_calls() {
    testkit::require_root!();
    let lab = Lab::new("calls");
    let calls = |filter: &str| {
        let ran = netwren_in(&lab, &["sockets", "--no-owner", "--cost", filter]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        number(&ran.stderr, " system calls")
    };
    lab.listen_tcp(10);
    let few = calls("proto = tcp");
    lab.listen_tcp(2_000);
    let many = calls("proto = tcp");
    assert!(many - few <= 14, "{few} calls for 10 rows, {many} for 2,010");
}

/// A command opens only the files it needs.
#[test]
fn root_without_owners_no_process_is_looked_at() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = Lab::new("strace");
    lab.listen_tcp(5);
    let log = lab.dir().join("trace");
    let netwren = testkit::program::netwren().display().to_string();
    lab.output("strace", &["-f", "-o", &log.display().to_string(), &netwren, "sockets", "--no-owner", "proto = tcp"]);
    let trace = std::fs::read_to_string(&log).unwrap();
    let opened: Vec<&str> = trace.lines().filter(|l| l.contains("open")).filter(|l| l.contains("/proc/")).collect();
    assert!(opened.iter().all(|l| l.contains("/proc/self/") || l.contains("/proc/thread-self/")), "{opened:?}");
    let sockets = trace.lines().filter(|l| l.contains("socket(AF_NETLINK")).count();
    assert_eq!(sockets, 1, "one dump for both families");
}

/// A command that does not use BPF does nothing for it: it loads no library, reads no kernel types and makes no bpf(2)
/// call.
#[test]
fn root_without_bpf_nothing_of_it_is_touched() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = Lab::new("nobpf");
    lab.listen_tcp(5);
    let log = lab.dir().join("trace").display().to_string();
    let netwren = testkit::program::netwren().display().to_string();
    let commands: [&[&str]; 6] = [
        &["--version"],
        &["sockets", "--columns", "help"],
        &["sockets", "--no-owner"],
        &["sockets", "--no-owner", "-o", "json", "state = listen"],
        &["ss", "-tln"],
        &["netstat", "-tln"],
    ];
    for command in commands {
        let strace = ["-f", "-e", "trace=bpf,open,openat", "-o", &log, &netwren];
        lab.output("strace", &[&strace[..], command].concat());
        let trace = std::fs::read_to_string(&log).unwrap();
        assert!(trace.contains("openat("), "{command:?}: a trace at all");
        let touched: Vec<&str> = trace
            .lines()
            .filter(|line| ["bpf(", "/btf/", "libbpf", "libelf", "libz."].iter().any(|word| line.contains(word)))
            .collect();
        assert!(touched.is_empty(), "{command:?}: {touched:?}");
    }
}

/// The memory of another process may be mapped from a file system that does not respond, so netwren reads it only if a
/// column shows its contents.
#[test]
fn root_command_lines_are_read_only_where_they_are_shown() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = Lab::new("cmdlines");
    lab.listen_tcp(1);
    let log = lab.dir().join("trace").display().to_string();
    let netwren = testkit::program::netwren().display().to_string();
    for (command, reads) in [
        (&["sockets"][..], false),
        (&["sockets", "-c", "process,pid,user"], false),
        (&["listeners"], false),
        (&["flows"], false),
        (&["ss", "-tlnp"], false),
        (&["lstf", "-n"], false),
        (&["netstat", "-tln"], false),
        (&["netstat", "-tlnp"], true),
        (&["sockets", "-c", "cmdline"], true),
    ] {
        lab.output("strace", &[&["-f", "-e", "trace=open,openat", "-o", &log, &netwren], command].concat());
        let trace = std::fs::read_to_string(&log).unwrap();
        let memory = ["cmdline\"", "/environ\"", "/mem\"", "/maps\""];
        let is_anothers = |line: &&str| !line.contains("/proc/self/") && memory.iter().any(|name| line.contains(name));
        assert_eq!(trace.lines().filter(is_anothers).count() > 0, reads, "{command:?}");
    }
}
