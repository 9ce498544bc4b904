//! `log --all-netns`: groups of every namespace, each record with its own.

use crate::going::Going;
use crate::log::{counted, send, to_five};
use crate::run::clean;
use std::process::Command;
use testkit::netns::Lab;

/// A group that no other test binds: this one does so in every namespace of the machine.
const GROUP: &str = "47111";

/// Two namespaces log to the same group: every record has the namespace that it is of, and its rule.
#[test]
fn root_log_reads_every_namespace() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let labs = ["loganet", "logbnet"].map(Lab::new);
    for lab in &labs {
        lab.nft(&format!(
            "table inet t {{ chain o {{ type filter hook output priority 0
               udp dport 7009 counter log prefix \"all: \" group {GROUP} drop comment \"of {}\"
             }}
             }}",
            lab.name()
        ));
    }
    let names = labs.each_ref().map(|lab| lab.name().to_owned());
    let filter = format!("netns in ({}, {})", names[0], names[1]);
    let mut command = Command::new(testkit::program::netwren());
    let columns = "netns,rule_comment,seq";
    clean(&mut command).args(["log", "--all-netns", "--group", GROUP, "--latency", "10ms", "--columns", columns]);
    command.arg(&filter);
    let mut log: Going<String> = Going::past_header(command, columns, |line| line);
    for (lab, count) in labs.iter().zip([30, 50]) {
        send(lab, to_five(), count);
    }
    log.read_until("all records", |lines| lines.len() >= 80);
    let (lines, ran) = log.end();
    for (lab, name) in labs.iter().zip(&names) {
        let of_it: Vec<&String> = lines.iter().filter(|line| line.starts_with(&format!("{name}\t"))).collect();
        assert_eq!(of_it.len(), counted(lab, "7009"), "{}", ran.stderr);
        let is_right = |(n, line): (usize, &&String)| **line == format!("{name}\tof {name}\t{n}");
        assert!(of_it.iter().enumerate().all(is_right), "{of_it:?}");
    }
    assert!(ran.stderr.contains("made from now on are not read"), "{}", ran.stderr);
    for lab in &labs {
        assert_eq!(lab.output("cat", &["/proc/net/netfilter/nfnetlink_log"]), "", "no group stays bound");
    }
}
