//! IPv6 packets that arrive on an interface where IPv6 is disabled.

use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding; fewer are normal noise if other hosts use IPv6.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "ipv6-off",
    needs: &[Probe::Drops, Probe::Links],
    area: "addresses",
    about: "IPv6 packets arrive on an interface with IPv6 disabled.",
    rule: "At least 5 packets for one host, of TCP or UDP among them, were dropped with the reason IPV6DISABLED.",
    sources: "the tracepoint kfree_skb via BPF; net.ipv6.conf.IFACE.disable_ipv6",
    refuted_by: "0 in net.ipv6.conf.IFACE.disable_ipv6.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // Neighbours send to groups (mDNS, router advertisements) even if this host has no IPv6.
    let dropped = sample.around.dropped(CHECK.id).only(|one| !one.is_to_group());
    let Some(first) = dropped.all.first().filter(|_| dropped.count >= SOME) else { return };
    let is_meant = dropped.all.iter().any(|one| ["tcp", "udp"].contains(&one.proto));
    let severity = if is_meant { Severity::Warning } else { Severity::Hint };
    let iface = sample.around.iface(first.ifindex);
    let title = format!("IPv6 is disabled on {iface}, but IPv6 packets arrive{}", dropped.example());
    found
        .add(severity, Confidence::Certain, title)
        .object(iface.clone())
        .proof(dropped.evidence())
        .lost(dropped.count, "packets dropped")
        .remedy(
            format!("sysctl -w {}=0", super::words::iface_setting("ipv6", &iface, "disable_ipv6")),
            "enables IPv6 on the interface; then assign its addresses again: disabling it removed them",
            "services become reachable over IPv6, unprotected by rules for IPv4 only",
        );
}
