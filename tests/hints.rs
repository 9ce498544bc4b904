//! Collects the commands that error messages propose for wrong command lines, and runs them.

use crate::lab::furnished;
use crate::run::{Ran, clean, netwren, side_by_side};
use std::collections::BTreeSet;
use std::sync::Mutex;
use testkit::netns::Lab;

/// Commands whose users may type the switches of another tool.
const OF_TOOLS: [&str; 6] = ["sockets", "listeners", "flows", "nat", "nat delete", "capture"];
/// Switches of each tool, switches of no tool, and switches that the commands use with a different meaning.
const SWITCHES: [&str; 20] =
    ["t", "u", "x", "l", "tlnp", "4", "6", "i", "p", "s", "n", "o", "e", "q", "d", "L", "D", "A", "z", "X"];
/// Text to append to a switch.
const AFTER: [&str; 3] = ["", " -n 5 --json", " 53 -c state port = 80"];
/// Commands that print a table, with the words that must precede a filter.
const TABLES: [&str; 17] = [
    "sockets",
    "sockets --follow",
    "sockets kill",
    "listeners",
    "flows",
    "flows --follow",
    "routes",
    "nat",
    "nat stats",
    "nat events",
    "nat delete",
    "log --group 1",
    "capture",
    "drops",
    "doctor",
    "counters",
    "support",
];
/// Filters of other tools, typos, and words that have a meaning elsewhere. A filter that a table could understand also
/// has an unknown field, so that it runs no command here.
const FILTERS: [&str; 7] =
    ["peer = 1 and zzz = 2", "dst port 80 zzz = 2", "zzz", "tcp zzz", "statee = x", "prot = 1", "listn"];
/// Long options, with and without a value.
const LONG: [&str; 12] = [
    "--proto tcp",
    "--state=listen --json",
    "--port 80 -n 3",
    "--peer 10.0.0.1",
    "--client 10.0.0.1",
    "--dry-run pid=1",
    "--numeric -t",
    "--filter listen",
    "--kill pid=1",
    "--events",
    "--top",
    "--reason zzz",
];

/// Builds the wrong lines: each command with each switch and some text, each table with some filters and options.
fn wrong_lines() -> Vec<String> {
    let mut turn = 0;
    let mut lines = Vec::new();
    for command in OF_TOOLS {
        for switch in SWITCHES {
            turn += 1;
            lines.push(format!("{command} -{switch}{}", AFTER[turn % AFTER.len()]));
        }
    }
    for table in TABLES {
        for _ in 0..4 {
            turn += 1;
            lines.push(format!("{table} {}", FILTERS[turn % FILTERS.len()]));
            lines.push(format!("{table} {}", LONG[turn % LONG.len()]));
        }
    }
    let words = ["top", "conn", "unix", "stats", "interfaces", "kill", "retrans", "lsof", "rtt", "status", "socket"];
    lines.extend(words.map(str::to_owned));
    lines
}

/// Runs a line in the lab for at most two seconds.
fn ran(lab: &Lab, line: &str) -> Ran {
    let mut command = lab.command("timeout");
    clean(&mut command).args(["--signal=INT", "2", "sh", "-c"]);
    let line = format!("exec {} {line}", testkit::program::netwren().display());
    Ran::of(command.arg(line).current_dir(lab.dir()).output().unwrap())
}

/// Returns the flags that make a proposed line end by itself if it would run forever.
fn ending(line: &str) -> &'static str {
    match line.split(' ').next() {
        Some("tcpdump") => " -d",
        Some("capture" | "drops" | "counters" | "log") => " --explain",
        Some("nat") if line.starts_with("nat events") => " --explain",
        Some("doctor") => " --for 0.05",
        Some("flows") if line.contains("--watch") => " --for 0.05",
        _ => "",
    }
}

/// Returns the messages for a refused line; empty if the line is valid. Checks only the words of streams.
fn refusal(lab: &Lab, line: &str) -> String {
    let is_stream =
        ["capture", "drops", "nat events", "log", "doctor", "counters"].iter().any(|it| line.starts_with(it))
            || line.contains("--follow");
    let ran = ran(lab, &format!("{line}{}", if is_stream { " --replay /nonexistent" } else { "" }));
    if ran.code == 2 { ran.stderr } else { String::new() }
}

/// Every proposed command is complete and runs.
#[test]
fn root_every_proposed_command_runs() {
    testkit::require_root!();
    let lab = furnished("hints");
    lab.use_conntrack();
    let (proposed, quoted) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
    side_by_side(wrong_lines(), |line| {
        let said = refusal(&lab, &line);
        assert!(!said.contains('…') || !said.contains("did you mean: "), "{line}: {said}");
        // The locks are held only during these calls, which cannot panic.
        proposed
            .lock()
            .unwrap()
            .extend(said.lines().filter_map(|line| line.strip_prefix("did you mean: netwren ")).map(str::to_owned));
        quoted
            .lock()
            .unwrap()
            .extend(said.split('`').skip(1).step_by(2).filter_map(|it| it.strip_prefix("netwren ")).map(str::to_owned));
    });
    let (proposed, quoted) = (proposed.into_inner().unwrap(), quoted.into_inner().unwrap());
    assert!(proposed.len() > 50 && quoted.len() > 10, "{} and {}", proposed.len(), quoted.len());
    let bad = Mutex::new(Vec::new());
    side_by_side(&proposed, |line| {
        let ran = ran(&lab, &format!("{line}{}", ending(line)));
        let is_refused = ran.code == 2 || ran.code == 11 || ran.stderr.contains("Usage:");
        // conntrack exits with 1 if it finds no entry to show or delete.
        let is_failed = ran.code == 1 && !line.starts_with("conntrack");
        if is_refused || is_failed || line.contains("--yes") {
            bad.lock().unwrap().push(format!("netwren {line}: exit code {}: {}", ran.code, ran.stderr));
        }
    });
    let bad = bad.into_inner().unwrap();
    eprintln!("{} proposed commands ran", proposed.len());
    assert!(bad.is_empty(), "{} of {}\n{}", bad.len(), proposed.len(), bad.join("\n"));
    for line in &quoted {
        let words: Vec<&str> = line.split(' ').chain(["--help"]).collect();
        let ran = netwren(&words);
        assert!(ran.code == 0 || line.starts_with("tcpdump"), "netwren {line}: {}", ran.stderr);
    }
}

/// The commands in the program's messages exist, and so do their flags. In the sources, these commands are in
/// backquotes.
#[test]
fn commands_in_messages_exist() {
    let (mut found, mut wrong) = (BTreeSet::new(), Vec::new());
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
    for krate in std::fs::read_dir(crates).unwrap() {
        collect(&krate.unwrap().path().join("src"), &mut found);
    }
    assert!(found.len() > 60, "{}", found.len());
    for line in found {
        let line = line.split(" | ").next().unwrap();
        // A value that the message fills in, or that the reader does.
        let words = line.split_whitespace().map(|word| if word.contains('{') || word == "…" { "X" } else { word });
        let quoted = line.contains('\'');
        let words: Vec<&str> =
            if quoted { line.split('\'').next().unwrap().split_whitespace().collect() } else { words.collect() };
        let is_face = ["ss", "netstat", "nstat", "lstf", "conntrack", "tcpdump", "ulogd", "dropwatch", "help"];
        if words.first().is_none_or(|first| is_face.contains(first) || *first == "X") || words.contains(&"COMMAND") {
            continue;
        }
        let helped = |value: Option<&'static str>| {
            netwren(&words.iter().copied().chain(value).chain(["--help"]).collect::<Vec<_>>())
        };
        // A flag at the end may lack its value.
        if helped(None).code != 0 && helped(Some("X")).code != 0 {
            wrong.push(format!("netwren {line}: {}", helped(None).stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adds the commands in the string literals of all sources in a folder.
fn collect(folder: &std::path::Path, found: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let text: Vec<&str> =
            text.split("#[cfg(test)]").next().unwrap().lines().filter(is_code).map(str::trim).collect();
        let text = text.join("\n").replace("\\\n", "").replace("\\n", " ");
        let quoted = text.split('`').skip(1).step_by(2).filter_map(|it| it.strip_prefix("netwren "));
        found.extend(quoted.filter(|it| !it.contains('\n') && !it.contains('"')).map(str::to_owned));
    }
}
