//! Hash chains of connection tracking that are too long.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Sample};

/// Fewest links that a lookup passes on average for a finding.
const LINKS_MAX: i64 = 8;

pub(super) const CHECK: Check = Check {
    id: "ct-chains",
    needs: &[],
    area: "conntrack",
    about: "The conntrack hash table has too few buckets: every packet walks a long chain.",
    rule: "`chaintoolong` grew (new connections are dropped); or there are more than four entries per bucket, which \
           are eight links.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: chaintoolong; nf_conntrack_count, nf_conntrack_buckets",
    refuted_by: "`chaintoolong` that does not grow, and fewer entries than buckets.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let refused = sample.grown(Conntrack, "chaintoolong");
    let entries = sample.counter(Conntrack, "entries").map_or(0, |entries| entries.after);
    let buckets = sample.setting("netfilter/nf_conntrack_buckets", 0);
    // Each entry is in two chains, one for each direction.
    let are_long = buckets.is_some_and(|buckets| buckets > 0 && entries.saturating_mul(2) > buckets * LINKS_MAX);
    if refused == 0 && !are_long {
        return;
    }
    let severity = if refused > 0 { Severity::Critical } else { Severity::Warning };
    let title = match buckets {
        Some(buckets) => format!("connection tracking has only {buckets} hash buckets: its hash chains are too long"),
        None => "hash chains of connection tracking are too long".to_owned(),
    };
    let wanted = entries.max(buckets.unwrap_or(0)).saturating_mul(2).max(1024);
    let draft = found
        .add(severity, Confidence::Certain, title)
        .object("nf_conntrack")
        .proof(sample.evidence(Conntrack, "chaintoolong", None))
        .proof(["insert_failed", "drop"].into_iter().filter_map(|name| sample.evidence(Conntrack, name, None)))
        .proof([state("entries", entries, buckets)])
        .remedy(
            format!("sysctl -w net.netfilter.nf_conntrack_buckets={wanted}"),
            "sets more buckets",
            "each bucket takes 8 bytes of kernel memory; packets wait while the table is rehashed",
        );
    match refused {
        0 => draft.cost("CPU time for every packet: each link costs a memory access"),
        lost => draft.lost(lost, "packets of new connections dropped"),
    };
}
