//! Packets whose hop limit is used up.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding.
const SOME: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "ttl-expired",
    needs: &[Probe::Drops],
    area: "routing",
    about: "Packets exceed their hop limit: they are in a routing loop, or start with a limit that is too small.",
    rule: "At least 10 packets to be forwarded had no hop left (dropped in ip_forward or ip6_forward), other than \
           ICMP and datagrams to traceroute's ports. It is a hint if only counters of ICMP messages show it, here or \
           from the path; from the path it is a warning if connections of this host wait for answers.",
    sources: "the tracepoint kfree_skb via BPF; /proc/net/snmp, snmp6: TimeExcds, InHdrErrors",
    refuted_by: "a running traceroute, or no router twice in `traceroute -n ADDRESS`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id).only(|one| !one.is_probe());
    let told = sample.grown(Snmp, "IcmpOutTimeExcds") + sample.grown(Snmp6, "Icmp6OutTimeExcds");
    let heard = sample.grown(Snmp, "IcmpInTimeExcds") + sample.grown(Snmp6, "Icmp6InTimeExcds");
    let is_waiting = !sample.after.unanswered.is_empty() || !sample.after.stuck.is_empty();
    let (lost, place, is_hurt) = match dropped.count {
        here if here >= SOME => (here, "here", true),
        // traceroute and mtr cause such messages on purpose.
        _ if sample.around.drops.is_none() && told >= SOME => (told, "here", false),
        _ if heard >= SOME => (heard, "on the path", is_waiting),
        _ => return,
    };
    let title = format!("packets exceed their hop limit {place}: a routing loop{}", dropped.example());
    let to = dropped.all.iter().find_map(|one| one.ends).map(|(_, to)| to.unmapped());
    let traces =
        to.map(|to| (format!("traceroute -n {to}"), "shows the routers: one that appears twice is in the loop", ""));
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
        .reach(if is_hurt { Reach::part(lost, lost) } else { Reach::Nobody }, "")
        .remedies(traces)
        .remedy("", "correct the route of the router that sends the packets back", "");
}
