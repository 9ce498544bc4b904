//! Rules that log to groups, from what `nft -j list ruleset` prints.
//!
//! Rules of iptables that nft shows as `xt` are not among them: their words are not in the listing.

use serde_json::Value as Json;

/// A rule with `log group N`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRule {
    /// Family and name of the table, name of the chain, as nft writes them: `inet filter input`.
    pub chain: String,
    /// Number of the rule in its table.
    pub handle: u64,
    /// The group.
    pub group: u16,
    /// Prefix of its records.
    pub prefix: String,
    /// Records that are gathered before the kernel wakes the reader; `None`: as the reader asks.
    pub queue_threshold: Option<u64>,
}

/// The rules of a listing, in its order; `None` if it is no listing.
pub fn parse(listing: &[u8]) -> Option<Vec<LogRule>> {
    let listing: Json = serde_json::from_slice(listing).ok()?;
    let objects = listing.get("nftables")?.as_array()?;
    Some(objects.iter().filter_map(|object| object.get("rule")).flat_map(of_rule).collect())
}

fn of_rule(rule: &Json) -> Vec<LogRule> {
    let word = |name: &str| rule.get(name).and_then(Json::as_str).unwrap_or_default();
    let chain = format!("{} {} {}", word("family"), word("table"), word("chain"));
    let handle = rule.get("handle").and_then(Json::as_u64).unwrap_or_default();
    let statements = rule.get("expr").and_then(Json::as_array).into_iter().flatten();
    let logs = statements.filter_map(|statement| statement.get("log"));
    let of_log = |log: &Json| {
        let group = u16::try_from(log.get("group")?.as_u64()?).ok()?;
        let prefix = log.get("prefix").and_then(Json::as_str).unwrap_or_default().to_owned();
        let queue_threshold = log.get("queue-threshold").and_then(Json::as_u64);
        Some(LogRule { chain: chain.clone(), handle, group, prefix, queue_threshold })
    };
    logs.filter_map(of_log).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// What nft 1.0.6 prints.
    #[test]
    fn rules_by_example() {
        let listing = br#"{"nftables":[{"metainfo":{}},{"rule":{"family":"inet","table":"filter","chain":"input",
            "handle":7,"expr":[{"match":{}},{"log":{"prefix":"drop: ","group":1,"snaplen":128,"queue-threshold":1}},
            {"drop":null}]}},{"rule":{"family":"ip","table":"a","chain":"b","handle":8,
            "expr":[{"log":{"prefix":"to the kernel's log"}},{"log":{"group":2}},{"log":null}]}}]}"#;
        let rule = LogRule {
            chain: "inet filter input".to_owned(),
            handle: 7,
            group: 1,
            prefix: "drop: ".to_owned(),
            queue_threshold: Some(1),
        };
        let other = LogRule { chain: "ip a b".to_owned(), handle: 8, group: 2, ..LogRule::default() };
        assert_eq!(parse(listing), Some(vec![rule, other]));
        assert_eq!((parse(b""), parse(b"{}"), parse(b"{\"nftables\":[]}")), (None, None, Some(Vec::new())));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
