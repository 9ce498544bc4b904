//! Rules and chains of nftables that can drop packets, from the output of `nft -j list ruleset`.
//!
//! A rule counts as able to drop unless that is ruled out: if it contains `drop` or `reject`, if the verdicts of a
//! named map may contain them, or if it contains iptables extensions that nft does not decode. All text was chosen by
//! the author of the rules.

use crate::rule_chains::{Chains, table_of, word};
use crate::rule_matches::{self, PacketFacts};
use serde_json::Value as Json;
use std::collections::HashSet;

/// A rule that can drop packets, or a chain with such a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DropRule {
    /// Family and name of the table, in nft's format: `inet filter`.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// Number of the rule in its table; `None` for the policy of the chain.
    pub handle: Option<u64>,
    /// Number of packets in its counter, if it has one before its verdict.
    pub counted: Option<u64>,
    /// True if every packet that the counter sees is dropped: only logging comes between them.
    pub counts_drops: bool,
    /// True if the rule drops only packets that it cannot process: `masquerade` without a free port, `synproxy`.
    pub drops_on_failure: bool,
    /// Names of the hooks from which its chain is reached; `None` for any, because verdicts of a named map may lead
    /// there.
    hooks: Option<Vec<String>>,
    /// The statements before its verdict; empty if the rule modifies packets.
    matches: Vec<Json>,
    /// True if every packet of its chain reaches it unless an earlier rule decides: no earlier rule returns.
    is_in_order: bool,
}

impl DropRule {
    /// Whether the rule can have dropped a packet like this at one of these hooks (nft's names).
    pub fn can_drop(&self, hooks: &[&str], facts: &PacketFacts) -> bool {
        let is_reached = |hooks: &[&str]| {
            self.hooks.as_ref().is_none_or(|reached| reached.iter().any(|hook| hooks.contains(&hook.as_str())))
        };
        let is_reached = match (self.table.split(' ').next().unwrap_or_default(), facts.ethertype) {
            ("ip", Some(ethertype)) if ethertype != 0x0800 => false,
            ("ip6", Some(ethertype)) if ethertype != 0x86dd => false,
            ("arp", ethertype) => ethertype.is_none_or(|ethertype| ethertype == 0x0806),
            // Packets in a bridge have no route from which the hook could be derived.
            ("bridge", _) => true,
            _ => is_reached(hooks),
        };
        is_reached && !rule_matches::exclude(&self.matches, facts)
    }

    /// True if it certainly drops such a packet if the packet reaches it, and every packet does that the rest of its
    /// chain, or the policy of its chain, could drop.
    pub fn must_drop(&self, facts: &PacketFacts) -> bool {
        self.is_in_order && !self.matches.is_empty() && rule_matches::implies(&self.matches, facts)
    }

    /// True if it is the same rule in another listing of the same namespace.
    pub fn is_same(&self, other: &DropRule) -> bool {
        (self.handle, &self.table, &self.chain) == (other.handle, &other.table, &other.chain)
    }
}

/// The rules and policies of a listing that can drop, in its order; `None` if it is malformed.
pub fn parse(listing: &[u8]) -> Option<Vec<DropRule>> {
    let listing: Json = serde_json::from_str(&String::from_utf8_lossy(listing)).ok()?;
    let objects = listing.get("nftables")?.as_array()?;
    let chains = Chains::of(objects);
    // Chains with a rule so far after which packets leave the order of the rules.
    let mut left: HashSet<(String, String)> = HashSet::new();
    let parsed = |object: &Json| match (object.get("rule"), object.get("chain")) {
        (Some(rule), _) => {
            let place = (table_of(rule), word(rule, "chain").to_owned());
            let dropping = of_rule(rule, &chains);
            let dropping = dropping.map(|dropping| DropRule { is_in_order: !left.contains(&place), ..dropping });
            if may_leave(rule) {
                left.insert(place);
            }
            dropping
        }
        (None, Some(chain)) => of_policy(chain),
        (None, None) => None,
    };
    Some(objects.iter().filter_map(parsed).collect())
}

/// True if a rule may send packets to the end of its chain, or continue with them elsewhere.
fn may_leave(rule: &Json) -> bool {
    let statements = rule.get("expr").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let leaves =
        |statement: &Json| ["return", "goto", "vmap", "xt"].into_iter().any(|name| statement.get(name).is_some());
    statements.iter().any(leaves)
}

fn of_policy(chain: &Json) -> Option<DropRule> {
    if word(chain, "policy") != "drop" {
        return None;
    }
    Some(DropRule {
        table: table_of(chain),
        chain: word(chain, "name").to_owned(),
        hooks: Some(vec![word(chain, "hook").to_owned()]),
        ..DropRule::default()
    })
}

fn of_rule(rule: &Json, chains: &Chains) -> Option<DropRule> {
    let statements = rule.get("expr").and_then(Json::as_array)?;
    let at = statements.iter().position(can_drop).or_else(|| target_of_iptables(statements))?;
    let before = statements.get(..at)?;
    let counter = before.iter().rposition(|statement| statement.get("counter").is_some());
    let counted = counter.and_then(|at| before.get(at)?.get("counter")?.get("packets")?.as_u64());
    let is_log = |statement: &Json| statement.get("log").is_some();
    let follows = counter.and_then(|at| before.get(at + 1..)).is_some_and(|between| between.iter().all(is_log));
    let is_verdict = |statement: &Json| statement.get("drop").is_some() || statement.get("reject").is_some();
    let is_plain = statements.get(at).is_some_and(is_verdict);
    let changes = before.iter().any(|statement| statement.get("mangle").is_some());
    let (table, chain) = (table_of(rule), word(rule, "chain").to_owned());
    Some(DropRule {
        hooks: chains.hooks(&table, &chain),
        table,
        chain,
        handle: rule.get("handle").and_then(Json::as_u64),
        counted,
        counts_drops: counted.is_some() && follows && is_plain,
        is_in_order: false,
        drops_on_failure: statements.get(at).is_some_and(drops_on_failure),
        matches: if changes { Vec::new() } else { statements.get(..=at)?.to_vec() },
    })
}

/// Statements other than verdicts that drop packets which they cannot process.
const MAY_DROP: [&str; 3] = ["masquerade", "redirect", "synproxy"];
fn drops_on_failure(statement: &Json) -> bool {
    MAY_DROP.into_iter().any(|name| statement.get(name).is_some())
}

/// Verdicts that end a rule without a drop.
const NO_DROPS: [&str; 5] = ["accept", "jump", "goto", "return", "queue"];

/// Position of the last iptables match or target in a rule without an nft verdict: it may be a target that drops.
fn target_of_iptables(statements: &[Json]) -> Option<usize> {
    let has = |name: &str| statements.iter().any(|statement| statement.get(name).is_some());
    if NO_DROPS.into_iter().any(has) {
        return None;
    }
    statements.iter().rposition(|statement| statement.get("xt").is_some())
}

/// True if a statement drops packets, or may do so.
fn can_drop(statement: &Json) -> bool {
    let Some(members) = statement.as_object() else { return true };
    let Some((name, value)) = members.iter().next() else { return false };
    match name.as_str() {
        "drop" | "reject" => true,
        // An anonymous map has its verdicts here; the verdicts of a named map can change at any time.
        "vmap" => value.get("data").is_none_or(|data| data.is_string() || has_drop(data)),
        name => MAY_DROP.contains(&name),
    }
}

/// True if it contains a `drop` verdict. serde_json limits the depth.
fn has_drop(data: &Json) -> bool {
    match data {
        Json::Array(parts) => parts.iter().any(has_drop),
        Json::Object(members) => members.iter().any(|(name, member)| name == "drop" || has_drop(member)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn listing(objects: &[&str]) -> Vec<DropRule> {
        parse(format!("{{\"nftables\":[{}]}}", objects.join(",")).as_bytes()).unwrap()
    }

    fn rule(expressions: &str) -> Option<DropRule> {
        let rule = format!(
            "{{\"rule\":{{\"family\":\"inet\",\"table\":\"t\",\"chain\":\"i\",\"handle\":8,\"expr\":[{expressions}]}}}}"
        );
        let chain = "{\"chain\":{\"family\":\"inet\",\"table\":\"t\",\"name\":\"i\",\"hook\":\"input\"}}";
        listing(&[chain, &rule]).pop()
    }

    const PORT_7: &str = "{\"match\":{\"op\":\"==\",\"left\":{\"payload\":{\"protocol\":\"udp\",\"field\":\"dport\"}},\
                          \"right\":7}}";
    const COUNTER: &str = "{\"counter\":{\"packets\":20,\"bytes\":1}}";

    /// Output of nft 1.0.6.
    #[test]
    fn rules_that_can_drop() {
        let found = rule(&format!("{PORT_7},{COUNTER},{{\"log\":null}},{{\"drop\":null}}")).unwrap();
        assert_eq!((found.table.as_str(), found.chain.as_str(), found.handle), ("inet t", "i", Some(8)));
        assert_eq!((found.counted, found.counts_drops), (Some(20), true));
        let udp = PacketFacts { ethertype: Some(0x0800), l4: Some(17), ..PacketFacts::default() };
        assert!(found.can_drop(&["input"], &udp) && !found.can_drop(&["output"], &udp));
        assert!(!found.can_drop(&["input"], &PacketFacts { l4: Some(6), ..udp }));
        assert!(!found.can_drop(&["input"], &PacketFacts { ports: Some((1, 8)), ..udp }));
        let before = rule(&format!("{COUNTER},{PORT_7},{{\"reject\":{{}}}}")).unwrap();
        assert_eq!((before.counted, before.counts_drops), (Some(20), false), "it counts others, too");
        for (expressions, expected) in [
            ("{\"accept\":null}", false),
            ("{\"vmap\":{\"key\":1,\"data\":{\"set\":[[23,{\"drop\":null}]]}}}", true),
            ("{\"vmap\":{\"key\":1,\"data\":{\"set\":[[23,{\"accept\":null}]]}}}", false),
            ("{\"vmap\":{\"key\":1,\"data\":\"@m\"}}", true),
            ("{\"masquerade\":null}", true),
            ("{\"xt\":null},{\"counter\":{\"packets\":1}},{\"xt\":null}", true),
            ("{\"xt\":null},{\"accept\":null}", false),
            ("{\"log\":{\"prefix\":\"drop\"}}", false),
        ] {
            assert_eq!(rule(expressions).is_some_and(|found| found.handle == Some(8)), expected, "{expressions}");
        }
        let changed = format!("{PORT_7},{{\"mangle\":{{}}}},{{\"drop\":null}}");
        assert!(rule(&changed).unwrap().can_drop(&["input"], &PacketFacts { ports: Some((1, 9)), ..udp }));
    }

    #[test]
    fn rules_that_must_drop() {
        let of = |first: &str| {
            let rule = |handle: u8, expressions: &str| {
                format!(
                    "{{\"rule\":{{\"family\":\"inet\",\"table\":\"t\",\"chain\":\"i\",\"handle\":{handle},\
                     \"expr\":[{expressions}]}}}}"
                )
            };
            let rules = [rule(3, first), rule(4, &format!("{PORT_7},{{\"drop\":null}}"))];
            let found = listing(&[&rules[0], &rules[1]]).pop().unwrap();
            let facts = |port| PacketFacts { l4: Some(17), ports: Some((1, port)), ..PacketFacts::default() };
            [found.must_drop(&facts(7)), found.must_drop(&facts(8))]
        };
        assert_eq!(of("{\"accept\":null}"), [true, false]);
        assert_eq!([of("{\"return\":null}"), of("{\"goto\":{\"target\":\"c\"}}")], [[false; 2]; 2]);
    }

    #[test]
    fn policies_and_families() {
        let chain = |family: &str, hook: &str| {
            format!(
                "{{\"chain\":{{\"family\":\"{family}\",\"table\":\"t\",\"name\":\"c\",\"hook\":\"{hook}\",\
                 \"policy\":\"drop\"}}}}"
            )
        };
        let can = |family: &str, ethertype: Option<u16>| {
            let facts = PacketFacts { ethertype, ..PacketFacts::default() };
            listing(&[&chain(family, "input")])[0].can_drop(&["input"], &facts)
        };
        assert!(can("ip", Some(0x0800)) && can("inet", Some(0x0800)) && can("ip", None) && can("bridge", Some(0x0800)));
        assert!(!can("ip", Some(0x86dd)) && !can("ip6", Some(0x0800)) && !can("arp", Some(0x0800)));
        let accepts = chain("ip", "input").replace("drop", "accept");
        assert_eq!(listing(&[&accepts]), []);
        assert_eq!(listing(&[&chain("ip", "input")])[0].handle, None);
        assert_eq!((parse(b""), parse(b"{}")), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
