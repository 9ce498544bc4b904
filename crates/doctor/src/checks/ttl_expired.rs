//! Packets whose hop limit is used up.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding: more than traceroute sends in a window.
const SOME: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "ttl-expired",
    needs: &[Probe::Drops],
    area: "routing",
    about: "Packets exceed their hop limit: they are in a routing loop, or start with a limit that is too small.",
    rule: "At least 10 packets to be forwarded had no hop left (dropped in ip_forward or ip6_forward; without such \
           counts, IcmpOutTimeExcds or Icmp6OutTimeExcds grew), or as many ICMP messages report this from the path.",
    sources: "the tracepoint kfree_skb via BPF; /proc/net/snmp, snmp6: TimeExcds, InHdrErrors",
    refuted_by: "a running traceroute, or no router twice in `traceroute -n ADDRESS`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    let told = sample.grown(Snmp, "IcmpOutTimeExcds") + sample.grown(Snmp6, "Icmp6OutTimeExcds");
    let heard = sample.grown(Snmp, "IcmpInTimeExcds") + sample.grown(Snmp6, "Icmp6InTimeExcds");
    let (lost, place) = match dropped.count.max(told) {
        here if here >= SOME => (here, "here"),
        _ if heard >= SOME => (heard, "on the path"),
        _ => return,
    };
    let title = format!("packets exceed their hop limit {place}: a routing loop{}", dropped.example());
    let proof = [
        sample.evidence(Snmp, "IpInHdrErrors", None),
        sample.evidence(Snmp, "IcmpOutTimeExcds", None),
        sample.evidence(Snmp, "IcmpInTimeExcds", None),
        sample.evidence(Snmp6, "Icmp6OutTimeExcds", None),
        sample.evidence(Snmp6, "Icmp6InTimeExcds", None),
    ];
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .proof(dropped.evidence())
        .proof(proof.into_iter().flatten())
        .lost(lost, "packets dropped")
        .remedy("traceroute -n ADDRESS", "shows the routers: one that appears twice is in the loop", "")
        .remedy("", "correct the route of the router that sends the packets back", "");
}
