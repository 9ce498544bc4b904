//! Packets refused because the route to their source uses another interface.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "rp-filter",
    area: "routing",
    about: "Packets are dropped because the way back to their source leads over another interface.",
    rule: "TcpExtIPReversePathFilter grew.",
    sources: "/proc/net/netstat: IPReversePathFilter",
    refuted_by: "sources that are forged: then dropping them is right.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtIPReversePathFilter";
    let lost = sample.grown(Netstat, name);
    if lost == 0 {
        return;
    }
    let title = "packets are refused by rp_filter: their source is routed over another interface".to_owned();
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .proof(sample.evidence(Netstat, name, None))
        .lost(lost, "packets dropped")
        .remedy("netwren routes 'family = inet'", "shows the routes: where would an answer to the sources go?", "")
        .remedy(
            "sysctl -w net.ipv4.conf.all.rp_filter=2",
            "accepts sources that are reachable over any interface (loose mode)",
            "forged sources that are routed somewhere else are accepted, too",
        );
}
