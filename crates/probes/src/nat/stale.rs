//! Flows whose conntrack entry differs from what the rules of NAT say now.

use doctor::seen::{Difference, StaleFlow, Surroundings, TrackedFlow};
use host::nat_rules::{NatFlow, NatHook, NatRules, Rewrite, RewriteTarget};
use record::Addr;
use record::rows::ip_proto;
use sys::{Host, fs};

/// File with the tables of iptables-legacy, which nft does not list.
const LEGACY_TABLES: &str = "/proc/thread-self/net/ip_tables_names";

/// True if the calling thread's namespace may have NAT rules of iptables-legacy.
pub(crate) fn has_legacy_rules(host: &Host, netns_id: u64) -> bool {
    let mut text = Vec::new();
    let key = format!("{LEGACY_TABLES}@{netns_id}");
    match host.bytes(&key, "", &mut text, |into| fs::read_file(&host.real_path(LEGACY_TABLES), into)) {
        Ok(()) => String::from_utf8_lossy(&text).lines().any(|line| line == "nat"),
        Err(error) => error.errno != sys::Errno::NOENT,
    }
}

/// The flows that differ from the rules.
pub(crate) fn stale_flows(around: &Surroundings, rules: &NatRules, has_legacy: bool) -> Vec<StaleFlow> {
    let gateway = gateway_iface(around);
    let iface = |addr| around.iface_of(addr).or(gateway).map(|index| around.iface(index));
    let stale = |flow: &TrackedFlow| {
        let is_own = around.has_address(flow.client.0);
        let (iif, oif) = (iface(flow.client.0), iface(flow.server.0));
        let mut seen = NatFlow {
            l4: flow.l4,
            from: flow.client,
            to: flow.asked,
            iif: iif.as_deref().filter(|_| !is_own),
            oif: oif.as_deref().filter(|_| is_own),
            is_to_us: around.has_address(flow.asked.0),
        };
        let hook = if is_own { NatHook::Output } else { NatHook::Prerouting };
        if let Some((difference, rule)) = target_difference(flow, rules.rewrite(hook, &seen), around, has_legacy) {
            return Some(StaleFlow { flow: *flow, difference, rule });
        }
        let is_for_us = around.has_address(flow.server.0);
        (seen.to, seen.oif, seen.is_to_us) = (flow.server, oif.as_deref(), is_for_us);
        // Packets for this host do not leave it; its own may have any source.
        let is_forwarded = !is_own && !is_for_us && flow.l4 == ip_proto::UDP && !flow.is_answered;
        let rewrite = if is_forwarded { rules.rewrite(NatHook::Postrouting, &seen) } else { Rewrite::Unknown };
        let (difference, rule) = source_difference(flow, rewrite, around)?;
        Some(StaleFlow { flow: *flow, difference, rule })
    };
    around.flows.tracked.iter().chain(&around.flows.connections).filter_map(stale).collect()
}

/// The interface of all gateways; `None` if they are on several, or without gateways.
fn gateway_iface(around: &Surroundings) -> Option<u32> {
    let mut all = around.gateways.iter().filter_map(|hop| hop.addr).map(|addr| around.iface_of(addr));
    let first = all.next()??;
    all.all(|iface| iface == Some(first)).then_some(first)
}

/// Compares the destination.
fn target_difference(
    flow: &TrackedFlow,
    rewrite: Rewrite,
    around: &Surroundings,
    has_legacy: bool,
) -> Option<(Difference, String)> {
    let RewriteTarget { addrs, ports, place } = match rewrite {
        Rewrite::To(target) => target,
        // An answered flow still works. Otherwise the rule was probably removed with its server.
        Rewrite::None if flow.is_dnat && !flow.is_answered && !has_legacy => {
            return Some((Difference::NoRule, String::new()));
        }
        _ => return None,
    };
    let (server, port) = flow.server;
    let has_addr = match addrs {
        Some((first, last)) => (first..=last).contains(&server),
        None => around.has_address(server),
    };
    let (first, last) = ports.unwrap_or((flow.asked.1, flow.asked.1));
    if has_addr && (first..=last).contains(&port) {
        return None;
    }
    let host = match addrs {
        Some((first, last)) if first == last => first.to_string(),
        Some((first, last)) => format!("{first}-{last}"),
        None => "this host".to_owned(),
    };
    let range = if first == last { first.to_string() } else { format!("{first}-{last}") };
    Some((Difference::Target(format!("{host} port {range}")), place))
}

/// Compares the source.
fn source_difference(flow: &TrackedFlow, rewrite: Rewrite, around: &Surroundings) -> Option<(Difference, String)> {
    let text = |addrs: (Addr, Addr)| match addrs {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    match rewrite {
        Rewrite::Masquerade(place) if !around.has_address(flow.source) => {
            Some((Difference::Source("an address of this host".to_owned()), place))
        }
        Rewrite::To(RewriteTarget { addrs: Some(addrs), place, .. }) if !(addrs.0..=addrs.1).contains(&flow.source) => {
            Some((Difference::Source(text(addrs)), place))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use doctor::seen::{AddressSeen, LinkSeen};

    const CLIENT: Addr = Addr::V4([192, 0, 2, 10]);
    const ROUTER: Addr = Addr::V4([192, 0, 2, 1]);
    const OLD: Addr = Addr::V4([172, 17, 0, 2]);

    fn around(flow: TrackedFlow) -> Surroundings {
        let mut around = Surroundings::default();
        for (ifindex, name, addr) in [(2, "c1", ROUTER), (3, "s1", Addr::V4([172, 17, 0, 1]))] {
            around.addresses.push(AddressSeen { ifindex, addr, prefix_len: 24 });
            around.links.push(LinkSeen { index: ifindex, name: name.into(), ..LinkSeen::default() });
        }
        around.flows.tracked.push(flow);
        around
    }

    fn flow() -> TrackedFlow {
        TrackedFlow {
            l4: ip_proto::UDP,
            client: (CLIENT, 40_000),
            asked: (ROUTER, 514),
            server: (OLD, 514),
            source: CLIENT,
            is_dnat: true,
            is_snat: false,
            is_answered: false,
        }
    }

    fn differences(flow: TrackedFlow, rule: &str, has_legacy: bool) -> Vec<Difference> {
        let listing = format!(
            r#"{{"nftables":[
            {{"chain":{{"family":"ip","table":"n","name":"c","type":"nat","hook":"prerouting","prio":-100}}}},
            {{"chain":{{"family":"ip","table":"n","name":"p","type":"nat","hook":"postrouting","prio":100}}}},
            {{"rule":{{"family":"ip","table":"n","handle":4,{rule}}}}}]}}"#
        );
        let rules = NatRules::parse(listing.as_bytes()).unwrap();
        stale_flows(&around(flow), &rules, has_legacy).into_iter().map(|one| one.difference).collect()
    }

    #[test]
    fn destinations() {
        let dnat = |to: &str| {
            let iface = r#"{"match":{"op":"==","left":{"meta":{"key":"iif"}},"right":"c1"}}"#;
            format!(r#""chain":"c","expr":[{iface},{{"dnat":{{"addr":"{to}"}}}}]"#)
        };
        assert_eq!(differences(flow(), &dnat("172.17.0.2"), false), []);
        let other = [Difference::Target("172.17.0.3 port 514".to_owned())];
        assert_eq!(differences(flow(), &dnat("172.17.0.3"), false), other);
        let plain = TrackedFlow { server: (ROUTER, 514), is_dnat: false, ..flow() };
        assert_eq!(differences(plain, &dnat("172.17.0.3"), false), other, "the rule is newer");
        let none = r#""chain":"c","expr":[{"accept":null}]"#;
        assert_eq!(differences(flow(), none, false), [Difference::NoRule]);
        assert_eq!(differences(flow(), none, true), [], "iptables-legacy may have the rule");
        assert_eq!(differences(TrackedFlow { is_answered: true, ..flow() }, none, false), []);
    }

    #[test]
    fn sources() {
        let iface = r#"{"match":{"op":"==","left":{"meta":{"key":"oif"}},"right":"s1"}}"#;
        let rule = format!(r#""chain":"p","expr":[{iface},{{"masquerade":null}}]"#);
        let plain = TrackedFlow { asked: (OLD, 514), is_dnat: false, ..flow() };
        assert_eq!(
            differences(plain, &rule, false),
            [Difference::Source("an address of this host".to_owned())],
            "the rule is newer"
        );
        let translated = TrackedFlow { source: Addr::V4([172, 17, 0, 1]), is_snat: true, ..plain };
        assert_eq!(differences(translated, &rule, false), []);
        assert_eq!(differences(TrackedFlow { is_answered: true, ..plain }, &rule, false), []);
    }
}
