//! Rules that log to groups, from the output of `nft -j list ruleset`.
//!
//! Excludes iptables rules that nft shows as `xt`, because the listing does not contain their arguments. (Since 1.8.8
//! iptables-nft writes NFLOG as nft's own `log`.) All text was chosen by the author of the rules.

use crate::rule_chains::{Chains, table_of, word};
use record::rows::VERDICTS;
use serde_json::Value as Json;

/// A rule with `log group N`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRule {
    /// Family and name of the table, in nft's format: `inet filter`.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// Number of the rule in its table.
    pub handle: u64,
    /// The rule's comment.
    pub comment: Option<String>,
    /// Verdict after logging, one of [`VERDICTS`]; `None` if the rule only logs.
    pub verdict: Option<&'static str>,
    /// The log group.
    pub group: u16,
    /// Prefix of its records.
    pub prefix: String,
    /// Number of records that accumulate before the kernel wakes the reader; `None` to use the reader's setting.
    pub queue_threshold: Option<u64>,
    /// Names of the hooks from which its chain is reached; `None` for any, because verdicts of a named map may lead
    /// there.
    pub hooks: Option<Vec<String>>,
}

impl LogRule {
    /// Table and chain, in nft's format: `inet filter input`.
    pub fn place(&self) -> String {
        format!("{} {}", self.table, self.chain)
    }

    /// Whether packets of this family and hook (nft's names) can reach the rule.
    pub fn can_meet(&self, family: &str, hook: &str) -> bool {
        let of_table = self.table.split(' ').next().unwrap_or_default();
        let is_family = of_table == family || of_table == "inet" && matches!(family, "inet" | "ip" | "ip6");
        is_family && self.hooks.as_ref().is_none_or(|hooks| hooks.iter().any(|one| one == hook))
    }
}

/// The rules of a listing, in its order; `None` if it is malformed.
pub fn parse(listing: &[u8]) -> Option<Vec<LogRule>> {
    let listing: Json = serde_json::from_str(&String::from_utf8_lossy(listing)).ok()?;
    let objects = listing.get("nftables")?.as_array()?;
    let chains = Chains::of(objects);
    Some(objects.iter().filter_map(|object| object.get("rule")).flat_map(|rule| of_rule(rule, &chains)).collect())
}

fn of_rule(rule: &Json, chains: &Chains) -> Vec<LogRule> {
    let statements = rule.get("expr").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let of_log = |(at, log): (usize, &Json)| {
        let group = u16::try_from(log.get("group")?.as_u64()?).ok()?;
        let (table, chain) = (table_of(rule), word(rule, "chain").to_owned());
        Some(LogRule {
            hooks: chains.hooks(&table, &chain),
            table,
            chain,
            handle: rule.get("handle").and_then(Json::as_u64).unwrap_or_default(),
            comment: rule.get("comment").and_then(Json::as_str).map(str::to_owned),
            verdict: statements.get(at..).unwrap_or_default().iter().find_map(verdict_of),
            group,
            prefix: word(log, "prefix").to_owned(),
            queue_threshold: log.get("queue-threshold").and_then(Json::as_u64),
        })
    };
    let logs = statements.iter().enumerate().filter_map(|(at, statement)| Some((at, statement.get("log")?)));
    logs.filter_map(of_log).collect()
}

/// The statement as a verdict, if it is one.
fn verdict_of(statement: &Json) -> Option<&'static str> {
    let (word, _) = statement.as_object()?.iter().next()?;
    VERDICTS.iter().find(|verdict| *verdict == word).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Output of nft 1.0.6.
    #[test]
    fn rules_by_example() {
        let listing = br#"{"nftables":[{"metainfo":{}},{"chain":{"family":"inet","table":"filter","name":"input",
            "handle":1,"type":"filter","hook":"input","prio":0}},{"rule":{"family":"inet","table":"filter",
            "chain":"input","handle":7,"comment":"no ssh","expr":[{"match":{}},{"log":{"prefix":"drop: ","group":1,
            "snaplen":128,"queue-threshold":1}},{"drop":null}]}},{"rule":{"family":"ip","table":"a","chain":"b",
            "handle":8,"expr":[{"log":{"prefix":"to the kernel's log"}},{"log":{"group":2}},{"log":null}]}}]}"#;
        let rule = LogRule {
            table: "inet filter".to_owned(),
            chain: "input".to_owned(),
            handle: 7,
            comment: Some("no ssh".to_owned()),
            verdict: Some("drop"),
            group: 1,
            prefix: "drop: ".to_owned(),
            queue_threshold: Some(1),
            hooks: Some(vec!["input".to_owned()]),
        };
        assert_eq!(rule.place(), "inet filter input");
        assert!(rule.can_meet("ip", "input") && rule.can_meet("ip6", "input"));
        assert!(!rule.can_meet("ip", "output") && !rule.can_meet("bridge", "input"));
        let other = LogRule {
            table: "ip a".to_owned(),
            chain: "b".to_owned(),
            handle: 8,
            group: 2,
            hooks: Some(Vec::new()),
            ..LogRule::default()
        };
        assert!(!other.can_meet("ip", "input"), "nothing jumps there");
        assert_eq!(parse(listing), Some(vec![rule, other]));
        assert_eq!((parse(b""), parse(b"{}"), parse(b"{\"nftables\":[]}")), (None, None, Some(Vec::new())));
    }

    #[test]
    fn hooks_follow_jumps() {
        let chain = |name: &str, hook: &str| {
            let hook = if hook.is_empty() { String::new() } else { format!(",\"hook\":\"{hook}\"") };
            format!("{{\"chain\":{{\"family\":\"ip\",\"table\":\"t\",\"name\":\"{name}\"{hook}}}}}")
        };
        let rule = |chain: &str, expr: &str| {
            format!("{{\"rule\":{{\"family\":\"ip\",\"table\":\"t\",\"chain\":\"{chain}\",\"expr\":[{expr}]}}}}")
        };
        let jump = |to: &str| format!("{{\"jump\":{{\"target\":\"{to}\"}}}}");
        let mut objects = vec![
            chain("in", "input"),
            chain("out", "output"),
            chain("a", ""),
            chain("b", ""),
            rule("in", &jump("a")),
            rule("a", &format!("{{\"vmap\":{{\"key\":1,\"data\":{{\"set\":[[23,{}]]}}}}}}", jump("b"))),
            rule("out", "{\"goto\":{\"target\":\"b\"}}"),
            rule("b", &jump("a")),
            rule("a", "{\"log\":{\"group\":1}}"),
        ];
        let hooks = |objects: &[String]| {
            let rules = parse(format!("{{\"nftables\":[{}]}}", objects.join(",")).as_bytes()).unwrap();
            rules[0].hooks.clone()
        };
        assert_eq!(hooks(&objects), Some(vec!["input".to_owned(), "output".to_owned()]), "though they jump in a ring");
        objects.push("{\"map\":{\"family\":\"ip\",\"table\":\"t\",\"name\":\"m\",\"map\":\"verdict\"}}".to_owned());
        assert_eq!(hooks(&objects), None, "whatever is in the map");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
