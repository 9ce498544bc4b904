//! Packets without a route.

use record::rows::CounterSource::{Netstat, Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::dropped::to_hosts;
use super::reach::{Reach, moved_packets};
use super::route_refuses::{TABLE_MAIN, without_route};
use super::words::state;
use super::{Check, FindingBuilder, Findings, Probe, Sample, ipsec};
use crate::seen::{DropSeen, Queue, RoutingRule, RuleAction, SendingConnection};
use record::Addr;

/// The tables of the kernel: default, main, local (include/uapi/linux/rtnetlink.h). The first is empty on most hosts.
const KERNELS: [u32; 3] = [253, 254, 255];

pub(super) const CHECK: Check = Check {
    id: "no-route",
    needs: &[Probe::Drops, Probe::Ipsec, Probe::Links, Probe::RouterAdverts, Probe::Routes, Probe::Sockets],
    area: "routing",
    about: "Packets are dropped because no route leads to their destination.",
    rule: "IpOutNoRoutes or IpExtInNoRoutes grew by at least 3; for IPv6, Ip6OutNoRoutes or Ip6InNoRoutes (without \
           multicast), which is only a hint, because programs try IPv6 even if there is none. Packets that a rule of \
           policy routing or IPsec refuses are left out, and so are those that `ra-ignored` explains. If a \
           connection has data to send from an address that this host does not have, that is the cause.",
    sources: "/proc/net/snmp, netstat, snmp6; rules and tables via rtnetlink",
    refuted_by: "`ip route get ADDRESS` that finds routes to the destinations.",
    run,
};

/// Fewest packets for a finding; with fewer, a program merely tried once.
const FEW: u64 = 3;
/// Fewest packets for more than a hint.
const SOME: u64 = 5;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (family, counters) in [
        ("IPv4", [(Snmp, "IpOutNoRoutes"), (Netstat, "IpExtInNoRoutes")]),
        ("IPv6", [(Snmp6, "Ip6OutNoRoutes"), (Snmp6, "Ip6InNoRoutes")]),
    ] {
        let is_v6 = family == "IPv6";
        let lost = match (family, &sample.around.drops) {
            ("IPv6", Some(drops)) => sample.grown(Snmp6, "Ip6OutNoRoutes") + to_hosts(drops),
            _ => counters.iter().map(|(source, name)| sample.grown(*source, name)).sum(),
        };
        // A rule that refuses packets, and an IPsec policy, have findings of their own.
        let by_rule = without_route(sample, is_v6).map_or(0, |(_, count)| count);
        let lost = lost.saturating_sub(by_rule).saturating_sub(ipsec::refused(sample));
        if lost < FEW || is_v6 && super::ra_ignored::explains(sample) {
            continue;
        }
        let severity = if family == "IPv4" && lost >= SOME { Severity::Warning } else { Severity::Hint };
        let proof = counters.map(|(source, name)| sample.evidence(source, name, None));
        let empty = empty_table(sample, is_v6);
        let gone = gone_source(sample, is_v6);
        let (confidence, why) = match &empty {
            _ if gone.is_some() => (Confidence::Likely, String::new()),
            Some((rule, _)) => {
                (Confidence::Likely, format!("; the policy routing rule `{}` leads to an empty table", rule.words()))
            }
            None if lacks_main(sample, is_v6) => {
                (Confidence::Likely, "; no policy routing rule leads all packets to the table main".to_owned())
            }
            None => (Confidence::Certain, String::new()),
        };
        let title = match gone {
            Some((addr, one)) => format!("{} sends from {addr}, which this host no longer has", one.owner),
            None => format!("{family} packets are dropped: no route leads to their destination{why}"),
        };
        let routes = empty.as_ref().map(|(_, table)| state(format!("routes in the table {table}"), 0, None));
        let draft = found
            .add(severity, confidence, title)
            .object(family)
            .proof(proof.into_iter().flatten())
            .proof(routes)
            .proof(gone.map(|(_, one)| state(format!("bytes to send of {}", one.name), one.queue, None)))
            .lost(lost, "packets dropped")
            .reach(Reach::part(lost, moved_packets(sample)), "packets");
        if let Some((addr, _)) = gone {
            draft
                .remedy(format!("netwren sockets 'local = {addr}'"), "shows the connections from this address", "")
                .remedy("", "give the address back to its interface, or let the programs connect again", "");
            continue;
        }
        remedies(draft, empty.map(|(rule, _)| rule), is_v6, lacks_main(sample, is_v6));
    }
}

fn remedies(draft: FindingBuilder<'_>, empty: Option<&RoutingRule>, is_v6: bool, lacks_main: bool) {
    let rules = if is_v6 { "ip -6 rule" } else { "ip rule" };
    let draft = draft.remedy("netwren routes 'destination = default'", "shows whether there is a default route", "");
    if empty.is_none() {
        if lacks_main {
            let command = format!("{rules} add lookup main priority 32766");
            draft.remedy(command, "adds the rule that every network namespace begins with", "");
        }
        return;
    }
    draft
        .remedy(format!("{rules} show"), "shows the rules, and so the tables that packets use", "")
        // Without the rule, packets use the same later rules as with an empty table: deleting it mends nothing.
        .remedy("", "add the missing routes to that table: find out which program should fill it", "");
}

/// Returns an address that a connection sends from although this host does not have it, and the connection. The kernel
/// finds no route for its packets. A connection whose peer acknowledges data does not count: its address is routed to
/// this host as a whole network (`ip route add local`).
fn gone_source(sample: &Sample, is_v6: bool) -> Option<(&Addr, &Queue)> {
    let is_gone = |addr: &Addr| {
        matches!(addr, Addr::V6(_)) == is_v6 && !sample.around.has_address(*addr) && !sample.around.addresses.is_empty()
    };
    let is_stuck = |addr: &Addr, now: &SendingConnection| {
        let before = sample.before.sources.get(addr).filter(|old| old.socket.identity == now.socket.identity);
        before.is_some_and(|old| old.acked.is_some() && old.acked == now.acked)
    };
    let mut all = sample.after.sources.iter().filter(|(addr, now)| is_gone(addr) && is_stuck(addr, now));
    all.next().map(|(addr, now)| (addr, &now.socket))
}

/// True if no rule of policy routing leads all packets to the main table, as one does in every new namespace.
fn lacks_main(sample: &Sample, is_v6: bool) -> bool {
    let mut rules = sample.around.rules.iter().filter(|rule| rule.is_v6 == is_v6).peekable();
    rules.peek().is_some() && !rules.any(|rule| rule.leads_all_to(TABLE_MAIN))
}

/// Returns the first rule of policy routing that leads to a table without routes, and the number of the table. Such a
/// rule is harmless if a later one leads to a route, so it explains nothing by itself.
fn empty_table(sample: &Sample, is_v6: bool) -> Option<(&RoutingRule, u32)> {
    let tables = sample.around.tables.as_ref()?;
    let lacking: Vec<&DropSeen> = sample.around.drops.iter().flatten().filter(|one| one.lacks_route()).collect();
    let is_possible = |rule: &RoutingRule| lacking.is_empty() || lacking.iter().any(|one| rule.applies_to(one));
    let leads = |rule: &'_ RoutingRule| match rule.action {
        RuleAction::Lookup(table) if !KERNELS.contains(&table) && !tables.used.contains(&(is_v6, table)) => Some(table),
        _ => None,
    };
    let mut rules = sample.around.rules.iter().filter(|rule| rule.is_v6 == is_v6 && is_possible(rule));
    rules.find_map(|rule| Some((rule, leads(rule)?)))
}
