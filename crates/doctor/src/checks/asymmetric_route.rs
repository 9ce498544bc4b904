//! Connections of which this host sees only one direction.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Fewest unanswered flows to one destination for a finding.
const SOME: u32 = 3;

pub(super) const CHECK: Check = Check {
    id: "asymmetric-route",
    needs: &[Probe::Flows],
    area: "routing",
    about: "Only one direction of connections passes through this host.",
    rule: "At least 3 TCP flows to one destination that began within the window, and 5 % of all entries, have no \
           answer, and `invalid` grew by at least two packets for each: their clients continue to send.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: invalid; conntrack entries without answer",
    refuted_by: "answers that pass through this host: `netwren capture 'tcp and host ADDRESS'`.",
    run,
};

/// True if connections without an answer here go on all the same: their answers take another path.
pub(super) fn is_one_way(sample: &Sample) -> bool {
    let flows = &sample.around.flows;
    let silent: u64 = flows.silent.values().map(|count| u64::from(*count)).sum();
    let is_some = flows.silent.values().any(|count| *count >= SOME);
    let is_share = silent.saturating_mul(20) >= flows.entries;
    is_some && is_share && sample.grown(Conntrack, "invalid") >= silent.saturating_mul(2)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    if !is_one_way(sample) {
        return;
    }
    let invalid = sample.grown(Conntrack, "invalid");
    let flows = &sample.around.flows.silent;
    let Some((to, count)) = flows.iter().max_by_key(|(_, count)| **count) else { return };
    let title = format!("connections to {to} pass through this host, but their answers do not, or are not tracked");
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(to.to_string())
        .proof([state(format!("connections to {to} without an answer here"), i64::from(*count), None)])
        .proof(sample.evidence(Conntrack, "invalid", None))
        .lost(invalid, "packets that match no flow: firewalls drop them, NAT does not translate them")
        .remedy("netwren nat 'state = syn_sent' --by orig_dst --limit 10", "shows the destinations", "")
        .remedy("", "route both directions through the same router, or do not track these packets (notrack)", "");
}
