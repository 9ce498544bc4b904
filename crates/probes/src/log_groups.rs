//! Finds rules that log to a group without a reader.

use doctor::seen::{Moved, RuleWithoutReader, Sample};
use host::group_rules::{self, BOUND_GROUPS, GroupRule, RULES, RULES_MAX};
use record::Accounting;
use std::collections::{BTreeMap, BTreeSet};
use sys::{Errno, Host, Modules, Presence};

use crate::probe::{InNetns, ProbeReader, note_error};

/// Finds rules that log to a group without a reader at both readings.
#[derive(Default)]
pub(crate) struct LogGroupReader {
    /// Such rules at the first reading, by namespace; namespaces without them are left out.
    before: BTreeMap<u64, Vec<GroupRule>>,
}

impl ProbeReader for LogGroupReader {
    fn first(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        let unread = read_unread(netns.host(), netns.netns_id, stats);
        if !unread.is_empty() {
            self.before.insert(netns.netns_id, unread);
        }
    }

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        if let Some(before) = self.before.get(&netns.netns_id) {
            sample.around.rules_without_reader = compare(before, read_unread(netns.host(), netns.netns_id, stats));
        }
    }
}

/// Returns the rules of the calling thread's namespace whose log group has no reader.
///
/// Reads one file; if the kernel's log module is loaded, it also lists the rules, which takes some microseconds per
/// rule.
fn read_unread(host: &Host, netns_id: u64, stats: &mut Accounting) -> Vec<GroupRule> {
    let Some(bound) = read_bound(host, netns_id, stats) else { return Vec::new() };
    match if host.is_replay() { Presence::There } else { Modules::new(host).presence(RULES) } {
        Presence::There => {}
        Presence::NotLoaded => return Vec::new(),
        Presence::Unknown => {
            stats.incomplete(1, "rules that log to groups are not checked: it is unknown whether nf_tables is loaded");
            return Vec::new();
        }
    }
    let (mut rules, over) = note_error(group_rules::read(host, netns_id, None), stats).unwrap_or_default();
    if over > 0 {
        stats.incomplete(over, format!("rules that log to groups are not checked beyond the first {RULES_MAX}"));
    }
    rules.retain(|rule| !bound.contains(&rule.group));
    rules
}

/// The groups bound by a reader; `None` if no rule can log to a group, or if they cannot be read.
fn read_bound(host: &Host, netns_id: u64, stats: &mut Accounting) -> Option<BTreeSet<u16>> {
    let mut text = Vec::new();
    let read = host.bytes(&format!("{BOUND_GROUPS}@{netns_id}"), "", &mut text, |into| {
        sys::fs::read_file(&host.real_path(BOUND_GROUPS), into)
    });
    match read {
        Ok(()) => Some(String::from_utf8_lossy(&text).lines().filter_map(parse_line).collect()),
        Err(error) if [Errno::NOENT, Errno::NOT_RECORDED].contains(&error.errno) => None,
        Err(error) => {
            stats.incomplete(1, format!("log groups without a reader are not searched for: {error}"));
            None
        }
    }
}

/// Parses a line: group, the reader's port id, and how it reads.
fn parse_line(line: &str) -> Option<u16> {
    line.split_whitespace().next()?.parse().ok()
}

/// The rules of `before` that are also in the second reading. Rules that were removed or whose group now has a reader
/// are left out; a rule whose counter was reset has no previous value.
fn compare(before: &[GroupRule], now: Vec<GroupRule>) -> Vec<RuleWithoutReader> {
    let unread = |rule: GroupRule| {
        let old = before.iter().find(|old| old.is_same(&rule))?;
        let logged = rule.logged.map(|after| Moved {
            before: old.logged.filter(|old| *old <= after).and_then(|old| i64::try_from(old).ok()),
            after: i64::try_from(after).unwrap_or(i64::MAX),
        });
        let GroupRule { group, family, table, chain, handle, is_reached, .. } = rule;
        Some(RuleWithoutReader { group, family, table, chain, handle, logged, is_reached })
    };
    now.into_iter().filter_map(unread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(handle: u64, logged: Option<u64>) -> GroupRule {
        let (table, chain) = ("t".to_owned(), "c".to_owned());
        GroupRule { family: "ip", table, chain, handle, group: 5, prefix: String::new(), logged, is_reached: true }
    }

    #[test]
    fn lines_and_readings() {
        assert_eq!((parse_line("    5  20817     0 2 65535    100  1"), parse_line("")), (Some(5), None));
        let before = [rule(1, Some(3)), rule(2, None), rule(3, Some(9))];
        let found = compare(&before, vec![rule(1, Some(8)), rule(2, None), rule(3, Some(1)), rule(4, Some(7))]);
        let grown: Vec<_> = found.iter().map(|one| (one.handle, one.logged.map(|logged| logged.grown()))).collect();
        assert_eq!(grown, [(1, Some(5)), (2, None), (3, Some(0))]);
    }
}
