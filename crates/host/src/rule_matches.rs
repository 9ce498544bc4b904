//! Derives from the matches of a rule (nft's JSON) which packets can pass it. Only certain conclusions are drawn: an
//! unknown match excludes no packet.

use record::Addr;
use serde_json::Value as Json;
use std::net::IpAddr;

/// EtherTypes.
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const ETH_P_ARP: u16 = 0x0806;

/// IP protocols that nft names in payloads and in `meta l4proto`, if the kernel finds them where we do: not AH, which
/// nft skips as an IPv6 header.
const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("gre", 47),
    ("esp", 50),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("sctp", 132),
    ("udplite", 136),
];

/// IPv6 headers that may come before the transport header: hop by hop, routing, fragment, AH, none, destination.
const EXTENSIONS: [u8; 6] = [0, 43, 44, 51, 59, 60];

/// Known facts about a packet; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFacts {
    /// EtherType.
    pub ethertype: Option<u16>,
    /// IP protocol.
    pub l4: Option<u8>,
    /// Source and destination address.
    pub ends: Option<(Addr, Addr)>,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
}

impl PacketFacts {
    /// The protocol, unless it may be an extension header with another header after it.
    fn transport(&self) -> Option<u8> {
        self.l4.filter(|l4| self.ethertype == Some(ETH_P_IP) || !EXTENSIONS.contains(l4))
    }
}

/// True if no such packet passes all the matches among these statements. Every packet passes unknown statements.
pub(crate) fn exclude(statements: &[Json], facts: &PacketFacts) -> bool {
    statements.iter().filter_map(|statement| statement.get("match")).any(|test| excludes(test, facts))
        || statements
            .iter()
            .filter_map(|statement| statement.get("vmap"))
            .any(|map| implies_other(member(map, "key"), facts))
}

fn excludes(test: &Json, facts: &PacketFacts) -> bool {
    let left = member(test, "left");
    let is_equal = member(test, "op") == "==";
    implies_other(left, facts) || is_equal && value_is_other(left, member(test, "right"), facts)
}

fn member<'j>(object: &'j Json, name: &str) -> &'j Json {
    object.get(name).unwrap_or(&Json::Null)
}

/// True if the packet lacks the header that is tested.
fn implies_other(left: &Json, facts: &PacketFacts) -> bool {
    let Some(payload) = left.get("payload").filter(|payload| payload.get("tunnel").is_none()) else { return false };
    let name = payload.get("protocol").and_then(Json::as_str).unwrap_or_default();
    let is_other = |ethertype| facts.ethertype.is_some_and(|known| known != ethertype);
    match name {
        "ip" => is_other(ETH_P_IP),
        "ip6" => is_other(ETH_P_IPV6),
        "arp" => is_other(ETH_P_ARP),
        name => number_of(name).is_some_and(|number| facts.transport().is_some_and(|known| known != number)),
    }
}

fn number_of(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// True if every such packet passes all the matches among these statements. The other statements must be known to
/// decide nothing.
pub(crate) fn implies(statements: &[Json], facts: &PacketFacts) -> bool {
    let passes = |statement: &Json| match statement.get("match") {
        Some(test) => {
            let left = member(test, "left");
            member(test, "op") == "==" && value_is(left, facts, &|is| must_be(member(test, "right"), is)) == Some(true)
        }
        None => ["counter", "log", "drop", "reject"].into_iter().any(|name| statement.get(name).is_some()),
    };
    statements.iter().all(passes)
}

/// True if the tested value is known, and not among the values on the right.
fn value_is_other(left: &Json, right: &Json, facts: &PacketFacts) -> bool {
    value_is(left, facts, &|is| !may_be(right, is)) == Some(true)
}

/// Compares a value with one on the right of a match; `None` if the latter is of an unknown form.
type Compare<'c> = &'c dyn Fn(&Json) -> Option<bool>;

/// Returns the decision about a tested value; `None` if the packet's value is unknown.
fn value_is(left: &Json, facts: &PacketFacts, decide: &dyn Fn(Compare<'_>) -> bool) -> Option<bool> {
    let key = |kind: &str, member: &str| left.get(kind).and_then(|of| of.get(member)).and_then(Json::as_str);
    match (key("meta", "key"), key("payload", "protocol"), key("payload", "field")) {
        (Some("l4proto"), ..) => facts.transport().map(|known| decide(&|one| is_protocol(one, known))),
        (Some("nfproto"), ..) => match facts.ethertype {
            Some(ETH_P_IP) => Some(decide(&|one| one.as_str().map(|word| word == "ipv4"))),
            Some(ETH_P_IPV6) => Some(decide(&|one| one.as_str().map(|word| word == "ipv6"))),
            _ => None,
        },
        (_, Some("ip" | "ip6"), Some(field @ ("saddr" | "daddr"))) => {
            let (src, dst) = facts.ends?;
            let end = if field == "saddr" { src } else { dst };
            Some(decide(&|one| is_address(one, end)))
        }
        (_, Some(proto @ ("tcp" | "udp" | "sctp" | "dccp" | "udplite" | "th")), Some(field @ ("sport" | "dport"))) => {
            let (sport, dport) = facts.ports?;
            let port = if field == "sport" { sport } else { dport };
            let is_proto = proto == "th" || facts.transport() == number_of(proto);
            Some(decide(&|one| is_port(one, port).map(|is_it| is_it && is_proto)))
        }
        _ => None,
    }
}

/// True if a value, or one in an anonymous set, is certainly the wanted one.
fn must_be(right: &Json, is: Compare<'_>) -> bool {
    match right.get("set") {
        Some(Json::Array(values)) => values.iter().any(|one| is(one) == Some(true)),
        Some(_) => false,
        None => is(right) == Some(true),
    }
}

/// True if a value, or one in an anonymous set, is the wanted one, or is unknown (`is` returns `None`).
fn may_be(right: &Json, is: Compare<'_>) -> bool {
    match right.get("set") {
        Some(Json::Array(values)) => values.iter().any(|one| is(one).unwrap_or(true)),
        Some(_) => true,
        None => is(right).unwrap_or(true),
    }
}

fn is_protocol(value: &Json, known: u8) -> Option<bool> {
    match value {
        Json::String(name) => number_of(name).map(|number| number == known),
        Json::Number(number) => number.as_u64().map(|number| number == u64::from(known)),
        _ => None,
    }
}

fn is_port(value: &Json, port: u16) -> Option<bool> {
    if let Some(number) = value.as_u64() {
        return Some(number == u64::from(port));
    }
    let range = value.get("range")?;
    Some((range.get(0)?.as_u64()?..=range.get(1)?.as_u64()?).contains(&port.into()))
}

/// An address of the other family counts as unknown: we show an IPv4 address inside IPv6 as IPv4.
fn is_address(value: &Json, end: Addr) -> Option<bool> {
    let (known, width) = match end {
        Addr::V4(bytes) => (u32::from_be_bytes(bytes).into(), 32),
        Addr::V6(bytes) => (u128::from_be_bytes(bytes), 128),
    };
    let parsed = |text: &Json| match (text.as_str()?.parse().ok()?, width) {
        (IpAddr::V4(address), 32) => Some(u128::from(u32::from(address))),
        (IpAddr::V6(address), 128) => Some(u128::from(address)),
        _ => None,
    };
    if value.is_string() {
        return Some(parsed(value)? == known);
    }
    if let Some(range) = value.get("range") {
        return Some((parsed(range.get(0)?)?..=parsed(range.get(1)?)?).contains(&known));
    }
    let prefix = value.get("prefix")?;
    let length = u32::try_from(prefix.get("len")?.as_u64()?).ok()?;
    let head = |address: u128| address.checked_shr(width - length.min(width)).unwrap_or(0);
    Some(head(parsed(prefix.get("addr")?)?) == head(known))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn facts() -> PacketFacts {
        let ends = Some((Addr::V4([10, 0, 0, 1]), Addr::V4([192, 0, 2, 9])));
        PacketFacts { ethertype: Some(ETH_P_IP), l4: Some(17), ends, ports: Some((5000, 53)) }
    }

    /// A match in the format of nft 1.0.6.
    fn excluded(op: &str, left: &str, right: &str, facts: &PacketFacts) -> bool {
        let text = format!("[{{\"match\":{{\"op\":\"{op}\",\"left\":{left},\"right\":{right}}}}}]");
        let statements: Vec<Json> = serde_json::from_str(&text).unwrap();
        exclude(&statements, facts)
    }

    fn payload(protocol: &str, field: &str) -> String {
        format!("{{\"payload\":{{\"protocol\":\"{protocol}\",\"field\":\"{field}\"}}}}")
    }

    #[test]
    fn what_the_packet_cannot_be_excludes_it() {
        for (op, left, right, expected) in [
            ("==", payload("udp", "dport"), "53", false),
            ("==", payload("udp", "dport"), "54", true),
            ("!=", payload("udp", "dport"), "53", false),
            ("!=", payload("tcp", "dport"), "54", true),
            ("==", payload("th", "dport"), "{\"set\":[8,{\"range\":[50,60]}]}", false),
            ("==", payload("th", "sport"), "{\"set\":[8,{\"range\":[50,60]}]}", true),
            ("==", payload("udp", "dport"), "\"@ports\"", false),
            ("==", payload("ip", "saddr"), "{\"prefix\":{\"addr\":\"10.0.0.0\",\"len\":8}}", false),
            ("==", payload("ip", "daddr"), "{\"prefix\":{\"addr\":\"10.0.0.0\",\"len\":8}}", true),
            ("==", payload("ip", "saddr"), "{\"prefix\":{\"addr\":\"0.0.0.0\",\"len\":0}}", false),
            ("==", payload("ip", "saddr"), "{\"range\":[\"10.0.0.2\",\"10.0.0.9\"]}", true),
            ("==", payload("ip", "daddr"), "\"192.0.2.9\"", false),
            ("==", payload("ip", "daddr"), "\"192.0.2.8\"", true),
            ("==", payload("ip6", "nexthdr"), "7", true),
            ("==", "{\"meta\":{\"key\":\"l4proto\"}}".into(), "{\"set\":[\"tcp\",\"udp\"]}", false),
            ("==", "{\"meta\":{\"key\":\"l4proto\"}}".into(), "\"tcp\"", true),
            ("==", "{\"meta\":{\"key\":\"nfproto\"}}".into(), "\"ipv6\"", true),
            ("in", "{\"ct\":{\"key\":\"state\"}}".into(), "\"invalid\"", false),
            ("==", payload("icmp", "type"), "8", true),
        ] {
            assert_eq!(excluded(op, &left, right, &facts()), expected, "{left} {op} {right}");
        }
    }

    #[test]
    fn what_the_packet_must_be_decides() {
        let implied = |op: &str, left: &str, right: &str, last: &str| {
            let text = format!("[{{\"match\":{{\"op\":\"{op}\",\"left\":{left},\"right\":{right}}}}},{last}]");
            implies(&serde_json::from_str::<Vec<Json>>(&text).unwrap(), &facts())
        };
        let (dport, drop) = (payload("udp", "dport"), "{\"counter\":null},{\"drop\":null}");
        assert!(implied("==", &dport, "53", drop) && implied("==", &dport, "{\"set\":[8,{\"range\":[50,60]}]}", drop));
        assert!(implied("==", &payload("ip", "saddr"), "\"10.0.0.1\"", drop));
        for (op, left, right, last) in [
            ("!=", &dport, "54", drop),
            ("==", &dport, "54", drop),
            ("==", &dport, "\"@ports\"", drop),
            ("==", &payload("tcp", "dport"), "53", drop),
            ("==", &dport, "53", "{\"limit\":{}}"),
            ("==", &"{\"meta\":{\"key\":\"iifname\"}}".to_owned(), "\"lo\"", drop),
        ] {
            assert!(!implied(op, left, right, last), "{left} {op} {right} {last}");
        }
    }

    #[test]
    fn what_is_not_known_excludes_nothing() {
        assert!(!excluded("==", &payload("udp", "dport"), "54", &PacketFacts { ports: None, ..facts() }));
        assert!(!excluded("==", &payload("tcp", "dport"), "54", &PacketFacts::default()));
        let extended = PacketFacts { ethertype: Some(ETH_P_IPV6), l4: Some(51), ends: None, ports: None };
        assert!(!excluded("==", &payload("tcp", "dport"), "54", &extended), "tcp may stand behind it");
        let inner = "{\"payload\":{\"tunnel\":\"vxlan\",\"protocol\":\"tcp\",\"field\":\"dport\"}}";
        assert!(!excluded("==", inner, "54", &PacketFacts { ports: None, ..facts() }));
    }
}
