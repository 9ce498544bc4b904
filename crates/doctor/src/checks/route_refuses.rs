//! Packets refused by a route or a policy routing rule of type blackhole, unreachable or prohibit.

use record::rows::CounterSource::{Netstat, Snmp, Snmp6};
use record::rows::{Confidence, Severity};
use record::{Addr, Prefix};

use super::dropped::Dropped;
use super::ipsec::is_by_ipsec;
use super::reach::Reach;
use super::words::state;
use super::{Check, FindingBuilder, Findings, Probe, Sample};
use crate::seen::{DropSeen, RoutingRule, RuleAction, is_v6};

/// Fewest packets for more than a hint.
const SOME: u64 = 5;
/// Fewest packets without a route for a finding; with fewer, a program merely tried once.
const FEW: u64 = 3;
/// RT_TABLE_MAIN, include/uapi/linux/rtnetlink.h.
pub(super) const TABLE_MAIN: u32 = 254;

pub(super) const CHECK: Check = Check {
    id: "route-refuses",
    needs: &[Probe::Drops, Probe::Ipsec, Probe::Routes],
    area: "routing",
    about: "A route, or a policy routing rule, drops packets on purpose: blackhole, unreachable or prohibit.",
    rule: "Packets were dropped where the kernel rejects a destination. The route or rule of such a type that applies \
           to the first packet is named. At least 3 packets without a route count as well if a rule refuses them: one \
           that applies to a dropped packet, or, for programs of this host, an `unreachable` rule although the main \
           table has a default route.",
    sources: "the tracepoint kfree_skb via BPF: ip_error, dst_discard, ip6_pkt_drop; IpOutNoRoutes, IpExtInNoRoutes; \
              routes and rules via rtnetlink; without XfrmOutNoStates, because IPsec discards packets at the same \
              place",
    refuted_by: "`ip route get ADDRESS` that shows a next hop.",
    run,
};

/// A route or a rule that refuses packets.
enum RouteRefusal<'s> {
    Route(&'s (String, &'static str)),
    Rule(&'s RoutingRule),
}

impl RouteRefusal<'_> {
    fn words(&self) -> String {
        match self {
            RouteRefusal::Route((to, kind)) => format!("the {kind} route to {to}"),
            RouteRefusal::Rule(rule) => format!("the policy routing rule `{}`", rule.words()),
        }
    }
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id).only(|one| !is_by_ipsec(sample, one));
    if let Some(first) = dropped.all.first() {
        let refusals = refusals(sample, first);
        // Packets under way lose their route when an interface is removed.
        let is_gone = refusals.is_empty() && first.place.starts_with("dst_discard");
        let title = match refusals.as_slice() {
            [one] => format!("{} drops packets{}", one.words(), dropped.example()),
            [] if is_gone => {
                format!("packets are discarded: their route was removed, or refuses them{}", dropped.example())
            }
            [] => format!("a route or policy routing rule drops packets{}", dropped.example()),
            _ => format!("a blackhole, unreachable or prohibit route or rule drops packets{}", dropped.example()),
        };
        let confidence = if is_gone { Confidence::Likely } else { Confidence::Certain };
        let draft = add(found, &dropped, dropped.count, &refusals, (title, confidence));
        if is_gone {
            draft.reach(Reach::Nobody, "");
        }
    }
    for is_v6 in [false, true] {
        let Some((rule, lost)) = without_route(sample, is_v6).filter(|(_, lost)| *lost >= FEW) else { continue };
        let dropped = sample.around.all_drops().only(|one| one.lacks_route() && rule.applies_to(one));
        let title = format!("the policy routing rule `{}` refuses packets{}", rule.words(), dropped.example());
        let counters = if is_v6 { ["Ip6OutNoRoutes", "Ip6InNoRoutes"] } else { ["IpOutNoRoutes", "IpExtInNoRoutes"] };
        let proof = [Snmp, Netstat, Snmp6]
            .into_iter()
            .flat_map(|source| counters.into_iter().filter_map(move |name| sample.evidence(source, name, None)));
        add(found, &dropped, lost, &[RouteRefusal::Rule(rule)], (title, Confidence::Likely)).proof(proof);
    }
}

fn add<'f>(
    found: &'f mut Findings<'_>,
    dropped: &Dropped<'_>,
    lost: u64,
    refusals: &[RouteRefusal<'_>],
    (title, confidence): (String, Confidence),
) -> FindingBuilder<'f> {
    let severity = if lost >= SOME { Severity::Warning } else { Severity::Hint };
    let shown = refusals.iter().take(4).map(|one| state(one.words(), 1, None));
    let object = match refusals {
        [RouteRefusal::Route((to, _))] => to.clone(),
        [RouteRefusal::Rule(rule)] => rule.words(),
        _ => String::new(),
    };
    let draft = found
        .add(severity, confidence, title)
        .object(object)
        .proof(dropped.evidence())
        .proof(shown)
        .lost(lost, "packets dropped");
    let draft = match refusals {
        [RouteRefusal::Rule(rule)] => draft.remedy(format!("{} show", rule.command()), "shows the rules", "").remedy(
            format!("{} del priority {}", rule.command(), rule.priority),
            "deletes the rule, if it is the only one with this number",
            "it may be there on purpose, such as to keep traffic inside a VPN",
        ),
        _ => draft
            .remedy("netwren routes 'type in (blackhole, unreachable, prohibit)'", "shows these routes", "")
            .remedy("ip rule show", "shows the policy routing rules", ""),
    };
    draft.remedy("", "if the destination should be reachable, delete the route or rule, or add a narrower one", "")
}

/// Returns the routes and rules that can have refused a packet. The route with the longest prefix decides. A packet
/// with unknown addresses may fit all of them.
fn refusals<'s>(sample: &'s Sample, one: &DropSeen) -> Vec<RouteRefusal<'s>> {
    let around = &sample.around;
    let Some((_, to)) = one.ends else { return around.refused.iter().map(RouteRefusal::Route).collect() };
    let length = |route: &(String, &'static str)| match prefix_of(&route.0, to) {
        Some(prefix) if prefix.contains(to.unmapped()) => Some(prefix.len()),
        _ => None,
    };
    let route = around.refused.iter().filter(|route| length(route).is_some()).max_by_key(|route| length(route));
    let is_refusing = |rule: &&RoutingRule| matches!(rule.action, RuleAction::Refuse(_)) && rule.applies_to(one);
    let rules = around.rules.iter().filter(|rule| rule.is_v6 == is_v6(to)).filter(is_refusing).map(RouteRefusal::Rule);
    rules.chain(route.map(RouteRefusal::Route)).collect()
}

/// The destination of a route: `default` is of the packet's family.
fn prefix_of(text: &str, to: Addr) -> Option<Prefix> {
    match text {
        "default" => Prefix::new(to.unmapped(), 0),
        text => text.parse().ok(),
    }
}

/// Returns the rule that refused packets of a family which seem to have no route, and their number.
pub(super) fn without_route(sample: &Sample, is_ipv6: bool) -> Option<(&RoutingRule, u64)> {
    let around = &sample.around;
    let refusing = || {
        let is_refusing = |rule: &&RoutingRule| matches!(rule.action, RuleAction::Refuse(_));
        around.rules.iter().filter(move |rule| rule.is_v6 == is_ipv6).filter(is_refusing)
    };
    let rule_of = |one: &DropSeen| refusing().find(|rule| rule.applies_to(one));
    let is_here = |one: &&DropSeen| one.lacks_route() && one.ends.is_some_and(|(_, to)| is_v6(to) == is_ipv6);
    let drops = || around.drops.iter().flatten().filter(is_here);
    let by_drop = drops().filter_map(|one| Some((rule_of(one)?, one.count)));
    let (mut named, mut lost) = (None, 0_u64);
    for (rule, count) in by_drop {
        (named, lost) = (named.or(Some(rule)), lost.saturating_add(count));
    }
    let (source, name) = if is_ipv6 { (Snmp6, "Ip6OutNoRoutes") } else { (Snmp, "IpOutNoRoutes") };
    let out: u64 = drops().filter(|one| one.reason == "IP_OUTNOROUTES").map(|one| one.count).sum();
    let unseen = sample.grown(source, name).saturating_sub(out);
    let has_default = around.tables.as_ref().is_some_and(|tables| tables.with_default.contains(&(is_ipv6, TABLE_MAIN)));
    let unreachable = refusing().find(|rule| rule.action == RuleAction::Refuse("unreachable"));
    if let Some(rule) = unreachable.filter(|_| has_default && unseen > 0) {
        (named, lost) = (named.or(Some(rule)), lost.saturating_add(unseen));
    }
    named.map(|rule| (rule, lost))
}
