//! Packets dropped by a tc or XDP program on an interface.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};

/// Fewest drops for more than a hint.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "tc-xdp-drop",
    needs: &[Probe::Drops, Probe::Links],
    area: "firewall",
    about: "A tc filter, or a BPF program on an interface or cgroup, drops packets.",
    rule: "Packets were dropped with the reasons TC_INGRESS, TC_EGRESS, XDP or BPF_CGROUP_EGRESS; 5 or more are a \
           warning if they are 10 % of the interface's packets, because a filter is there to drop some.",
    sources: "the tracepoint kfree_skb via BPF; XDP programs that run in the driver drop packets before it",
    refuted_by: "a program that should drop them, such as a policer.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    let Some(first) = dropped.all.first() else { return };
    let severity = if dropped.count >= SOME { Severity::Warning } else { Severity::Hint };
    let who = match first.reason.as_str() {
        "XDP" => "an XDP program",
        "BPF_CGROUP_EGRESS" => "a cgroup's BPF program",
        "TC_EGRESS" => "a tc egress filter",
        _ => "a tc ingress filter",
    };
    let iface = sample.around.iface(first.ifindex);
    let of_iface = |name| sample.objects(Iface, name).find(|(other, _)| *other == iface.as_bytes());
    let moved =
        ["rx_packets", "tx_packets"].into_iter().filter_map(of_iface).map(|(_, moved)| moved.grown()).sum::<u64>();
    let on = if iface.is_empty() { String::new() } else { format!(" on {iface}") };
    found
        .add(severity, Confidence::Certain, format!("{who}{on} drops packets{}", dropped.example()))
        .object(iface)
        .proof(dropped.evidence())
        .lost(dropped.count, "packets dropped")
        .reach(Reach::part(dropped.count, moved.saturating_add(dropped.count)).or_more_than(10), "packets")
        .remedy("bpftool net show", "shows the BPF programs of interfaces", "")
        .remedy("tc -s filter show dev IFACE ingress", "shows the filters of an interface with their drops", "");
}
