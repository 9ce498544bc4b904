//! Next hops and hosts on the local network that do not answer requests for their hardware address.

use record::Addr;
use record::rows::{Confidence, Severity};
use std::collections::BTreeSet;

use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Fewest drops per second with which a silent neighbour is more than a hint: a monitor asks once or twice.
const SOME_PER_S: f64 = 3.0;

pub(super) const CHECK: Check = Check {
    id: "neigh-failed",
    needs: &[Probe::Drops, Probe::Links, Probe::Neighbours, Probe::Routes],
    area: "neighbours",
    about: "A gateway, or a host of the local network, does not answer ARP or neighbour discovery.",
    rule: "A neighbour to which packets were sent within the window has not answered for a second or longer. Critical \
           for the next hop of a route; otherwise a warning if 3 packets per second to each were dropped, or else a \
           hint: monitors ask hosts that are off.",
    sources: "the tracepoint kfree_skb via BPF: NEIGH_FAILED; neighbours and routes via rtnetlink",
    refuted_by: "`ip neigh show` that lists the address as REACHABLE.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (around, dropped) = (&sample.around, sample.around.dropped(CHECK.id));
    let gateways: BTreeSet<Addr> = around.gateways.iter().copied().collect();
    let gateway = around.neighbours.iter().find(|one| gateways.contains(&one.addr));
    let Some(first) = gateway.or(around.neighbours.first()) else { return };
    let wanted = SOME_PER_S * sample.seconds() * around.neighbours.len() as f64;
    let (what, severity) = match gateway {
        Some(_) => ("the gateway", Severity::Critical),
        None if dropped.count as f64 >= wanted => ("the neighbour", Severity::Warning),
        None => ("the neighbour", Severity::Hint),
    };
    let others = match around.neighbours.len() {
        1 => String::new(),
        all => format!(", and {} more", all - 1),
    };
    let iface = around.iface(first.ifindex);
    let title = format!("{what} {} on {iface} does not answer{others}", first.addr.unmapped());
    let silent = around.neighbours.iter().take(8);
    let draft = found
        .add(severity, Confidence::Certain, title)
        .object(first.addr.unmapped().to_string())
        .proof(silent.map(|one| {
            let iface = around.iface(one.ifindex);
            state(format!("{} on {iface} without an answer", one.addr.unmapped()), 1, None)
        }))
        .proof(dropped.evidence())
        .remedy("ip neigh show", "lists neighbours: those in FAILED and INCOMPLETE do not answer", "")
        .remedy("", "check that the host is up and in the same VLAN, and that address and netmask are correct", "");
    match dropped.count {
        0 => draft.cost("all packets to it, and through it, are lost"),
        lost => draft.lost(lost, "packets dropped"),
    };
}
