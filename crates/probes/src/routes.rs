//! Next hops, routes that reject packets, and rules of policy routing.

use doctor::seen::{DropSeen, RoutingRule, RuleAction, Sample, TablesSeen};
use host::routing_rules::{self, ROUTING_RULES_MAX};
use host::{HostError, NetnsSource};
use record::rows::{CounterSource, Route, Routes, ip_proto};
use record::{Accounting, Addr, Demand, Next, Prefix, Source};

use crate::counter_window::Samples;
use crate::probe::{InNetns, ProbeReader, Round, note_error};

// include/uapi/linux/rtnetlink.h
const RT_TABLE_DEFAULT: u32 = 253;
const RT_TABLE_MAIN: u32 = 254;
const RT_TABLE_LOCAL: u32 = 255;
const RTN_UNICAST: u8 = 1;

/// Bound: next hops and refusing routes that `doctor` remembers for a namespace. Beyond: further ones are not checked,
/// counted (exit code 3). By: anyone who may add routes there.
const ROUTES_MAX: usize = 65_536;

/// Bound: routing tables that `doctor` remembers for a namespace. Beyond: further tables count as empty. By: anyone who
/// may add routes there.
const TABLES_MAX: usize = 4096;

/// Reads next hops and routes that reject packets, if packets were refused or neighbours are silent. Reads the rules of
/// policy routing if packets were refused or had no route.
pub(crate) struct RouteReader;

impl ProbeReader for RouteReader {
    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        for is_v6 in [false, true] {
            if is_refused(sample) || lacks_routes(sample, is_v6) {
                sample.around.rules.extend(read_rules(netns, is_v6, stats));
            }
        }
    }

    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let is_needed = |sample: &Sample| is_refused(sample) || !sample.around.neighbours.is_empty();
        if !samples.values().any(|sample| is_needed(sample) || sample.around.rules.iter().any(is_own)) {
            return;
        }
        let session = round.session;
        let namespaces = session.namespaces();
        let source = NetnsSource::new(session.host(), session.targets(namespaces.as_deref()));
        let mut over = 0;
        let read = source.run(&Demand::<Routes>::every_field(0), &mut |route| {
            over += add_route(samples, route);
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

/// Adds a route to the sample of its namespace; returns the number of parts beyond [`ROUTES_MAX`].
fn add_route(samples: &mut Samples, route: &Route<'_>) -> u64 {
    let Some(sample) = samples.get_mut(&Some(route.netns_id)) else { return 0 };
    let (around, mut over) = (&mut sample.around, 0);
    add_table(around.tables.get_or_insert_default(), route);
    if let Some(gateway) = route.gateway.filter(|gateway| !around.gateways.contains(gateway)) {
        if around.gateways.len() < ROUTES_MAX { around.gateways.push(gateway) } else { over += 1 }
    }
    // The kernel adds an unreachable default route where IPv6 has no other.
    if let Some(kind) = refusal(route.kind).filter(|_| route.ifindex.is_none_or(|index| index == 0) || route.dst.1 > 0)
    {
        let to = String::from_utf8_lossy(route.destination).into_owned();
        if around.refused.len() < ROUTES_MAX { around.refused.push((to, kind)) } else { over += 1 }
    }
    over
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
