//! The error of `log` without `--group`, which lists the groups that rules log to.

use std::collections::BTreeMap;

/// Maximum number of groups listed.
const NAMED_GROUPS_MAX: usize = 4;

/// The error if no rule is known.
const PLAIN: &str = "log needs --group N, the group number of the rule, as in `nft add rule … log group 1` (`nft list \
                     ruleset` shows the rules)";

/// Makes the error from the groups that rules log to, each with the place of a rule.
pub(super) fn describe(groups: &BTreeMap<u16, String>) -> String {
    let Some(first) = groups.keys().next() else { return PLAIN.to_owned() };
    let named = groups.iter().take(NAMED_GROUPS_MAX).map(|(group, place)| format!("{group} ({place})"));
    let mut named: Vec<String> = named.collect();
    if groups.len() > NAMED_GROUPS_MAX {
        named.push("…".to_owned());
    }
    let word = if groups.len() == 1 { "group" } else { "groups" };
    format!("log needs --group N; rules here log to {word} {}: netwren log --group {first}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_with_a_place() {
        let groups = |numbers: std::ops::Range<u16>| numbers.map(|group| (group, "inet t o".to_owned())).collect();
        assert_eq!(describe(&groups(0..0)), PLAIN);
        let one = "log needs --group N; rules here log to group 5 (inet t o): netwren log --group 5";
        assert_eq!(describe(&groups(5..6)), one);
        let said = describe(&groups(1..7));
        assert!(said.contains("to groups 1 (inet t o), 2 ("), "{said}");
        assert!(said.ends_with("4 (inet t o), …: netwren log --group 1"), "{said}");
    }
}
