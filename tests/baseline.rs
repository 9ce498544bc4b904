//! `netwren doctor --baseline` lists the changes since the host was recorded; an unchanged host has no rows.

use crate::run::{Ran, netwren, netwren_in};
use serde_json::Value;
use testkit::netns::Lab;

/// A server that never reads, and a sender of datagrams to it; both run for at most five minutes.
const LATER: &str = "
import socket, time
listener = socket.socket(); listener.bind(('127.0.0.1', 8085)); listener.listen(2)
reader = socket.socket(2, 2); reader.setsockopt(1, 8, 4096); reader.bind(('127.0.0.1', 9999))
sender, end = socket.socket(2, 2), time.time() + 300
while time.time() < end:
    sender.sendto(b'x' * 1000, ('127.0.0.1', 9999))
    time.sleep(0.005)
";

fn rows(ran: Ran) -> Vec<Value> {
    lines(&ran.ok_but_owners())
}

fn lines(text: &str) -> Vec<Value> {
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row.get("accounting").is_none()).collect()
}

/// The row about this thing and subject.
fn of<'r>(rows: &'r [Value], thing: &str, subject: &str) -> &'r Value {
    let is_it = |row: &&Value| row["thing"] == thing && row["subject"].as_str().unwrap().starts_with(subject);
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{thing} {subject}: {rows:#?}"))
}

#[test]
fn root_what_changed_since_the_host_was_well() {
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    // Build the program now, if necessary.
    testkit::program::netwren();
    let lab = Lab::new("drbase");
    let first = lab.spawn(
        "python3",
        &[
            "-c",
            "
import socket, time
listener = socket.socket(); listener.bind(('127.0.0.1', 8084)); listener.listen(2); time.sleep(300)",
        ],
    );
    let listens = |port: &str| !lab.output("ss", &["-Hltn", &format!("sport = :{port}")]).is_empty();
    lab.wait_until("it listens", || listens("8084"));
    let [tape, whole] = ["tape", "whole"].map(|name| lab.dir().join(name).display().to_string());
    netwren_in(&lab, &["doctor", "--for", "0.5", "--record", &tape]).ok_but_owners();
    let ran = netwren(&["record", "--for", "1", &whole]);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
    let compare = |args: &[&str]| netwren_in(&lab, &[&["doctor", "--for", "0.5", "-o", "json"], args].concat());
    assert_eq!(
        rows(compare(&["--baseline", &tape, "thing in (setting, listener) and subject != \"conntrack max\""])),
        Vec::<Value>::new()
    );
    assert_eq!(rows(compare(&["--baseline", &tape, "thing = finding and netns != null"])), Vec::<Value>::new());

    lab.run_inside(|| std::fs::write("/proc/sys/net/core/somaxconn", "77")).unwrap();
    std::process::Command::new("kill").arg(first.to_string()).status().unwrap();
    lab.spawn("python3", &["-c", LATER]);
    lab.wait_until("one has gone and one has come", || listens("8085") && !listens("8084"));
    lab.wait_until("it overflows", || {
        let text = lab.output("nstat", &["-asz", "UdpRcvbufErrors"]);
        text.split_whitespace().any(|word| word.parse::<u64>().is_ok_and(|count| count > 0))
    });
    for baseline in [&tape, &whole] {
        // A recording of the whole host may lack rows of other tests' namespaces.
        let ran = compare(&["--baseline", baseline]);
        assert!(ran.code == 0 || ran.code == 3 && baseline == &whole, "{}", ran.stderr);
        let found = lines(&ran.stdout);
        let finding = of(&found, "finding", "udp-rcvbuf");
        assert_eq!((&finding["change"], &finding["after"]), (&"new".into(), &"critical".into()));
        let setting = of(&found, "setting", "net.core.somaxconn");
        assert_eq!((&setting["before"], &setting["after"]), (&"4096".into(), &"77".into()), "{setting}");
        let settings = found.iter().filter(|row| row["thing"] == "setting" && row["subject"] == "net.core.somaxconn");
        assert_eq!(settings.count(), 1, "each change once: {found:#?}");
        let (new, gone) = (of(&found, "listener", "tcp 127.0.0.1:8085"), of(&found, "listener", "tcp 127.0.0.1:8084"));
        assert_eq!((&new["change"], &new["after"]), (&"new".into(), &"python3".into()));
        assert_eq!((&gone["change"], &gone["before"]), (&"gone".into(), &"python3".into()));
        let rate = of(&found, "rate", "snmp UdpRcvbufErrors");
        assert_eq!((&rate["before"], &rate["times"]), (&"0.0/s".into(), &Value::Null));
        assert!(!rate["meaning"].is_null());
    }
    // In reverse order: two recordings can be compared on any machine.
    let later = lab.dir().join("later").display().to_string();
    netwren_in(&lab, &["doctor", "--for", "0.5", "--record", &later]).ok_but_owners();
    let back = rows(netwren(&["doctor", "--replay", &tape, "--baseline", &later, "-o", "json"]));
    assert_eq!(of(&back, "finding", "udp-rcvbuf")["change"], "gone");
    assert_eq!(of(&back, "setting", "net.core.somaxconn")["before"], "77");
}

#[test]
fn root_a_baseline_that_tells_nothing_is_refused() {
    testkit::require_root!();
    let lab = Lab::new("drnobase");
    let tape = lab.dir().join("tape").display().to_string();
    netwren_in(&lab, &["routes", "--record", &tape]).ok();
    netwren_in(&lab, &["doctor", "--baseline", &tape]).says(4, &["the baseline cannot be used", "netwren record FILE"]);
    netwren_in(&lab, &["doctor", "--baseline", "/nowhere"]).says(4, &["no such file"]);
    netwren_in(&lab, &["doctor", "--baseline", &tape, "--exit-code"]).says(2, &["--exit-code applies to findings"]);
    let columns = netwren(&["doctor", "--baseline", "x", "--columns", "help"]).ok();
    assert!(columns.contains("subject") && !columns.contains("remedy"), "{columns}");
    // A recording of another namespace is not a baseline for this one.
    netwren_in(&lab, &["doctor", "--for", "0.1", "--record", &tape, "--all-netns"]);
    let other = Lab::new("drotherbase");
    let ran = netwren_in(&other, &["doctor", "--for", "0.1", "--baseline", &tape]);
    ran.says(3, &[&format!("network namespaces are missing in the baseline: {}", other.name())]);
}

/// The kernel gives the inode of a removed namespace to the next one, which is another namespace all the same.
#[test]
fn root_a_namespace_with_the_inode_of_a_removed_one_is_not_compared() {
    testkit::require_root!();
    let files = tempfile::tempdir().unwrap();
    let tape = files.path().join("tape").display().to_string();
    let inode = {
        let removed = Lab::new("drremoved");
        netwren_in(&removed, &["doctor", "--for", "0.1", "--record", &tape]);
        removed.run_inside(own_inode)
    };
    // Other tests make namespaces too, so the one that gets the inode need not be ours.
    let mut labs = vec![Lab::new("drreused")];
    while labs.len() < 20 && labs.last().unwrap().run_inside(own_inode) != inode {
        labs.push(Lab::new("drreused"));
    }
    let reused = labs.last().unwrap();
    if reused.run_inside(own_inode) != inode {
        eprintln!("skipped: another test got the inode of the removed namespace");
        return;
    }
    let ran = netwren_in(reused, &["doctor", "--for", "0.1", "--baseline", &tape]);
    ran.says(3, &[&format!("network namespaces are missing in the baseline: {}", reused.name())]);
}

fn own_inode() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino()
}

/// A baseline of one namespace does not apply to other namespaces, regardless of their names.
#[test]
fn root_a_baseline_of_one_namespace_is_compared_with_that_one_alone() {
    testkit::require_root!();
    let (lab, other) = (Lab::new("drone"), Lab::new("drother"));
    let [tape, all] = ["tape", "all"].map(|name| lab.dir().join(name).display().to_string());
    netwren_in(&lab, &["doctor", "--for", "0.1", "--record", &tape]);
    let _server = other.listen_tcp(1);
    netwren_in(&lab, &["doctor", "--for", "0.1", "--record", &all, "--all-netns"]);
    let ran = netwren(&["doctor", "--baseline", &tape, "--replay", &all, "-o", "json"]);
    assert_eq!(ran.code, 3);
    let said = "network namespaces are missing in the baseline: ";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let of_others = lines(&ran.stdout).into_iter().filter(|row| !row["netns"].is_null());
    let of_others: Vec<Value> = of_others.filter(|row| row["netns"] != lab.name()).collect();
    assert_eq!(of_others, Vec::<Value>::new());
}

/// `record` stores drops, so a rule that dropped packets during the recording is not a new finding.
#[test]
fn root_a_finding_that_a_recording_of_everything_proves_is_not_new() {
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    testkit::program::netwren();
    let lab = Lab::new("drdropped");
    lab.output(
        "nft",
        &["add table ip t; add chain ip t o { type filter hook output priority 0; }; \
                         add rule ip t o udp dport 5353 counter drop; \
                         add chain ip t p { type nat hook postrouting priority 100; }; add rule ip t p masquerade"],
    );
    lab.spawn("python3", &["-c", SENDS_IN_VAIN]);
    lab.wait_until("the rule drops", || lab.output("nft", &["list", "ruleset"]).contains("counter packets 1"));
    let whole = lab.dir().join("whole").display().to_string();
    let ran = netwren(&["record", "--for", "1", &whole]);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
    let replayed = netwren(&["drops", "--replay", &whole, "-o", "json", "-c", "count,rule", "netns = ", lab.name()]);
    let dropped = lines(&replayed.stdout);
    assert!(dropped[0]["rule"].as_str().unwrap().contains("udp dport 5353"), "{dropped:?}");
    assert!(dropped[0]["count"].as_u64().unwrap() > 20, "all rounds are one table: {dropped:?}");
    let compare = |baseline: &str| netwren_in(&lab, &["doctor", "--for", "0.5", "-o", "json", "--baseline", baseline]);
    let found = lines(&compare(&whole).stdout);
    assert!(!found.iter().any(|row| row["thing"] == "finding" && row["netns"] == lab.name()), "{found:#?}");
    // The doctor names the same rule as `drops`: the drop rule, not the masquerade rule.
    let found = lines(&netwren_in(&lab, &["doctor", "rule-drop", "--for", "0.5", "-o", "json"]).stdout);
    let title = found[0]["title"].as_str().unwrap();
    assert!(title.starts_with("the rule `ip t o handle ") && title.contains("udp dport 5353"), "{title}");
    assert_eq!(found[0]["remedy"][0]["command"], "nft -a list chain ip t o");
    // Advice never proposes a step that the user has already taken.
    let ran = netwren(&["doctor", "--replay", &whole, "--all-netns"]);
    assert!(!ran.stderr.contains("records everything"), "{}", ran.stderr);
}

/// Sends 200 datagrams per second for at most five minutes.
const SENDS_IN_VAIN: &str = "
import socket, time
sender, end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.time() + 300
while time.time() < end:
    try: sender.sendto(b'x', ('127.0.0.9', 5353))
    except PermissionError: pass
    time.sleep(0.005)
";
