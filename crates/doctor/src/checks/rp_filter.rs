//! Packets refused because the route to their source uses another interface.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "rp-filter",
    needs: &[],
    area: "routing",
    about: "Packets are dropped because the route back to their source uses another interface.",
    rule: "TcpExtIPReversePathFilter grew.",
    sources: "/proc/net/netstat: IPReversePathFilter",
    refuted_by: "forged sources: then the drops are correct.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtIPReversePathFilter";
    let lost = sample.grown(Netstat, name);
    if lost == 0 {
        return;
    }
    let title = "packets are dropped by rp_filter: the route to their source uses another interface".to_owned();
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .proof(sample.evidence(Netstat, name, None))
        .lost(lost, "packets dropped")
        .remedy("netwren routes 'family = inet'", "shows the routes: check where answers to the sources would go", "")
        .remedy(
            "sysctl -w net.ipv4.conf.all.rp_filter=2",
            "accepts sources that are reachable through any interface (loose mode)",
            "forged sources with a route through another interface are also accepted",
        );
}
