//! `log` shows which rule logged each record.

use crate::going::Going;
use crate::log::{command, send, to_five};
use crate::run::netwren;
use testkit::netns::Lab;

const PORT: &str = "udp dport 7009";

fn log(lab: &Lab, columns: &str, args: &[&str]) -> Going<String> {
    let all = [&["--columns", columns, "--group", "5", "--latency", "10ms"], args].concat();
    Going::past_header(command(lab, &all), columns, |line| line)
}

/// A table with these rules at the output hook.
fn rules(lab: &Lab, rules: &str) {
    lab.nft(&format!("table inet t {{ chain o {{ type filter hook output priority 0\n{rules}\n }}\n }}"));
}

/// The handle of the only rule with this text.
fn handle(lab: &Lab, text: &str) -> String {
    let list = lab.output("nft", &["-a", "list", "ruleset"]);
    let line = list.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{list}"));
    line.rsplit_once(' ').unwrap().1.to_owned()
}

#[test]
fn root_log_names_the_rule() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logrule");
    rules(&lab, &format!("{PORT} counter log prefix \"to five: \" group 5 drop comment \"no \\x1b[31mtea\""));
    let columns = "direction,rule_table,rule_chain,rule_handle,rule_comment,rule";
    let mut log = log(&lab, columns, &["rule_comment ~ tea"]);
    send(&lab, to_five(), 2);
    log.read_until("two records", |lines| lines.len() >= 2);
    let (lines, ran) = log.end();
    ran.ok();
    let handle = handle(&lab, "to five");
    let text = "udp dport 7009 counter log prefix \"to five: \" group 5 drop comment";
    let expected = format!("out\tinet t\to\t{handle}\tno \\\\x1b[31mtea\t{text}");
    assert!(lines.iter().all(|line| line.starts_with(&expected)), "{lines:?} {expected}");
}

/// If two rules have the same group, prefix and hook, neither is shown, and the number of such records is reported.
#[test]
fn root_log_names_no_rule_that_may_be_another() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logtwins");
    let twin = |port: u16| format!("udp dport {port} log prefix \"x\" group 5 comment \"twins\"");
    rules(&lab, &[twin(7009), twin(7008)].join("\n"));
    let mut log = log(&lab, "rule_chain,rule_handle,rule_comment,rule", &[]);
    send(&lab, to_five(), 3);
    log.read_until("three records", |lines| lines.len() >= 3);
    let (lines, ran) = log.end();
    assert_eq!(lines, ["o\t-\ttwins\t-"; 3]);
    ran.says(0, &["records that match several rules (same group, prefix and hook): their rule is not shown (3 times)"]);
}

/// If rules are flushed and recreated while they log, no record shows the handle of a different rule.
#[test]
fn root_log_follows_rules_that_are_made_again() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    const CHANGES: usize = 32;
    let lab = Lab::new("lograce");
    let rule = |n: usize| format!("{PORT} log prefix \"x\" group 5 comment \"{n}\"");
    rules(&lab, &rule(0));
    let mut log = log(&lab, "seq,rule_handle,rule_comment", &[]);
    let (mut handles, mut sent) = (Vec::new(), Vec::<usize>::new());
    for n in 0..CHANGES {
        if n > 0 {
            lab.nft(&format!("flush chain inet t o\nadd rule inet t o {}", rule(n)));
        }
        handles.push(handle(&lab, "log prefix"));
        send(&lab, to_five(), 50);
        sent.push(sent.last().unwrap_or(&0) + 50);
        if n % 4 == 0 {
            // Most changes happen while records arrive, and some of them long after.
            testkit::wait_until("a record is named", || {
                send(&lab, to_five(), 1);
                sent[n] += 1;
                log.take();
                log.read.last().is_some_and(|line| line.ends_with(&format!("\t{n}")) && !line.contains('-'))
            });
        }
    }
    log.read_until("all records", |lines| lines.len() >= sent[CHANGES - 1]);
    let (lines, _) = log.end();
    let mut named = 0;
    for line in &lines {
        let [seq, handle, comment] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let seq = seq.parse::<usize>().unwrap();
        let n = sent.iter().position(|end| seq < *end).unwrap();
        if handle != "-" {
            assert_eq!(handle, handles[n], "{line}");
            named += 1;
        }
        if comment != "-" {
            assert_eq!(comment, n.to_string(), "{line}");
        }
    }
    assert!(named >= CHANGES / 4, "only {named} are named");
}

/// If rules change repeatedly, with thousands of rules to list each time, netwren reports that it did not look them
/// all up.
#[test]
fn root_log_says_that_rules_change_faster_than_they_are_listed() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logfast");
    rules(&lab, &format!("{PORT} log prefix \"x\" group 5"));
    let many = "tcp dport 1 ip saddr 10.0.0.1 counter accept\n".repeat(3000);
    lab.nft(&format!("table inet many {{ chain c {{\n{many}}}\n }}"));
    let mut log = log(&lab, "rule_handle", &[]);
    testkit::wait_until("a record without its rule", || {
        lab.nft("add table inet other\ndelete table inet other");
        send(&lab, to_five(), 1);
        log.take();
        log.read.iter().any(|line| line == "-")
    });
    log.end().1.says(3, &["records without their rule: rules changed too often to list them each time"]);
}

/// A recording contains the rules at that time.
#[test]
fn root_log_replays_rules() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logruletape");
    let tape = lab.dir().join("tape").display().to_string();
    rules(&lab, &format!("{PORT} log prefix \"x\" group 5 comment \"first\""));
    let columns = "seq,rule_handle,rule_comment,rule";
    let mut live = log(&lab, columns, &["--record", &tape]);
    send(&lab, to_five(), 3);
    live.read_until("three records", |lines| lines.len() >= 3);
    lab.nft(&format!("flush chain inet t o\nadd rule inet t o {PORT} log prefix \"y\" group 5 comment \"second\""));
    testkit::wait_until("a record of the other rule", || {
        send(&lab, to_five(), 1);
        live.take();
        live.read.iter().any(|line| line.contains("second"))
    });
    let (lines, _) = live.end();
    let replayed = netwren(&["log", "--group", "5", "-H", "--columns", columns, "--replay", &tape]);
    assert_eq!(replayed.stdout.lines().count(), lines.len());
    for (replayed, live) in replayed.stdout.lines().zip(&lines) {
        // Records that arrived before the rules were listed show their rule in the replay.
        assert!(replayed == live || live.ends_with("\t-\t-\t-"), "{replayed}\n{live}");
    }
}
