//! Next hops and hosts on the local network that do not answer requests for their hardware address.

use record::Addr;
use record::rows::{Confidence, Evidence, Severity};

use super::silence::unexplained;
use super::words::state;
use super::{Check, FindingBuilder, Findings, Probe, Sample};
use crate::seen::{Gateway, NeighbourSeen};

/// Fewest drops per second with which a silent neighbour is more than a hint: a monitor asks once or twice.
const SOME_PER_S: f64 = 3.0;

pub(super) const CHECK: Check = Check {
    id: "neigh-failed",
    needs: &[Probe::Drops, Probe::Links, Probe::Macvlans, Probe::Neighbours, Probe::Routes],
    area: "neighbours",
    about: "A gateway, or a host of the local network, does not answer ARP or neighbour discovery.",
    rule: "A neighbour to which packets were sent within the window has not answered for a second or longer, and no \
           rule, redirect or macvlan of this host explains it. Critical for the next hop of a route, unless the \
           kernel prefers another default route; otherwise a warning if 3 packets per second to each were dropped, or \
           else a hint: monitors ask hosts that are off.",
    sources: "the tracepoint kfree_skb via BPF: NEIGH_FAILED, for IPv6 the place neigh_invalidate; neighbours and \
              routes via rtnetlink",
    refuted_by: "`ip neigh show` that lists the address as REACHABLE.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (around, dropped) = (&sample.around, sample.around.dropped(CHECK.id));
    let silent = unexplained(sample);
    let hop_of = |one: &&NeighbourSeen| around.gateway_at(one).filter(|hop| !around.is_spare(hop));
    let gateway = silent.iter().find_map(|one| Some((*one, hop_of(one)?)));
    let Some((first, hop)) = gateway.map(|(one, hop)| (one, Some(hop))).or(silent.first().map(|one| (*one, None)))
    else {
        return;
    };
    let severity = match hop {
        Some(_) => Severity::Critical,
        None => severity_of(sample, dropped.count, silent.len()),
    };
    let others = match silent.len() {
        1 => String::new(),
        all => format!(", and {} more", all - 1),
    };
    let iface = around.iface(first.ifindex);
    let what = if hop.is_some() { "the gateway" } else { "the neighbour" };
    let which = hop.map_or(String::new(), words_of);
    let title = format!("{what} {} on {iface}{which} does not answer{others}", first.addr.unmapped());
    let draft = found
        .add(severity, Confidence::Certain, title)
        .object(first.addr.unmapped().to_string())
        .proof(silent.iter().take(8).map(|one| evidence_of(sample, one)))
        .proof(dropped.evidence());
    let draft = remedies(draft, first, hop);
    match dropped.count {
        0 => draft.cost("all packets to it, and through it, are lost"),
        lost => draft.lost(lost, "packets dropped"),
    };
}

/// Returns the severity for hosts that are no gateways: a monitor asks hosts that are off once or twice a second.
pub(super) fn severity_of(sample: &Sample, dropped: u64, neighbours: usize) -> Severity {
    let wanted = SOME_PER_S * sample.seconds() * neighbours as f64;
    if dropped as f64 >= wanted { Severity::Warning } else { Severity::Hint }
}

/// Returns the neighbour as evidence.
pub(super) fn evidence_of(sample: &Sample, one: &NeighbourSeen) -> Evidence {
    let iface = sample.around.iface(one.ifindex);
    state(format!("{} on {iface} without an answer", one.addr.unmapped()), 1, None)
}

/// The part of a title about the gateway's route.
fn words_of(hop: &Gateway) -> String {
    match (hop.is_shared, hop.is_onlink) {
        (true, _) => format!(", one of several next hops of {},", hop.to),
        (_, true) => format!(", whose route to {} is `onlink`,", hop.to),
        _ => String::new(),
    }
}

fn remedies<'f>(draft: FindingBuilder<'f>, first: &NeighbourSeen, hop: Option<&Gateway>) -> FindingBuilder<'f> {
    let draft = draft.remedy("ip neigh show", "lists neighbours: those in FAILED and INCOMPLETE do not answer", "");
    let draft = match hop {
        Some(hop) if hop.is_shared && matches!(first.addr, Addr::V4(_)) => draft.remedy(
            "sysctl -w net.ipv4.fib_multipath_use_neigh=1",
            "uses only next hops that answer",
            "connections may change their next hop when one begins to answer",
        ),
        Some(hop) if hop.is_onlink => draft.remedy(
            "",
            "check the gateway's address: the kernel does not compare that of an `onlink` route with its networks",
            "",
        ),
        _ => draft,
    };
    draft.remedy("", "check that the host is up and in the same VLAN, and that address and netmask are correct", "")
}
