//! Segments whose timestamp is older than an earlier segment's.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};

/// Fewest segments for a finding; every network has a few old duplicates.
const SOME: u64 = 10;

const COUNTERS: &[&str] =
    &["TcpExtPAWSActive", "TcpExtPAWSEstab", "TcpExtPAWSTimewait", "TcpExtPAWSOldAck", "TcpExtBeyondWindow"];

pub(super) const CHECK: Check = Check {
    id: "paws",
    needs: &[Probe::Drops],
    area: "tcp",
    about: "Segments are rejected because their timestamp is older than a previous one.",
    rule: "PAWSEstab, PAWSActive, PAWSTimewait and PAWSOldAck together grew by at least 10.",
    sources: "/proc/net/netstat; the tracepoint kfree_skb via BPF: TCP_RFC7323_PAWS",
    refuted_by: "old duplicates on a path that reorders packets by seconds.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let of_paws = COUNTERS.iter().filter(|name| name.contains("PAWS"));
    let lost: u64 = of_paws.map(|name| sample.grown(Netstat, name)).sum();
    if lost < SOME {
        return;
    }
    let dropped = sample.around.dropped(CHECK.id);
    let title = "segments are rejected because of old timestamps: several hosts, or clocks, share one address";
    found
        .add(Severity::Warning, Confidence::Likely, format!("{title}{}", dropped.example()))
        .proof(COUNTERS.iter().filter_map(|name| sample.evidence(Netstat, name, None)))
        .proof(dropped.evidence())
        .lost(lost, "segments dropped")
        .remedy("", "check for a load balancer or NAT on the path that mixes timestamps of several hosts", "")
        .remedy(
            "sysctl -w net.ipv4.tcp_timestamps=0",
            "disables timestamps in new connections",
            "no protection against wrapped sequence numbers, less precise round-trip times",
        );
}
