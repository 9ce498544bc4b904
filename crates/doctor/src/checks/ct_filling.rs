//! The connection-tracking table is nearly full.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

/// Fewest entries for a finding, in percent of the limit.
const FILL_PERCENT: i64 = 80;

pub(super) const CHECK: Check = Check {
    id: "ct-filling",
    needs: &[],
    area: "conntrack",
    about: "The conntrack table is nearly full.",
    rule: "The table has at least 80 % of its limit, and no packets are dropped and no entries are evicted yet.",
    sources: "nf_conntrack_count, nf_conntrack_max",
    refuted_by: "many entries that have expired and wait to be collected: `netwren nat expired = true`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (Some(entries), Some(max)) = (sample.counter(Conntrack, "entries"), sample.counter(Conntrack, "max")) else {
        return;
    };
    let is_lost = ["drop", "early_drop"].iter().any(|name| sample.grown(Conntrack, name) > 0);
    let (entries, limit) = (entries.after, max.after);
    if is_lost || limit <= 0 || entries.saturating_mul(100) < limit.saturating_mul(FILL_PERCENT) {
        return;
    }
    let title = format!("the conntrack table is nearly full: {entries} of {limit} entries");
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .object("nf_conntrack")
        .proof(sample.evidence(Conntrack, "entries", Some(limit)))
        .cost("nothing yet; from 95 % on, entries are evicted, then packets of new connections are dropped")
        .remedy("netwren nat advise", "shows the recommended limit, its cost, and when the current one is reached", "");
}
