//! Packets dropped for a reason that no other check explains.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};
use crate::seen::DropSeen;
use crate::seen::cause::VAGUE;

/// Fewest packets for a finding; fewer are normal noise.
const SOME: u64 = 5;
/// Fewest packets if the kernel gives no reason: some frees of packets that count as drops are routine.
const MANY: u64 = 50;

pub(super) const CHECK: Check = Check {
    id: "packet-drop",
    needs: &[Probe::Drops],
    area: "drops",
    about: "Packets are dropped for a reason that no other check covers.",
    rule: "At least 5 packets, and 0.1 % of the received packets, were dropped for one reason at one place that is not \
           routine; if the kernel gives no reason, at least 50 unicast packets of TCP, UDP or ICMP.",
    sources: "the tracepoint kfree_skb via BPF",
    refuted_by: "`netwren drops --for 10` that does not show it again.",
    run,
};

fn is_much(one: &DropSeen) -> bool {
    if !VAGUE.contains(&one.reason.as_str()) {
        return one.count >= SOME;
    }
    let is_to_a_host = one.ends.is_some_and(|(_, to)| !to.is_multicast());
    one.count >= MANY && is_to_a_host && ["tcp", "udp", "icmp", "icmpv6"].contains(&one.proto)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    let came = sample.grown(Snmp, "IpInReceives") + sample.grown(Snmp6, "Ip6InReceives");
    // In heavy traffic, some packets are late, duplicate or cut.
    let is_share = |one: &DropSeen| one.count.saturating_mul(1000) >= came;
    for one in dropped.all.iter().filter(|one| is_much(one) && is_share(one) && !one.is_refused_by_bridge()) {
        let says = if one.meaning.is_empty() { "no explanation of this reason is known" } else { one.meaning };
        let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
        let draft = found
            .add(Severity::Hint, Confidence::Certain, format!("packets are dropped, {}: {says}{packet}", one.at()))
            .object(one.reason.clone())
            .proof(dropped.evidence())
            .lost(one.count, "packets dropped");
        let draft = if one.remedy.is_empty() { draft } else { draft.remedy("", one.remedy, "") };
        draft.remedy("netwren drops --for 5 -o wide", "shows drops with their process and advice", "");
    }
}
