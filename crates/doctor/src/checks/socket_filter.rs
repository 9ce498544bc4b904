//! Packets refused by a socket's filter.

use record::rows::{Confidence, Severity};

use super::cgroup_drop::ingress_of;
use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding; a program may refuse unwanted ones.
const MANY: u64 = 20;

pub(super) const CHECK: Check = Check {
    id: "socket-filter",
    needs: &[Probe::Cgroups, Probe::Drops],
    area: "firewall",
    about: "A filter that a program attached to its socket rejects packets.",
    rule: "At least 20 packets were dropped with the reason SOCKET_FILTER, and the cgroup of their socket has no \
           programs for received packets, which have the same reason.",
    sources: "the tracepoint kfree_skb via BPF; programs of cgroups via bpf(2): BPF_PROG_QUERY",
    refuted_by: "a program that selects its packets with such a filter.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id).only(|one| ingress_of(sample, one).is_empty());
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
