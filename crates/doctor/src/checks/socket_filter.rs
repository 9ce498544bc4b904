//! Packets refused by a socket's filter.

use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding; a program may refuse unwanted ones.
const MANY: u64 = 20;

pub(super) const CHECK: Check = Check {
    id: "socket-filter",
    needs: &[Probe::Drops],
    area: "firewall",
    about: "A filter that a program attached to its socket rejects packets.",
    rule: "At least 20 packets were dropped with the reason SOCKET_FILTER.",
    sources: "the tracepoint kfree_skb via BPF",
    refuted_by: "a program that selects its packets with such a filter.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    if dropped.count < MANY {
        return;
    }
    let title = format!("a socket's filter rejects packets{}", dropped.example());
    found
        .add(Severity::Hint, Confidence::Likely, title)
        .proof(dropped.evidence())
        .lost(dropped.count, "packets rejected")
        .remedy("netwren drops 'reason = SOCKET_FILTER' --for 5 -o wide", "shows the process that owns the socket", "");
}
