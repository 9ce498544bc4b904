//! Bridged frames that pass through the packet filter of IP.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "bridge-nf",
    needs: &[Probe::Drops, Probe::Links],
    area: "firewall",
    about: "Frames between bridge ports pass the IP rules, and rules drop some of them.",
    rule: "bridge-nf-call-iptables is 1, and rules dropped packets within the window on a bridge.",
    sources: "net.bridge.bridge-nf-call-iptables; the tracepoint kfree_skb via BPF",
    refuted_by: "drops that continue after `sysctl -w net.bridge.bridge-nf-call-iptables=0`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    if sample.setting("bridge/bridge-nf-call-iptables", 0) != Some(1) {
        return;
    }
    let dropped = sample.around.dropped("rule-drop");
    let is_bridged = |index: u32| sample.around.links.iter().any(|link| link.index == index && link.is_bridge_port);
    let Some(first) = dropped.all.iter().find(|one| is_bridged(one.ifindex)) else { return };
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
        .lost(first.count, "frames dropped")
        .remedy(
            "sysctl -w net.bridge.bridge-nf-call-iptables=0",
            "bridged frames bypass IP rules and connection tracking",
            "container firewalls (kube-proxy, docker) that need it stop working",
        );
}
