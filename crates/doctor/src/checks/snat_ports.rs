//! Entries of connection tracking that cannot go in though the table has room: source ports are used up.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "snat-ports",
    area: "conntrack",
    about: "New connections find no free source port of source NAT: the table has room all the same.",
    rule: "`insert_failed` grew by at least 5 more than `chaintoolong`, and the table has less than 80 % of its limit.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: insert_failed, drop; nf_conntrack_count, nf_conntrack_max",
    refuted_by: "ranges of source ports with room in `netwren nat top snat_port_use`: then two packets of one new flow \
                 met on two CPUs.",
    run,
};

/// Failures that two packets of one flow on two CPUs may make at times.
const FEW: u64 = 5;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // A chain that is too long counts as a failure, too.
    let too_long = sample.grown(Conntrack, "chaintoolong");
    let failed = sample.grown(Conntrack, "insert_failed").saturating_sub(too_long);
    let (Some(entries), Some(max)) = (sample.counter(Conntrack, "entries"), sample.counter(Conntrack, "max")) else {
        return;
    };
    if failed < FEW || entries.after.saturating_mul(100) >= max.after.saturating_mul(80) {
        return;
    }
    let title = "new connections find no free source port for NAT, though the table has room".to_owned();
    let proof = ["insert_failed", "drop", "chaintoolong"].map(|name| sample.evidence(Conntrack, name, None));
    found
        .add(Severity::Critical, Confidence::Likely, title)
        .object("nf_conntrack")
        .proof(proof.into_iter().flatten())
        .proof(sample.evidence(Conntrack, "entries", Some(max.after)))
        .lost(failed, "new connections refused")
        .remedy("netwren nat top snat_port_use", "shows which address has used up its ports towards whom", "")
        .remedy("", "more source addresses, or a wider range of ports, in the rule of source NAT", "");
}
