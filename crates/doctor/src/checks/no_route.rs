//! Packets for which there is no route.

use record::rows::CounterSource::{Netstat, Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "no-route",
    area: "routing",
    about: "Packets are dropped because no route leads to their destination.",
    rule: "IpOutNoRoutes or IpExtInNoRoutes grew; of IPv6 Ip6OutNoRoutes or Ip6InNoRoutes, which is a hint only, as \
           programs try IPv6 where there is none.",
    sources: "/proc/net/snmp, netstat, snmp6",
    refuted_by: "`ip route get ADDRESS` that answers for the addresses that are meant.",
    run,
};

/// Packets from which on it is more than a hint.
const SOME: u64 = 5;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (family, counters) in [
        ("IPv4", [(Snmp, "IpOutNoRoutes"), (Netstat, "IpExtInNoRoutes")]),
        ("IPv6", [(Snmp6, "Ip6OutNoRoutes"), (Snmp6, "Ip6InNoRoutes")]),
    ] {
        let lost: u64 = counters.iter().map(|(source, name)| sample.grown(*source, name)).sum();
        if lost == 0 {
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
            .remedy("netwren routes 'destination = default'", "shows whether there is a default route", "");
    }
}
