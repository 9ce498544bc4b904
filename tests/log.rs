//! `log` shows or counts every log record of the rules and leaves nothing bound at its end.

use crate::going::Going;
use crate::run::{Ran, clean, netwren};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::Command;
use sys::caps::Cap;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Every column except owners, because other users' processes may not be readable.
pub(crate) const OWN_COLUMNS: &str = "all,-process,-pid,-owners,-cmdline,-container,-pod,-unit";

/// A namespace whose UDP packets to port 7009 are logged to group 5, and to port 7010 to group 6; both are counted and
/// dropped.
pub(crate) fn logging(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           udp dport 7009 counter log prefix \"to five: \" group 5 drop
           udp dport 7010 counter log prefix \"a\u{1b}[31m,\" group 6 drop
         }
         }",
    );
    lab
}

pub(crate) fn command(lab: &Lab, args: &[&str]) -> Command {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).arg("log").args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

fn log(lab: &Lab, columns: &str, args: &[&str]) -> Going<String> {
    Going::past_header(command(lab, &[&["--columns", columns], args].concat()), columns, |line| line)
}

/// Sends `count` packets that a rule drops; the errors returned by the kernel are ignored.
pub(crate) fn send(lab: &Lab, to: SocketAddr, count: usize) {
    lab.run_inside(|| {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::LOCALHOST, 0).into(),
        };
        let socket = UdpSocket::bind(any).unwrap();
        for _ in 0..count {
            let _ = socket.send_to(b"0123456789", to);
        }
    });
}

pub(crate) fn to_five() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 7009).into()
}

fn to_six() -> SocketAddr {
    (Ipv6Addr::LOCALHOST, 7010).into()
}

/// The packet count of the rule for this port.
pub(crate) fn counted(lab: &Lab, port: &str) -> usize {
    let rules = lab.output("nft", &["list", "ruleset"]);
    let rule = rules.lines().find(|line| line.contains(port)).unwrap();
    rule.split_once("packets ").unwrap().1.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn root_log_shows_what_rules_log() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logshow");
    let columns = "group,prefix,hook,family,iif,oif,proto,src,dst,dport,len,ttl,payload_bytes,seq";
    let mut five = log(&lab, columns, &["--group", "5", "--latency", "10ms"]);
    let mut six = log(&lab, "group,prefix,family,dst,dport,len", &["--group", "6", "--latency", "10ms"]);
    send(&lab, to_five(), 2);
    send(&lab, to_six(), 1);
    five.read_until("two records", |lines| lines.len() >= 2);
    six.read_until("a record", |lines| !lines.is_empty());
    let line = "5\tto five: \toutput\tip\t-\tlo\tudp\t127.0.0.1\t127.0.0.1\t7009\t38\t64\t38\t";
    let (lines, ran) = five.end();
    assert_eq!(lines, [format!("{line}0"), format!("{line}1")]);
    ran.ok();
    let (lines, ran) = six.end();
    assert_eq!(lines, ["6\ta\\x1b[31m,\tip6\t::1\t7010\t58"], "escaped");
    ran.ok();
}

#[test]
fn root_log_filters_and_writes_like_any_table() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logfilter");
    let words = ["-o", "json", "--limit", "1", "--group", "5,6", "--latency", "10ms", "group = 6 and dst = ::1"];
    let mut json: Going<String> = Going::spawn(command(&lab, &words), |line| line);
    testkit::wait_until("the group is bound", || lab.log_groups().len() == 2);
    send(&lab, to_five(), 3);
    send(&lab, to_six(), 3);
    json.read_until("the object", |lines| !lines.is_empty());
    assert!(json.child.wait().unwrap().success(), "ends at its limit");
    let row: serde_json::Value = serde_json::from_str(&json.read[0]).unwrap();
    assert_eq!((&row["prefix"], &row["proto"], &row["dport"]), (&"a\u{1b}[31m,".into(), &"udp".into(), &7010.into()));
    assert_eq!((&row["oif"], &row["iif"], &row["len"]), (&"lo".into(), &serde_json::Value::Null, &58.into()));
}

/// A reader that is too slow loses records and knows the number: all records are shown or counted.
#[test]
fn root_log_counts_what_is_lost() {
    const PACKETS: usize = 30_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("loglost");
    let mut slow = log(&lab, "seq", &["--group", "5", "--buffer", "64KiB"]);
    slow.signal("-STOP");
    send(&lab, to_five(), PACKETS);
    slow.signal("-CONT");
    // A gap is noticed when the next record arrives.
    slow.read_until("what the buffer held", |lines| !lines.is_empty());
    testkit::wait_until("a record after the gap", || {
        send(&lab, to_five(), 1);
        slow.take();
        slow.read.last().is_some_and(|seq| seq.parse::<usize>().unwrap() >= PACKETS)
    });
    let (lines, ran) = slow.end();
    let sent = counted(&lab, "7009");
    let lost = sent - lines.len();
    assert!(lost > 1000, "the buffer was too large for this test: {lost} lost");
    ran.says(3, &[&format!("{lost} lost"), "records lost: the netlink buffer of their group"]);
}

/// With the default buffer nothing is lost, and records that the kernel still holds at the end are shown.
#[test]
fn root_log_drains_at_its_end() {
    const PACKETS: usize = 20_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logdrain");
    let going = log(&lab, "seq", &["--group", "5", "--latency", "10s"]);
    send(&lab, to_five(), PACKETS);
    let (lines, ran) = going.end();
    ran.ok();
    assert_eq!(lines.len(), PACKETS);
    assert!(lines.iter().enumerate().all(|(n, seq)| *seq == n.to_string()));
    assert_eq!(lab.log_groups(), [0; 0], "no group stays bound");
}

#[test]
fn root_log_replays_what_it_recorded() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logtape");
    let tape = lab.dir().join("tape").display().to_string();
    let columns = "time,group,prefix,oif,dst,dport,seq";
    let mut live = log(&lab, columns, &["--group", "5,6", "--latency", "10ms", "--record", &tape]);
    send(&lab, to_five(), 500);
    send(&lab, to_six(), 500);
    live.read_until("all", |lines| lines.len() >= 1000);
    let (lines, ran) = live.end();
    ran.ok();
    let replay = |group| netwren(&["log", "--group", group, "-H", "--columns", columns, "--replay", &tape]);
    assert!(replay("5,6").ok().lines().eq(&lines));
    assert_eq!(replay("6").ok().lines().count(), 500, "one of the groups");
    let other = replay("6,9");
    assert_eq!(other.stdout.lines().count(), 500);
    other.says(3, &["the recording holds no records of group 9"]);
    netwren(&["nat", "events", "--replay", &tape]).says(4, &["not in the recording"]);
}

#[test]
fn root_log_says_why_it_cannot() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logwhy");
    let first = log(&lab, "seq", &["--group", "3"]);
    let run = |limits: &[Limit]| {
        let mut command = command(&lab, &["--group", "3"]);
        confine(&mut command, limits).unwrap();
        Ran::of(command.output().unwrap())
    };
    let holder = format!("[{}]; log to another group as well, or end it", first.child.id());
    run(&[]).says(4, &["another program has bound group 3 (netlink port ", &holder]);
    run(&[Limit::WithoutCaps(vec![Cap::NetAdmin])]).says(4, &["operation not permitted", "netwren support"]);
    drop(first);
    netwren(&["log"]).says(2, &["log needs --group N"]);
    lab.nft("table inet t { chain o { log group 9\n log group 3\n }\n }");
    Ran::of(command(&lab, &[]).output().unwrap())
        .says(2, &["rules here log to groups 3 (inet t o), 9 (inet t o): netwren log --group 3"]);
}

/// A rule is written, applied, logs, is reported if it is expensive, and is removed again.
#[test]
fn root_log_setup_makes_a_rule_that_logs() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logsetup");
    let setup = |args: &[&str]| netwren(&[&["log", "setup", "--netns", lab.name()], args].concat());
    let words = ["--group", "5", "--hook", "output", "--match", "udp dport 7009", "--prefix", "ours: "];
    let shown = setup(&words).ok();
    assert!(shown.contains("udp dport 7009 counter log prefix \"ours: \" group 5 snaplen 128"), "{shown}");
    setup(&[&words[..], &["--apply"]].concat()).says(0, &["nothing was changed, --yes applies this rule"]);
    let wrong = ["--group", "5", "--match", "udp dprot 7009"];
    let refused = setup(&wrong);
    assert_eq!(refused.stdout, "");
    refused.says(4, &["nft refused: ", "unexpected"]);
    assert_eq!(lab.output("nft", &["list", "ruleset"]), "", "nothing was changed");
    lab.nft("table inet other { chain o { type filter hook output priority 0\n log group 5 queue-threshold 1\n }\n }");
    for _ in 0..2 {
        setup(&[&words[..], &["--apply", "--yes"]].concat())
            .says(0, &["in place in table inet netwren_log", "chain inet other o", "queue-threshold 1"]);
    }
    lab.nft("delete table inet other");
    let mut log = log(&lab, "prefix,dport", &["--group", "5", "--latency", "10ms"]);
    send(&lab, to_five(), 1);
    log.read_until("a record", |lines| !lines.is_empty());
    assert_eq!(log.end().0, ["ours: \t7009"], "applied twice, there once");
    setup(&["--undo"]).says(0, &["nothing was changed, --yes removes these rules"]);
    setup(&["--undo", "--yes"]).says(0, &["table inet netwren_log was removed"]);
    setup(&["--undo", "--yes"]).says(0, &["nothing to undo"]);
}
