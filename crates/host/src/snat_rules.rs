//! Rules of source NAT, from the output of `nft -j list ruleset`.
//!
//! Only the targets of rules are read, not their matches: an entry does not show the rule that created it. The rules of
//! another user's namespace are that user's text: anything unknown becomes [`SnatPorts::Unknown`], never a guess.

use record::Addr;
use record::rows::{PortRange, SnatPorts, SnatRule};
use serde_json::Value as Json;

/// Maximum number of rules: each is compared with each SNAT address and destination. A longer list counts as unknown.
///
/// Bound: rules of source NAT. Beyond: the range of ports is unknown; reported. By: the owner of a namespace, for that
/// namespace.
const RULES_MAX: usize = 1024;

/// The rules of a listing; `None` if it is malformed, or has more rules than the maximum.
pub fn parse(listing: &[u8]) -> Option<Vec<SnatRule>> {
    let listing: Json = serde_json::from_slice(listing).ok()?;
    let mut rules = Vec::new();
    for object in listing.get("nftables")?.as_array()? {
        let expressions = object.get("rule").and_then(|rule| rule.get("expr")).and_then(Json::as_array);
        for rule in expressions.into_iter().flatten().filter_map(statement) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        if rules.len() > RULES_MAX {
            return None;
        }
    }
    Some(rules)
}

/// The statement as a rule, if it rewrites sources.
fn statement(statement: &Json) -> Option<SnatRule> {
    if let Some(target) = statement.get("snat").or_else(|| statement.get("masquerade")) {
        return Some(SnatRule { addrs: target.get("addr").and_then(addresses), ports: ports(target.get("port")) });
    }
    // An iptables target: nft knows at most its name.
    let target = statement.get("xt")?;
    let name = target.get("name").and_then(Json::as_str);
    let rewrites = name.is_none_or(|name| matches!(name, "SNAT" | "MASQUERADE" | "NETMAP"));
    rewrites.then_some(SnatRule { addrs: None, ports: SnatPorts::Unknown })
}

/// Parses `"192.0.2.1"` or `{"range": [first, last]}`; `None` for a map, a prefix and anything else.
fn addresses(addr: &Json) -> Option<(Addr, Addr)> {
    let one = |addr: &Json| addr.as_str()?.parse::<Addr>().ok();
    match addr.get("range").and_then(Json::as_array).map(Vec::as_slice) {
        Some([first, last]) => Some((one(first)?, one(last)?)),
        _ => one(addr).map(|addr| (addr, addr)),
    }
}

/// Parses a missing port, a number, or `{"range": [first, last]}`.
fn ports(port: Option<&Json>) -> SnatPorts {
    let Some(port) = port else { return SnatPorts::Any };
    let one = |port: &Json| port.as_u64().and_then(|port| u16::try_from(port).ok());
    let range = match port.get("range").and_then(Json::as_array).map(Vec::as_slice) {
        Some([first, last]) => one(first).zip(one(last)),
        _ => one(port).map(|port| (port, port)),
    };
    match range {
        Some((first, last)) if first <= last => SnatPorts::In(PortRange { first, last }),
        _ => SnatPorts::Unknown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn rules(expressions: &str) -> Vec<SnatRule> {
        parse(format!("{{\"nftables\":[{{\"metainfo\":{{}}}},{{\"rule\":{{\"expr\":[{expressions}]}}}}]}}").as_bytes())
            .unwrap()
    }

    /// Output of nft 1.0.6.
    #[test]
    fn targets_by_example() {
        let addr = |text: &str| text.parse::<Addr>().unwrap();
        let one = |text| Some((addr(text), addr(text)));
        let ports = |first, last| SnatPorts::In(PortRange { first, last });
        for (written, addrs, allowed) in [
            (r#"{"snat":{"addr":"10.9.0.1","port":{"range":[20000,20009]}}}"#, one("10.9.0.1"), ports(20_000, 20_009)),
            (r#"{"snat":{"family":"ip6","addr":"2001:db8::1"}}"#, one("2001:db8::1"), SnatPorts::Any),
            (
                r#"{"snat":{"addr":{"range":["10.9.0.1","10.9.0.3"]},"port":5000}}"#,
                Some((addr("10.9.0.1"), addr("10.9.0.3"))),
                ports(5000, 5000),
            ),
            (r#"{"masquerade":null}"#, None, SnatPorts::Any),
            (r#"{"masquerade":{"port":{"range":[3,7]},"flags":"random"}}"#, None, ports(3, 7)),
            (r#"{"snat":{"addr":{"map":{"key":1}},"port":{"map":{}}}}"#, None, SnatPorts::Unknown),
            (r#"{"masquerade":{"port":{"range":[7,3]}}}"#, None, SnatPorts::Unknown),
            (r#"{"masquerade":{"port":70000}}"#, None, SnatPorts::Unknown),
            (r#"{"xt":null}"#, None, SnatPorts::Unknown),
            (r#"{"xt":{"type":"target","name":"MASQUERADE"}}"#, None, SnatPorts::Unknown),
        ] {
            assert_eq!(rules(written), [SnatRule { addrs, ports: allowed }], "{written}");
        }
        for other in [r#"{"accept":null}"#, r#"{"xt":{"type":"target","name":"LOG"}}"#, r#"{"dnat":{"port":1}}"#, "1"] {
            assert_eq!(rules(other), [], "{other}");
        }
        assert_eq!((parse(b"{}"), parse(b""), parse(b"{\"nftables\":[]}")), (None, None, Some(Vec::new())));
    }

    #[test]
    fn too_many_rules_are_none() {
        let of = |n: u32| (1..=n).map(|n| format!(r#"{{"snat":{{"port":{n}}}}}"#)).collect::<Vec<_>>().join(",");
        let listing = |n| format!("{{\"nftables\":[{{\"rule\":{{\"expr\":[{}]}}}}]}}", of(n));
        assert_eq!(parse(listing(1024).as_bytes()).unwrap().len(), 1024);
        assert_eq!(parse(listing(1025).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_text(text in "[\\[\\]{}\":,a-z0-9]{0,60}") {
            let _ = parse(text.as_bytes());
        }
    }
}
