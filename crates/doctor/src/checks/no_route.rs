//! Packets without a route.

use record::Addr;
use record::rows::CounterSource::{Netstat, Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};
use crate::seen::DropSeen;

pub(super) const CHECK: Check = Check {
    id: "no-route",
    needs: &[Probe::Drops],
    area: "routing",
    about: "Packets are dropped because no route leads to their destination.",
    rule: "IpOutNoRoutes or IpExtInNoRoutes grew by at least 3; for IPv6, Ip6OutNoRoutes or Ip6InNoRoutes (without \
           multicast), which is only a hint, because programs try IPv6 even if there is none.",
    sources: "/proc/net/snmp, netstat, snmp6",
    refuted_by: "`ip route get ADDRESS` that finds routes to the destinations.",
    run,
};

/// Fewest packets for a finding; with fewer, a program merely tried once.
const FEW: u64 = 3;
/// Fewest packets for more than a hint.
const SOME: u64 = 5;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (family, counters) in [
        ("IPv4", [(Snmp, "IpOutNoRoutes"), (Netstat, "IpExtInNoRoutes")]),
        ("IPv6", [(Snmp6, "Ip6OutNoRoutes"), (Snmp6, "Ip6InNoRoutes")]),
    ] {
        let lost = match (family, &sample.around.drops) {
            ("IPv6", Some(drops)) => sample.grown(Snmp6, "Ip6OutNoRoutes") + to_hosts(drops),
            _ => counters.iter().map(|(source, name)| sample.grown(*source, name)).sum(),
        };
        if lost < FEW {
            continue;
        }
        let severity = if family == "IPv4" && lost >= SOME { Severity::Warning } else { Severity::Hint };
        let proof = counters.map(|(source, name)| sample.evidence(source, name, None));
        found
            .add(
                severity,
                Confidence::Certain,
                format!("{family} packets are dropped: no route leads to their destination"),
            )
            .object(family)
            .proof(proof.into_iter().flatten())
            .lost(lost, "packets dropped")
            .reach(Reach::part(lost, moved_packets(sample)), "packets")
            .remedy("netwren routes 'destination = default'", "shows whether there is a default route", "");
    }
}

/// Returns the packets of both families that this host received or sent.
pub(super) fn moved_packets(sample: &Sample) -> u64 {
    let of = |source, names: [&str; 2]| names.iter().map(|name| sample.grown(source, name)).sum::<u64>();
    of(Snmp, ["IpInReceives", "IpOutRequests"]) + of(Snmp6, ["Ip6InReceives", "Ip6OutRequests"])
}

/// Returns the number of received IPv6 packets to hosts that had no route. Packets to multicast groups are left out: a
/// router that does not forward such groups has no route for them.
fn to_hosts(drops: &[DropSeen]) -> u64 {
    let is_one = |one: &&DropSeen| {
        let to = one.ends.map(|(_, to)| to);
        one.reason == "IP_INNOROUTES" && to.is_some_and(|to| matches!(to, Addr::V6(_)) && !to.is_multicast())
    };
    drops.iter().filter(is_one).map(|one| one.count).sum()
}
