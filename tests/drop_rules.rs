//! `netwren drops` names the rules that drop packets; the rules here really drop packets, and their counters are
//! compared.

use crate::drops::{LOOPBACK, command, counts_drops, following, is_of, parse, program_of, send_once};
use crate::going::Going;
use crate::run::{Ran, command_for_anyone, netwren_in};
use serde_json::Value;
use sys::caps::Cap;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// False if rules cannot be determined: without BPF, without nft, or before Linux 6.12.
fn names_rules() -> bool {
    counts_drops() && sys::Kernel::read_running().version() >= (6, 12)
}

macro_rules! require_rules {
    () => {
        testkit::require_root!();
        testkit::require_tool!("nft");
        if !names_rules() {
            return;
        }
    };
}

/// Starts counting in a lab; the table is printed once, at the end.
fn counting_once(lab: &Lab, args: &[&str]) -> Going<Value> {
    let going = Going::spawn(command(lab, &[&["-o", "json", "-c", COLUMNS], args].concat()), parse);
    testkit::wait_until("the program is attached", || program_of(going.child.id()).is_some());
    going
}

const COLUMNS: &str = "count,reason,rule,rule_basis,rule_candidates,rule_handle";

/// The row of packets dropped by rules.
#[track_caller]
fn the_row(going: Going<Value>) -> Value {
    let (read, ran) = going.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut rows: Vec<Value> = read.into_iter().filter(|row| is_of(row, "NETFILTER_DROP")).collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

const RULES: &str = "table inet t {\n chain i {\n type filter hook input priority 0; policy drop;\n\
                     udp dport 7 counter drop\n udp dport 8 counter drop\n tcp dport 7 drop\n\
                     meta l4proto icmp accept\n }\n}\n";

#[test]
fn root_the_rule_whose_counter_agrees_is_named() {
    require_rules!();
    let lab = Lab::new("druleagree");
    lab.nft(RULES);
    let going = counting_once(&lab, &[]);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 100);
    let row = the_row(going);
    assert_eq!(
        (&row["count"], &row["rule_basis"], &row["rule_candidates"]),
        (&100.into(), &"counter".into(), &2.into())
    );
    let text = row["rule"].as_str().unwrap();
    assert!(text.starts_with("inet t i handle ") && text.ends_with(": udp dport 7 counter drop"), "{row}");
    // No rule has counted a packet, so the policy dropped them.
    let going = counting_once(&lab, &[]);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 9), 30);
    let row = the_row(going);
    assert_eq!(
        (&row["count"], &row["rule_basis"], &row["rule"]),
        (&30.into(), &"certain".into(), &"inet t i policy drop".into())
    );
    assert!(row["rule_handle"].is_null(), "{row}");
}

#[test]
fn root_rules_that_cannot_be_distinguished_are_candidates() {
    require_rules!();
    let lab = Lab::new("drulemany");
    lab.nft(
        "table inet t {\n chain x {\n ct state new,untracked,established drop\n drop\n }\n chain i {\n\
         type filter hook input priority 0;\n udp dport 7 jump x\n }\n}\n",
    );
    let tape = lab.dir().join("rules.tape");
    let tape = tape.to_str().unwrap();
    let going = counting_once(&lab, &["--record", tape]);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 40);
    let row = the_row(going);
    assert_eq!((&row["rule_basis"], &row["rule_candidates"]), (&"candidates".into(), &2.into()), "{row}");
    assert!(row["rule"].as_str().unwrap().starts_with("one of 2: inet t x handle "), "{row}");
    assert!(row["rule_handle"].is_null(), "{row}");
    let args = ["drops", "--replay", tape, "-o", "json", "-c", COLUMNS, "reason = NETFILTER_DROP"];
    assert_eq!(parse(netwren_in(&lab, &args).ok()), row, "the recording has the rules");
}

/// A single packet has ports, which exclude some rules; rules added later are found.
#[test]
fn root_events_are_distinguished_by_their_ports() {
    require_rules!();
    let lab = Lab::new("druleev");
    lab.nft(&RULES.replace(" policy drop;", ""));
    let mut going = following(&lab, &["-c", "+rule,rule_basis", "hook = input"]);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 5);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 8), 5);
    going.read_until("ten packets", |read| read.len() >= 10);
    lab.output("nft", &["add", "rule", "inet", "t", "i", "udp", "dport", "10", "drop"]);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 10), 5);
    going.read_until("fifteen packets", |read| read.len() >= 15);
    let (read, ran) = going.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for row in &read {
        let text = row["rule"].as_str().unwrap_or_else(|| panic!("{row} {}", ran.stderr));
        assert!(text.contains(&format!(": udp dport {} ", row["dport"])), "{row}");
        let is_certain = row["rule_basis"] == "certain";
        assert!(is_certain || row["dport"] == 10, "{row}");
    }
}

/// The rules of a namespace that is newer than the run are found.
#[test]
fn root_rules_of_new_namespaces_are_found() {
    require_rules!();
    let lab = Lab::new("drulefirst");
    let mut going = following(&lab, &["--all-netns", "-c", "+netns_id,rule", "hook = input"]);
    let other = Lab::new("drulelater");
    other.nft(&RULES.replace(" policy drop;", ""));
    let inode = sys::netns::inode_of(&other.path()).unwrap();
    let is_there = |row: &&Value| row["netns_id"] == inode;
    send_once(&other, "127.0.0.1:0", (LOOPBACK, 7), 5);
    going.read_until("five packets", |read| read.iter().filter(is_there).count() >= 5);
    let (read, ran) = going.end();
    for row in read.iter().filter(is_there) {
        let rule = row["rule"].as_str().unwrap_or_else(|| panic!("{row} {}", ran.stderr));
        assert!(rule.contains(": udp dport 7 "), "{row}");
    }
}

/// Without permission to list rules the column is empty, and one message says so.
#[test]
fn root_rules_that_may_not_be_listed_are_reported() {
    require_rules!();
    let lab = Lab::new("drulebad");
    lab.nft(RULES);
    let mut child = command_for_anyone(&["drops", "--watch=0.05", "-o", "json", "-c", COLUMNS]);
    let limits = [Limit::Network(lab.path()), Limit::WithoutCaps(vec![Cap::NetAdmin, Cap::SysAdmin])];
    confine(&mut child, &limits).unwrap();
    let going: Going<Value> = Going::spawn(child, parse);
    testkit::wait_until("the program is attached", || program_of(going.child.id()).is_some());
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 20);
    let mut going = going;
    going.read_until("drops", |read| read.iter().any(|row| is_of(row, "NETFILTER_DROP")));
    let (read, ran) = going.end();
    let ran: Ran = ran;
    assert!(read.iter().filter(|row| is_of(row, "NETFILTER_DROP")).all(|row| row["rule"].is_null()), "{read:?}");
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("dropped by a rule are shown without the rule").count(), 1, "{}", ran.stderr);
}
