//! Next hops and hosts on the local network that do not answer requests for their hardware address.

use record::Addr;
use record::rows::{Confidence, Severity};
use std::collections::BTreeSet;

use super::words::state;
use super::{Check, Findings, Sample};

/// Fewest drops with which one silent neighbour is more than a hint.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "neigh-failed",
    area: "neighbours",
    about: "A gateway, or a host of the own network, does not answer ARP or neighbour discovery.",
    rule: "A neighbour that packets were for within the window does not answer, for a second or longer. A next hop of \
           a route is critical; another one is a warning if 5 packets were dropped for it, else a hint.",
    sources: "the tracepoint kfree_skb by BPF: NEIGH_FAILED; neighbours and routes by rtnetlink",
    refuted_by: "`ip neigh show` that has the address as REACHABLE.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (around, dropped) = (&sample.around, sample.around.dropped(CHECK.id));
    let gateways: BTreeSet<Addr> = around.gateways.iter().copied().collect();
    let gateway = around.neighbours.iter().find(|one| gateways.contains(&one.addr));
    let Some(first) = gateway.or(around.neighbours.first()) else { return };
    let (what, severity) = match gateway {
        Some(_) => ("the gateway", Severity::Critical),
        None if dropped.count >= SOME => ("the neighbour", Severity::Warning),
        None => ("the neighbour", Severity::Hint),
    };
    let others = match around.neighbours.len() {
        1 => String::new(),
        all => format!(", and {} more", all - 1),
    };
    let title = format!("{what} {} on {} does not answer{others}", first.addr.unmapped(), first.iface);
    let silent = around.neighbours.iter().take(8);
    let draft = found
        .add(severity, Confidence::Certain, title)
        .object(first.addr.unmapped().to_string())
        .proof(silent.map(|one| state(format!("{} on {} without an answer", one.addr.unmapped(), one.iface), 1, None)))
        .proof(dropped.evidence())
        .remedy("ip neigh show", "shows neighbours: FAILED and INCOMPLETE ones do not answer", "")
        .remedy("", "look whether the host is up, in the same VLAN, and whether address and mask are right", "");
    match dropped.count {
        0 => draft.cost("every packet to it, and through it, is lost"),
        lost => draft.lost(lost, "packets dropped"),
    };
}
