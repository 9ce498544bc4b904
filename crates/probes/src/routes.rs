//! Next hops, ways to peers, redirects, routes that reject packets, and rules of policy routing.

use doctor::seen::{
    DropSeen, Gateway, PathSeen, RedirectSeen, RoutingRule, RuleAction, Sample, Surroundings, TablesSeen,
};
use host::routes::{CachedRoute, cached};
use host::routing_rules::{self, ROUTING_RULES_MAX};
use host::{HostError, NetnsSource};
use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{CounterSource, Route, Routes, ip_proto};
use record::{Accounting, Addr, Demand, Next, Prefix, Source};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::counter_window::Samples;
use crate::probe::{InNetns, ProbeReader, Round, note_error};

// include/uapi/linux/rtnetlink.h
const RT_TABLE_DEFAULT: u32 = 253;
const RT_TABLE_MAIN: u32 = 254;
const RT_TABLE_LOCAL: u32 = 255;
const RTN_UNICAST: u8 = 1;
/// `RTNH_F_ONLINK`
const ONLINK: u32 = 4;

/// Bound: next hops and refusing routes that `doctor` remembers for a namespace. Beyond: further ones are not checked,
/// counted (exit code 3). By: anyone who may add routes there.
const ROUTES_MAX: usize = 65_536;

/// Bound: routing tables that `doctor` remembers for a namespace. Beyond: further tables count as empty. By: anyone who
/// may add routes there.
const TABLES_MAX: usize = 4096;

/// Reads routes, if packets were refused, neighbours are silent, or connections may wait for a permanent neighbour.
/// Reads the rules of policy routing if packets were refused or had no route.
pub(crate) struct RouteReader;

/// Next hops of a namespace by address and interface, so that each is kept once.
type Hops = BTreeMap<(Addr, u32), Gateway>;

impl ProbeReader for RouteReader {
    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        for is_v6 in [false, true] {
            if is_refused(sample) || lacks_routes(sample, is_v6) {
                sample.around.rules.extend(read_rules(netns, is_v6, stats));
            }
        }
    }

    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        for sample in samples.values_mut() {
            let peers = sample.peers_in_question();
            sample.around.paths = peers.into_iter().map(|peer| (peer, PathSeen::default())).collect();
        }
        if !samples.values().any(|sample| is_wanted(sample) || sample.around.rules.iter().any(is_own)) {
            return;
        }
        let session = round.session;
        let namespaces = session.namespaces();
        let source = NetnsSource::new(session.host(), session.targets(namespaces.as_deref()));
        let (mut over, mut hops) = (0, BTreeMap::<u64, Hops>::new());
        let read = source.run(&Demand::<Routes>::every_field(0), &mut |route| {
            if let Some(sample) = samples.get_mut(&Some(route.netns_id)) {
                over += add_hop(hops.entry(route.netns_id).or_default(), route) + add_refusal(sample, route);
                add_path(sample, route);
                add_table(sample.around.tables.get_or_insert_default(), route);
            }
            Next::More
        });
        match read {
            Ok(read) => stats.add_gaps(&read),
            Err(error) => {
                stats.incomplete(1, format!("routes are not checked: {error}"));
            }
        }
        if over > 0 {
            stats.incomplete(over, format!("routes after the first {ROUTES_MAX} next hops are not checked"));
        }
        for (netns_id, hops) in hops {
            let Some(sample) = samples.get_mut(&Some(netns_id)) else { continue };
            sample.around.gateways = hops.into_values().collect();
        }
        read_redirects(round, samples, stats);
    }
}

/// True if packets were dropped where the kernel refuses a destination.
fn is_refused(sample: &Sample) -> bool {
    sample.around.drops.iter().flatten().any(DropSeen::is_refused)
}

/// True if packets of a family had no route.
fn lacks_routes(sample: &Sample, is_v6: bool) -> bool {
    let counters = match is_v6 {
        false => [(CounterSource::Snmp, "IpOutNoRoutes"), (CounterSource::Netstat, "IpExtInNoRoutes")],
        true => [(CounterSource::Snmp6, "Ip6OutNoRoutes"), (CounterSource::Snmp6, "Ip6InNoRoutes")],
    };
    counters.into_iter().any(|(source, name)| sample.grown(source, name) > 0)
}

/// True for a rule that the kernel does not make by itself: then the tables' routes matter.
fn is_own(rule: &RoutingRule) -> bool {
    let kernels = [RT_TABLE_LOCAL, RT_TABLE_MAIN, RT_TABLE_DEFAULT].map(RuleAction::Lookup);
    !kernels.contains(&rule.action)
}

/// Reads the rules of policy routing of one family. Recordings of earlier versions do not contain them.
fn read_rules(netns: &InNetns<'_>, is_v6: bool, stats: &mut Accounting) -> Vec<RoutingRule> {
    let read = routing_rules::read(netns.host(), netns.netns_id, is_v6);
    let is_old = read.as_ref().is_err_and(HostError::is_not_recorded);
    let (rules, over) = if is_old { (Vec::new(), 0) } else { note_error(read, stats).unwrap_or_default() };
    if over > 0 {
        stats.incomplete(over, format!("rules of policy routing after the first {ROUTING_RULES_MAX} are not checked"));
    }
    let seen = |rule: routing_rules::RoutingRule| {
        Some(RoutingRule {
            is_v6,
            priority: rule.priority,
            from: Prefix::new(rule.from.0, rule.from.1)?,
            to: Prefix::new(rule.to.0, rule.to.1)?,
            proto: rule.proto.map_or("", ip_proto::name),
            dports: rule.dports,
            has_more: rule.has_more,
            action: match (rule.table, refusal(rule.action)) {
                (Some(table), _) => RuleAction::Lookup(table),
                (None, Some(kind)) => RuleAction::Refuse(kind),
                (None, None) => RuleAction::Other,
            },
            text: rule.text,
        })
    };
    rules.into_iter().filter_map(seen).collect()
}

fn is_wanted(sample: &Sample) -> bool {
    let around = &sample.around;
    let is_one_way = || around.links.iter().any(|link| sample.one_way(&link.name).is_some());
    is_refused(sample)
        || !around.neighbours.is_empty()
        || !around.paths.is_empty()
        || !around.permanent.is_empty() && is_one_way()
}

/// Reads the destinations that redirects lead through a silent neighbour without a route.
fn read_redirects(round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
    let session = round.session;
    if !samples.values().any(may_be_redirected) {
        return;
    }
    session.in_each_namespace(&mut |netns_id| {
        let Some(sample) = samples.get_mut(&Some(netns_id)).filter(|sample| may_be_redirected(sample)) else { return };
        let read = cached(session.host(), netns_id, None);
        // Recordings of earlier versions may lack one of the families.
        let read = if read.as_ref().is_err_and(HostError::is_not_recorded) { Ok(Vec::new()) } else { read };
        let read = note_error(read, stats).unwrap_or_default();
        let around = &sample.around;
        let is_dead_end = |one: &CachedRoute| {
            around.neighbours.iter().any(|silent| (silent.addr, silent.ifindex) == (one.gateway, one.ifindex))
                && !is_gateway(around, one.gateway, one.ifindex)
        };
        let seen = |one: CachedRoute| RedirectSeen { to: one.to, gateway: one.gateway, ifindex: one.ifindex };
        let seen: Vec<_> = read.into_iter().filter(is_dead_end).map(seen).collect();
        sample.around.redirects = seen;
    });
}

/// True if redirects arrived since the namespace began, and a neighbour is silent for which no route is a reason.
fn may_be_redirected(sample: &Sample) -> bool {
    let around = &sample.around;
    let arrived = [(Snmp, "IcmpInRedirects"), (Snmp6, "Icmp6InRedirects")];
    let has_redirects = arrived.iter().any(|(source, name)| sample.counter(*source, name).is_some_and(|n| n.after > 0));
    has_redirects && around.neighbours.iter().any(|one| !is_gateway(around, one.addr, one.ifindex))
}

/// True if the address is the next hop of a route.
fn is_gateway(around: &Surroundings, addr: Addr, ifindex: u32) -> bool {
    around.gateways.iter().any(|hop| (hop.addr, hop.ifindex) == (Some(addr), ifindex))
}

fn gateway(route: &Route<'_>) -> Gateway {
    Gateway {
        addr: route.gateway,
        ifindex: route.ifindex.unwrap_or(0),
        to: String::from_utf8_lossy(route.destination).into_owned(),
        metric: route.metric,
        is_shared: route.weight.is_some(),
        is_onlink: route.flags & ONLINK != 0,
    }
}

/// Adds the next hop of a route, unless the kernel prefers another route with it; returns 1 if there are too many.
fn add_hop(hops: &mut Hops, route: &Route<'_>) -> u64 {
    let Some(addr) = route.gateway else { return 0 };
    let is_full = hops.len() >= ROUTES_MAX;
    match hops.entry((addr, route.ifindex.unwrap_or(0))) {
        Entry::Vacant(_) if is_full => return 1,
        Entry::Vacant(entry) => drop(entry.insert(gateway(route))),
        Entry::Occupied(mut entry) => {
            let (is_default, was_default) = (route.dst.1 == 0, entry.get().to == "default");
            if (!is_default, route.metric) < (!was_default, entry.get().metric) {
                entry.insert(gateway(route));
            }
        }
    }
    0
}

/// Adds a route that rejects packets; returns 1 if there are too many.
fn add_refusal(sample: &mut Sample, route: &Route<'_>) -> u64 {
    // The kernel adds an unreachable default route where IPv6 has no other.
    let is_set = route.ifindex.is_none_or(|index| index == 0) || route.dst.1 > 0;
    let Some(kind) = refusal(route.kind).filter(|_| is_set) else { return 0 };
    let refused = &mut sample.around.refused;
    if refused.len() >= ROUTES_MAX {
        return 1;
    }
    refused.push((String::from_utf8_lossy(route.destination).into_owned(), kind));
    0
}

/// Keeps the route for the peers to which it is the most specific one so far.
fn add_path(sample: &mut Sample, route: &Route<'_>) {
    if sample.around.paths.is_empty() || (route.table_id, route.kind) != (RT_TABLE_MAIN, RTN_UNICAST) {
        return;
    }
    let Some(prefix) = Prefix::new(route.dst.0, route.dst.1) else { return };
    for (peer, path) in &mut sample.around.paths {
        let is_better = match path.prefix_len {
            Some(known) => (route.dst.1, path.hop.metric) > (known, route.metric),
            None => true,
        };
        if prefix.contains(*peer) && is_better {
            *path = PathSeen { prefix_len: Some(route.dst.1), hop: gateway(route) };
        }
    }
}

/// Remembers the table of a route.
fn add_table(tables: &mut TablesSeen, route: &Route<'_>) {
    let table = (matches!(route.dst.0, Addr::V6(_)), route.table_id);
    if tables.used.len() < TABLES_MAX {
        tables.used.insert(table);
    }
    if route.dst.1 == 0 && route.kind == RTN_UNICAST && tables.used.contains(&table) {
        tables.with_default.insert(table);
    }
}

/// The word for a type of route that rejects packets: RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT.
fn refusal(kind: u8) -> Option<&'static str> {
    match kind {
        6 => Some("blackhole"),
        7 => Some("unreachable"),
        8 => Some("prohibit"),
        _ => None,
    }
}
