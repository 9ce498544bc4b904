//! The connection-tracking table is full: packets of new connections are dropped.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::remedy::larger;
use super::{Check, Findings, Sample};

/// The table counts as full from this percentage of its limit on: the kernel then begins to evict entries.
const FULL_PERCENT: i64 = 95;
/// Fewest entries that a remedy allows: a smaller table is soon full again.
pub(super) const ENTRIES_LEAST: i64 = 65_536;

pub(super) const CHECK: Check = Check {
    id: "ct-full",
    needs: &[],
    area: "conntrack",
    about: "The conntrack table is full and drops packets of new connections.",
    rule: "`drop` grew by more than `insert_failed` while the table had at least 95 % of its limit at one of the \
           readings.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: drop, insert_failed; nf_conntrack_count, nf_conntrack_max",
    refuted_by: "`drop` that does not grow in `netwren nat stats --watch`, or entries far below the limit.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // A packet whose entry could not be inserted counts in both.
    let dropped = sample.grown(Conntrack, "drop").saturating_sub(sample.grown(Conntrack, "insert_failed"));
    let (Some(entries), Some(max)) = (sample.counter(Conntrack, "entries"), sample.counter(Conntrack, "max")) else {
        return;
    };
    let (most, limit) = (entries.before.unwrap_or(entries.after).max(entries.after), max.after);
    if dropped == 0 || most.saturating_mul(100) < limit.saturating_mul(FULL_PERCENT) {
        return;
    }
    let title = format!("the conntrack table is full ({most} of {limit}): new connections are dropped");
    let proof = ["drop", "insert_failed", "early_drop"].map(|name| sample.evidence(Conntrack, name, None));
    found
        .add(Severity::Critical, Confidence::Certain, title)
        .object("nf_conntrack")
        .proof(sample.evidence(Conntrack, "entries", Some(limit)))
        .proof(proof.into_iter().flatten())
        .lost(dropped, "packets of new connections dropped")
        .remedy(
            format!("sysctl -w net.netfilter.nf_conntrack_max={}", larger(Some(limit), ENTRIES_LEAST)),
            "allows more entries",
            "an entry takes 256 to 384 bytes of kernel memory; `netwren nat advise` computes the total",
        )
        .remedy("netwren nat top", "shows the clients with the most entries", "");
}
