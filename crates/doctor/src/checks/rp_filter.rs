//! Packets refused because the route to their source uses another interface.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{argument, iface_setting};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "rp-filter",
    needs: &[Probe::Drops, Probe::Links],
    area: "routing",
    about: "Packets are dropped because the route back to their source uses another interface.",
    rule: "TcpExtIPReversePathFilter grew, not by broadcasts alone: hosts of another subnet on the same link send \
           them to all. Less than 1 % of the received packets is a hint.",
    sources: "/proc/net/netstat: IPReversePathFilter; the tracepoint kfree_skb via BPF: IP_RPFILTER",
    refuted_by: "forged sources: then the drops are correct.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtIPReversePathFilter";
    let dropped = sample.around.dropped(CHECK.id);
    let lost = dropped.for_hosts(sample.grown(Netstat, name));
    if lost == 0 {
        return;
    }
    // The larger value of the interface and of `all` applies.
    let iface = dropped.all.first().map_or(String::new(), |one| sample.around.iface(one.ifindex));
    let iface = argument(&iface, "all");
    let title = "packets are dropped by rp_filter: the route to their source uses another interface".to_owned();
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .proof(sample.evidence(Netstat, name, None))
        .proof(dropped.evidence())
        .lost(lost, "packets dropped")
        .reach(Reach::part(lost, sample.grown(Snmp, "IpInReceives")), "received packets")
        .remedy("netwren routes 'family = inet'", "shows the routes: check where answers to the sources would go", "")
        .remedy(
            format!("sysctl -w {}=2", iface_setting("ipv4", iface, "rp_filter")),
            "accepts sources on this interface that are reachable through any other (loose mode); one without any \
             route needs a route",
            "forged sources with a route through another interface are also accepted",
        );
}
