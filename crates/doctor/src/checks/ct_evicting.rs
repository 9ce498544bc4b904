//! The connection-tracking table makes room by evicting entries.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::ct_full::ENTRIES_LEAST;
use super::remedy::larger;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "ct-evicting",
    needs: &[],
    area: "conntrack",
    about: "The conntrack table is full and evicts half-open connections to make room.",
    rule: "`early_drop` grew and `drop` did not.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: early_drop, drop",
    refuted_by: "`early_drop` that does not grow in `netwren nat stats --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let evicted = sample.grown(Conntrack, "early_drop");
    if evicted == 0 || sample.grown(Conntrack, "drop") > sample.grown(Conntrack, "insert_failed") {
        return;
    }
    let max = sample.counter(Conntrack, "max").map(|max| max.after);
    let proof = [sample.evidence(Conntrack, "early_drop", None), sample.evidence(Conntrack, "entries", max)];
    let title = "the conntrack table is full: half-open connections are evicted".to_owned();
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .object("nf_conntrack")
        .proof(proof.into_iter().flatten())
        .lost(evicted, "entries evicted")
        .remedy(
            format!("sysctl -w net.netfilter.nf_conntrack_max={}", larger(max, ENTRIES_LEAST)),
            "allows more entries",
            "an entry takes 256 to 384 bytes of kernel memory",
        )
        .remedy("netwren nat advise", "shows the recommended limit and its cost", "");
}
