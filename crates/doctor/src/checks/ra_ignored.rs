//! Router advertisements that this host ignores because it forwards.

use record::rows::CounterSource::Snmp6;
use record::rows::{Confidence, Severity};

use super::dropped::to_hosts;
use super::reach::{Reach, moved_packets};
use super::words::{iface_setting, state};
use super::{Check, Findings, Probe, Sample};

/// Fewest packets without a route for a finding; with fewer, a program merely tried once.
const FEW: u64 = 3;
/// Fewest packets for more than a hint.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "ra-ignored",
    needs: &[Probe::Drops, Probe::RouterAdverts],
    area: "routing",
    about: "IPv6 packets have no route, and this host ignores the router advertisements that would give it one.",
    rule: "Ip6OutNoRoutes and Ip6InNoRoutes (without multicast) grew by at least 3, and an interface with forwarding=1 \
           and accept_ra=1 has received router advertisements: 1 means that a host that forwards ignores them. It is a \
           warning if half of the packets of this host have no route, otherwise a hint: programs try IPv6 first.",
    sources: "/proc/net/snmp6: OutNoRoutes, InNoRoutes; net.ipv6.conf.IFACE.accept_ra, forwarding; \
              /proc/net/dev_snmp6: Icmp6InRouterAdvertisements",
    refuted_by: "router advertisements with a lifetime of 0 (`rdisc6 IFACE`): then their sender does not offer a \
                 default route.",
    run,
};

/// True if ignored router advertisements explain that packets have no route.
pub(super) fn explains(sample: &Sample) -> bool {
    !sample.around.ignored_adverts.is_empty() && unrouted(sample) >= FEW
}

/// Packets of this host and packets to forward. Without drops it is not known whether the latter are for groups.
fn unrouted(sample: &Sample) -> u64 {
    sample.grown(Snmp6, "Ip6OutNoRoutes") + sample.around.drops.as_deref().map_or(0, to_hosts)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let lost = unrouted(sample);
    let Some(first) = sample.around.ignored_adverts.first().filter(|_| explains(sample)) else { return };
    let (iface, severity) = (&first.iface, if lost >= SOME { Severity::Warning } else { Severity::Hint });
    let proof = ["Ip6OutNoRoutes", "Ip6InNoRoutes"].into_iter().filter_map(|name| sample.evidence(Snmp6, name, None));
    let seen = sample.around.ignored_adverts.iter().take(4).map(|one| {
        let received = i64::try_from(one.received).unwrap_or(i64::MAX);
        state(format!("router advertisements received on {}", one.iface), received, None)
    });
    found
        .add(
            severity,
            Confidence::Likely,
            format!("IPv6 packets have no route: {iface} ignores router advertisements, because this host forwards"),
        )
        .object(iface.clone())
        .proof(proof)
        .proof(seen)
        .proof([state(format!("net.ipv6.conf.{iface}.accept_ra"), 1, Some(2))])
        .lost(lost, "packets dropped")
        .reach(Reach::part(lost, lost + moved_packets(sample)).or_more_than(50), "packets")
        .remedy(
            format!("sysctl -w {}=2", iface_setting("ipv6", iface, "accept_ra")),
            "accepts router advertisements although this host forwards; the next one brings the route",
            "any host on the link can then announce itself as a router",
        );
}
