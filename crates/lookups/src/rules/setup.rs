//! Rules that netwren installs to log packets to a group, in a table of their own.

use crate::nft;
use host::log_rules::{self, LogRule};

/// netwren's own table: deleting it removes the rules installed here, and nothing else.
pub const LOG_TABLE: &str = "inet netwren_log";
/// The available hooks, each with its priority: before filters decide, so that packets dropped by them are seen (raw
/// for prerouting, because packets are not defragmented before -300).
pub const LOG_HOOKS: [(&str, i32); 5] =
    [("prerouting", -300), ("input", -10), ("forward", -10), ("output", -10), ("postrouting", -10)];
/// The maximum length of a prefix in bytes: NF_LOG_PREFIXLEN without the terminating NUL.
pub const PREFIX_BYTES_MAX: usize = 127;
/// Bytes to copy of each packet: all headers.
const SNAPLEN: u16 = 128;
/// A rule with a lower threshold wakes the reader so often that it costs more than the records themselves.
const THRESHOLD_MIN: u64 = 32;

/// A rule to install.
#[derive(Debug, PartialEq, Eq)]
pub struct NewLogRule {
    /// The log group.
    pub group: u16,
    /// The hook of its chain, with the priority: one of [`LOG_HOOKS`].
    pub hook: (&'static str, i32),
    /// An nft expression on one line; empty to match every packet.
    pub expression: String,
    /// The prefix of its records, without quotation marks and control characters.
    pub prefix: String,
}

impl NewLogRule {
    /// A script for nft that replaces the rule for the same group and hook.
    pub fn script(&self) -> String {
        let NewLogRule { group, hook: (hook, priority), expression, prefix } = self;
        let chain = format!("{LOG_TABLE} group{group}_{hook}");
        let blank = if expression.is_empty() { "" } else { " " };
        format!(
            "add table {LOG_TABLE}\n\
             add chain {chain} {{ type filter hook {hook} priority {priority}; policy accept; }}\n\
             flush chain {chain}\n\
             add rule {chain} {expression}{blank}counter log prefix \"{prefix}\" group {group} snaplen {SNAPLEN}\n"
        )
    }
}

/// Warnings about rules of the group that make logging expensive; empty if rules cannot be listed.
pub fn warn_of_expensive_rules(group: u16) -> Vec<String> {
    let listed = nft::list(&["-j", "list", "ruleset"]).ok();
    let rules = listed.and_then(|text| log_rules::parse(text.as_bytes())).unwrap_or_default();
    rules.iter().filter(|rule| rule.group == group).filter_map(warn).collect()
}

fn warn(rule: &LogRule) -> Option<String> {
    let threshold = rule.queue_threshold.filter(|threshold| *threshold < THRESHOLD_MIN)?;
    Some(format!(
        "the rule in chain {}, handle {}, has queue-threshold {threshold}: it wakes the reader after every {threshold} \
         records, and readers cannot change that; remove it from the rule",
        rule.place(),
        rule.handle
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written() {
        let (hook, expression, prefix) = (LOG_HOOKS[2], "tcp dport 22".to_owned(), "forward: ".to_owned());
        assert_eq!(
            NewLogRule { group: 5, hook, expression, prefix }.script(),
            "add table inet netwren_log\n\
             add chain inet netwren_log group5_forward { type filter hook forward priority -10; policy accept; }\n\
             flush chain inet netwren_log group5_forward\n\
             add rule inet netwren_log group5_forward tcp dport 22 counter log prefix \"forward: \" group 5 snaplen \
             128\n"
        );
    }
}
