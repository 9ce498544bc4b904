//! The error of `log` without `--group`, which lists the groups that rules log to.

use host::group_rules::{self, BOUND_GROUPS, GroupRule, RULES};
use std::collections::BTreeMap;
use sys::{Host, Modules, Presence, escaped};

/// Maximum number of groups listed.
const NAMED: usize = 4;

/// The error if no rule is known.
const PLAIN: &str = "log needs --group N, the group number of the rule, as in `nft add rule … log group 1` (`nft list \
                     ruleset` shows the rules)";

/// Makes the error. With `look` it lists the rules of the calling thread's namespace, if permitted, in some
/// microseconds per rule.
pub(super) fn sentence(look: bool) -> String {
    let rules = if look { rules() } else { Vec::new() };
    of_rules(&rules).unwrap_or_else(|| PLAIN.to_owned())
}

fn rules() -> Vec<GroupRule> {
    let host = Host::live();
    if !std::path::Path::new(BOUND_GROUPS).exists() || Modules::new(&host).presence(RULES) != Presence::There {
        return Vec::new();
    }
    group_rules::read(&host, 0, None).map(|(rules, _)| rules).unwrap_or_default()
}

fn of_rules(rules: &[GroupRule]) -> Option<String> {
    let mut places: BTreeMap<u16, String> = BTreeMap::new();
    for GroupRule { group, family, table, chain, .. } in rules {
        let place = || format!("{family} {} {}", escaped(table.as_bytes()), escaped(chain.as_bytes()));
        places.entry(*group).or_insert_with(place);
    }
    let first = places.keys().next()?;
    let mut named: Vec<String> = places.iter().take(NAMED).map(|(group, place)| format!("{group} ({place})")).collect();
    if places.len() > NAMED {
        named.push("…".to_owned());
    }
    let word = if places.len() == 1 { "group" } else { "groups" };
    Some(format!("log needs --group N; rules here log to {word} {}: netwren log --group {first}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: u16, table: &str) -> GroupRule {
        GroupRule {
            family: "inet",
            table: table.to_owned(),
            chain: "o".to_owned(),
            handle: 1,
            group,
            prefix: String::new(),
            logged: None,
            is_reached: true,
        }
    }

    #[test]
    fn groups_are_named_once_with_a_place() {
        assert_eq!(of_rules(&[]), None);
        let one = of_rules(&[rule(5, "t"), rule(5, "other")]);
        let words = "log needs --group N; rules here log to group 5 (inet t o): netwren log --group 5";
        assert_eq!(one.as_deref(), Some(words));
        let many: Vec<GroupRule> = (1..7).rev().map(|group| rule(group, "a\u{1b}")).collect();
        let said = of_rules(&many).unwrap_or_default();
        assert!(said.contains(r"to groups 1 (inet a\u{1b} o), 2 ("), "{said}");
        assert!(said.ends_with("4 (inet a\\u{1b} o), …: netwren log --group 1"), "{said}");
    }
}
