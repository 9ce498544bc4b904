//! The output contract: pipes, full disks, and formats that other programs read.

use crate::lab::furnished;
use crate::run::{Ran, clean, command, netwren_in};
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;

fn rows(json: &str) -> Vec<Value> {
    json.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn root_json_has_the_wide_columns_and_right_types() {
    testkit::require_root!();
    let lab = furnished("json");
    let all = rows(&netwren_in(&lab, &["sockets", "-o", "json"]).ok_but_owners());
    assert!(all.len() > 30, "{}", all.len());
    for row in &all {
        let row = row.as_object().unwrap();
        for key in ["proto", "state", "local_addr", "local_port", "peer_addr", "uid", "inode", "cookie", "owners"] {
            assert!(row.contains_key(key), "{key}");
        }
        assert!(row["local_port"].is_null() || row["local_port"].is_u64());
        assert!(row["local_addr"].is_null() || row["local_addr"].is_string());
    }
    let listener = all.iter().find(|row| row["state"] == "listen" && row["proto"] == "tcp").unwrap();
    assert!(listener["recv_q"].is_null() && listener["accept_q"].is_u64() && listener["peer_addr"].is_null());
}

/// IPv4-mapped addresses are shown as IPv4; the family column shows IPv6.
#[test]
fn root_mapped_addresses_are_unmapped() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("mapped");
    lab.connect_mapped(1);
    let all = rows(&netwren_in(&lab, &["sockets", "-o", "json", "--no-owner", "state = established"]).ok());
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|row| row["local_addr"] == "127.0.0.1"), "{all:?}");
    let families: Vec<_> = all.iter().map(|row| row["family"].as_str().unwrap()).collect();
    assert!(families.contains(&"inet") && families.contains(&"inet6"), "{families:?}");
}

#[test]
fn root_csv_and_text_agree_with_json() {
    testkit::require_root!();
    let lab = furnished("formats");
    let args = |format| {
        [
            "sockets",
            "-o",
            format,
            "--no-owner",
            "--columns",
            "proto,state,local_port",
            "--sort",
            "proto,state,local_port",
        ]
    };
    let csv = netwren_in(&lab, &args("csv")).ok();
    let text = netwren_in(&lab, &args("table")).ok();
    let json = rows(&netwren_in(&lab, &args("json")).ok());
    assert_eq!(csv.lines().next(), Some("proto,state,local_port"));
    assert_eq!(text.lines().next(), Some("proto\tstate\tlocal_port"));
    assert_eq!(csv.lines().count(), json.len() + 1);
    for ((csv, text), row) in csv.lines().zip(text.lines()).skip(1).zip(&json) {
        let cells = [&row["proto"], &row["state"], &row["local_port"]].map(|v| match v {
            Value::Null => None,
            Value::String(s) => Some(s.clone()),
            other => Some(other.to_string()),
        });
        assert_eq!(csv, cells.clone().map(Option::unwrap_or_default).join(","));
        assert_eq!(text, cells.map(|c| c.unwrap_or("-".into())).join("\t"));
    }
}

/// `| head` is not an error, and the run ends early.
#[test]
fn root_a_closed_pipe_is_success() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("pipe");
    lab.listen_tcp(3_000);
    for args in [&["sockets", "--no-owner"][..], &["sockets", "-o", "json", "--no-owner"], &["ss", "-ltn"]] {
        let mut child = clean(&mut lab.command(testkit::program::netwren()))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn a_full_disk_is_reported() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = command(&["sockets", "--no-owner"]).stdout(full).output().unwrap();
    assert_eq!(ran.status.code(), Some(4));
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(stderr.contains("no space left on device"), "{stderr}");
}

#[test]
fn colour_only_where_it_is_wanted() {
    let plain = command(&["sockets", "--no-owner"]).output().unwrap().stdout;
    assert!(!plain.contains(&0x1b), "a pipe gets no colour");
    let forced = command(&["sockets", "--no-owner", "--color=always"]).output().unwrap().stdout;
    assert!(forced.contains(&0x1b));
}

/// `seen = emitted + filtered + grouped + duplicates + cut + failed` in every shape of run.
#[test]
fn root_the_statistics_add_up() {
    testkit::require_root!();
    let lab = furnished("books");
    for shape in [
        &["local_port > 40000"][..],
        &["--limit", "3"],
        &["--limit", "3", "--sort", "inode"],
        &["--by", "proto"],
        &["--by", "state", "--limit", "1", "proto = tcp"],
        &["peer_port != null and uid = 0 and not state = listen"],
    ] {
        let mut args = vec!["sockets", "-o", "json", "--stats", "--no-owner"];
        args.extend(shape);
        let all = rows(&netwren_in(&lab, &args).ok());
        let stats = &all.last().unwrap()["accounting"];
        let n = |key: &str| stats[key].as_u64().unwrap();
        let sum: u64 = ["emitted", "filtered", "grouped", "duplicates", "cut", "failed"].iter().map(|k| n(k)).sum();
        assert_eq!(n("seen"), sum, "{shape:?}: {stats}");
        assert!(n("seen") > 0, "{shape:?}");
    }
}

#[test]
fn root_exit_code_tells_of_no_match_when_asked() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("nomatch");
    assert_eq!(netwren_in(&lab, &["sockets", "--no-owner", "proto = tcp"]).code, 0);
    assert_eq!(netwren_in(&lab, &["sockets", "--no-owner", "--exit-code", "proto = tcp"]).code, 1);
    lab.listen_tcp(1);
    assert_eq!(netwren_in(&lab, &["sockets", "--no-owner", "--exit-code", "proto = tcp"]).code, 0);
}

/// `--for` ends rounds and streams, which would otherwise run forever.
#[test]
fn root_for_ends_rounds_and_streams() {
    testkit::require_root!();
    let lab = furnished("lasts");
    lab.use_conntrack();
    let rounds = netwren_in(&lab, &["sockets", "--watch=0.1", "--for", "0.5", "-H", "-c", "proto", "state = listen"]);
    let rounds = rounds.ok();
    assert!(rounds.split("\n\n").count() > 1, "more than one round: {rounds}");
    for line in ["sockets --follow --no-owner", "flows --follow", "nat events", "home --watch=0.1"] {
        let args: Vec<&str> = line.split(' ').chain(["--for=0.2"]).collect();
        let ran = netwren_in(&lab, &args);
        assert!(matches!(ran.code, 0 | 3 | 4), "{line}: exit code {}: {}", ran.code, ran.stderr);
    }
    netwren_in(&lab, &["sockets", "--for", "1"]).says(2, &["--for needs --watch or --follow"]);
}

/// In a pipe, a table is aligned if COLUMNS is set and tab-separated otherwise; `-o tsv` is always tab-separated.
#[test]
fn root_a_pipe_is_aligned_if_columns_is_set() {
    testkit::require_root!();
    let lab = furnished("aligned");
    let run = |args: &[&str], columns: Option<&str>| {
        let mut command = lab.command(testkit::program::netwren());
        clean(&mut command).args(["sockets", "--no-owner", "proto = tcp"]).args(args);
        columns.iter().for_each(|columns| _ = command.env("COLUMNS", columns));
        Ran::of(command.output().unwrap()).ok()
    };
    let (aligned, tabs) = (run(&[], Some("200")), run(&["-o", "tsv"], Some("200")));
    assert!(!aligned.contains('\t') && aligned.lines().count() > 1, "{aligned}");
    assert_eq!(tabs, run(&[], None));
    assert!(tabs.lines().all(|line| line.contains('\t')), "{tabs}");
    let csv = run(&["-o", "csv"], None);
    assert!(csv.lines().count() > 1 && !csv.contains('\r'), "{csv:?}");
}

/// netwren reports losses on stderr and writes only rows to stdout. No message is about data for columns not requested.
#[test]
fn root_json_has_rows_alone_unless_the_statistics_are_asked_for() {
    testkit::require_root!();
    let lab = furnished("rowsalone");
    let ran = netwren_in(&lab, &["sockets", "--json"]);
    assert!(!ran.stderr.contains("containers, pods and units"), "{}", ran.stderr);
    assert!(rows(&ran.stdout).iter().all(|row| row.get("accounting").is_none()));
    let with = netwren_in(&lab, &["sockets", "--json", "--stats", "--no-owner"]);
    assert!(rows(&with.stdout).last().unwrap().get("accounting").is_some());
}

/// Messages and tables are ASCII if the locale does not use UTF-8.
#[test]
fn the_c_locale_gets_ascii() {
    for args in [&["log"][..], &["--help"], &["sockets", "--proto"], &["counters", "--for", "0.01", "--stats"]] {
        let output = command(args).env("LC_ALL", "C").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(!text.is_empty() && text.is_ascii(), "{args:?}: {}", String::from_utf8_lossy(&text));
    }
}

/// A long command says what it is doing, and Ctrl-C ends its wait between two readings like any other command.
#[test]
fn root_an_interrupted_wait_shows_what_there_is() {
    testkit::require_root!();
    let lab = furnished("interrupted");
    let mut command = lab.command(testkit::program::netwren());
    clean(&mut command).args(["counters", "--for", "600", "--changed"]).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut lines, &mut first).unwrap();
    assert_eq!(first, "netwren: comparing the counters of this host for 600 s (Ctrl-C ends it earlier)\n");
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"source"), "{}", String::from_utf8_lossy(&output.stdout));
}

/// A command that writes files first prints what it writes, where and for how long.
#[test]
fn root_long_work_says_where_it_goes() {
    testkit::require_root!();
    let lab = furnished("longwork");
    let file = |name: &str| lab.dir().join(name).to_string_lossy().into_owned();
    let (packets, rows) = (file("a.pcapng"), format!("json:{}", file("a.json")));
    for (args, says) in [
        (
            vec!["capture", "-i", "lo", "-w", &packets, "--for", "0.1"],
            format!("packets of lo into {packets}, for 0.1 s"),
        ),
        (
            vec!["nat", "events", "--to", &rows, "--for", "0.3"],
            format!("shipping rows of `nat events` to {rows}, for 0."),
        ),
    ] {
        let ran = netwren_in(&lab, &args);
        assert!(ran.stderr.contains(&says), "{args:?}: {}", ran.stderr);
    }
}
