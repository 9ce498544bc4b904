//! Bridged frames that pass through the packet filter of IP.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "bridge-nf",
    needs: &[Probe::Drops, Probe::Links],
    area: "firewall",
    about: "Frames between bridge ports pass the IP rules, and rules drop some of them.",
    rule: "bridge-nf-call-iptables is 1, and rules dropped at least 5 packets for one host within the window on a \
           bridge.",
    sources: "net.bridge.bridge-nf-call-iptables; the tracepoint kfree_skb via BPF",
    refuted_by: "drops that continue after `sysctl -w net.bridge.bridge-nf-call-iptables=0`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    if sample.setting("bridge/bridge-nf-call-iptables", 0) != Some(1) {
        return;
    }
    let is_bridged = |index: u32| sample.around.links.iter().any(|link| link.index == index && link.is_bridge_port);
    let dropped = sample.around.dropped("rule-drop").only(|one| is_bridged(one.ifindex) && !one.is_to_group());
    let Some(first) = dropped.all.first().filter(|_| dropped.count >= SOME) else { return };
    let iface = sample.around.iface(first.ifindex);
    found
        .add(
            Severity::Warning,
            Confidence::Likely,
            format!("IP rules drop bridged frames on {iface}{}", dropped.example()),
        )
        .object(iface)
        .proof([state("net.bridge.bridge-nf-call-iptables", 1, Some(0))])
        .proof(dropped.evidence())
        .proof(sample.evidence(Conntrack, "entries", None))
        .lost(dropped.count, "frames dropped")
        .remedy(
            "sysctl -w net.bridge.bridge-nf-call-iptables=0",
            "bridged frames bypass IP rules and connection tracking",
            "container firewalls (kube-proxy, docker) that need it stop working",
        );
}
