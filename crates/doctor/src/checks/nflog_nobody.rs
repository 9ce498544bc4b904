//! Rules that log to a group without a reader.
//!
//! The kernel then makes no record and counts nothing: only the rule's own counter shows that packets matched it. A
//! rule without a counter is a hint, and only if its chain is reached and packets of its family moved.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Evidence, Severity};
use std::collections::BTreeMap;

use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::RuleWithoutReader;

pub(super) const CHECK: Check = Check {
    id: "nflog-nobody",
    needs: &[Probe::LogGroups],
    area: "firewall",
    about: "A rule logs packets to a group (NFLOG, `log group N`) that no program reads: the records are lost, and the \
            kernel does not count them.",
    rule: "At both readings no socket of this network namespace has bound the group. It is a warning if the counter of \
           a rule that logs to it grew. Without a counter it is a hint, if a chain with a hook leads to the rule and \
           packets of its family passed within the window. Rules of iptables-legacy are not checked.",
    sources: "/proc/net/netfilter/nfnetlink_log; rules and their counters via nf_tables (NFT_MSG_GETRULE)",
    refuted_by: "a line of the group in /proc/net/netfilter/nfnetlink_log of that network namespace.",
    run,
};

/// Most rules of a group that a finding names.
const SHOWN_MAX: usize = 4;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let mut groups: BTreeMap<u16, Vec<&RuleWithoutReader>> = BTreeMap::new();
    for rule in &sample.around.rules_without_reader {
        groups.entry(rule.group).or_default().push(rule);
    }
    for (group, rules) in groups {
        let counted: Vec<&&RuleWithoutReader> = rules.iter().filter(|rule| grown(rule) > 0).collect();
        if !counted.is_empty() {
            add_counted(found, group, &counted);
            continue;
        }
        let met = rules.iter().find(|rule| rule.logged.is_none() && rule.is_reached && has_packets(sample, rule));
        if let Some(rule) = met {
            add_uncounted(found, group, rule);
        }
    }
}

fn grown(rule: &RuleWithoutReader) -> u64 {
    rule.logged.map_or(0, |logged| logged.grown())
}

/// True if packets of the rule's address family were received or sent within the window.
fn has_packets(sample: &Sample, rule: &RuleWithoutReader) -> bool {
    let is_any = |source, names: [&str; 2]| names.iter().any(|name| sample.grown(source, name) > 0);
    let (four, six) =
        (|| is_any(Snmp, ["IpInReceives", "IpOutRequests"]), || is_any(Snmp6, ["Ip6InReceives", "Ip6OutRequests"]));
    match rule.family {
        "ip" => four(),
        "ip6" => six(),
        "inet" => four() || six(),
        _ => false,
    }
}

fn readers(group: u16) -> Evidence {
    state(format!("readers of group {group} in nfnetlink_log"), 0, None)
}

fn add_counted(found: &mut Findings<'_>, group: u16, rules: &[&&RuleWithoutReader]) {
    let Some(first) = rules.iter().max_by_key(|rule| grown(rule)) else { return };
    let others = match rules.len() {
        1 => String::new(),
        all => format!(", as do {} more", all - 1),
    };
    let title = format!("the rule {} logs to group {group}, which no program reads{others}", first.place());
    let evidence = rules.iter().take(SHOWN_MAX).filter_map(|rule| {
        let moved = rule.logged?;
        let counter = format!("packets of the rule {}", rule.place());
        Some(Evidence { counter, before: moved.before, after: moved.after, limit: None })
    });
    let lost = rules.iter().fold(0, |sum: u64, rule| sum.saturating_add(grown(rule)));
    let draft = found
        .add(Severity::Warning, Confidence::Certain, title)
        .object(format!("group {group}"))
        .proof(evidence)
        .proof([readers(group)])
        .lost(lost, "log records lost");
    remedies(draft, group, first);
}

fn add_uncounted(found: &mut Findings<'_>, group: u16, rule: &RuleWithoutReader) {
    let place = rule.place();
    let title = format!("the rule {place} logs to group {group}, which no program reads; the rule has no counter");
    let draft = found
        .add(Severity::Hint, Confidence::Hint, title)
        .object(format!("group {group}"))
        .proof([readers(group)])
        .cost("one record per packet that matches the rule; the kernel does not count them");
    remedies(draft, group, rule);
}

fn remedies(draft: super::FindingBuilder<'_>, group: u16, rule: &RuleWithoutReader) {
    let (table, chain) = (argument(&rule.table, "TABLE"), argument(&rule.chain, "CHAIN"));
    let (family, handle) = (rule.family, rule.handle);
    draft
        .remedy(format!("netwren log --group {group}"), "reads the group in the network namespace of the rule", "")
        .remedy("", "start the program that should read it: a reader in another network namespace receives nothing", "")
        .remedy(
            format!("nft delete rule {family} {table} {chain} handle {handle}"),
            "removes the rule, if its records are not needed",
            "also removes other actions of the rule",
        );
}
