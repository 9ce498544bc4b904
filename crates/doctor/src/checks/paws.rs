//! Segments whose timestamp is older than an earlier segment's.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::reordering::OVERTAKEN;
use super::{Check, Findings, Probe, Sample, reordering};

/// Fewest segments for a finding; every network has a few old duplicates.
const SOME: u64 = 10;

const COUNTERS: &[&str] =
    &["TcpExtPAWSActive", "TcpExtPAWSEstab", "TcpExtPAWSTimewait", "TcpExtPAWSOldAck", "TcpExtBeyondWindow"];

pub(super) const CHECK: Check = Check {
    id: "paws",
    needs: &[Probe::Drops],
    area: "tcp",
    about: "Segments are rejected because their timestamp is older than a previous one.",
    rule: "PAWSEstab, PAWSActive and PAWSTimewait together grew by at least 10. Less than 1 % of the received segments \
           is a hint, as are no more than the segments that overtook others (TCPSACKReorder, TCPTSReorder).",
    sources: "/proc/net/netstat; the tracepoint kfree_skb via BPF: TCP_RFC7323_PAWS",
    refuted_by: "old duplicates on a path that reorders packets by seconds.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // Old acknowledgements without data are harmless: a later one overtook them.
    let of_paws = COUNTERS.iter().filter(|name| name.contains("PAWS") && !name.ends_with("OldAck"));
    let lost: u64 = of_paws.map(|name| sample.grown(Netstat, name)).sum();
    if lost < SOME || reordering::explains(sample) {
        return;
    }
    // Acknowledgements that others overtook are old as well, and harmless.
    let is_reordered = reordering::overtaken(sample) >= lost;
    let (why, reach) = match is_reordered {
        true => ("others overtook them on the path", Reach::Nobody),
        false => {
            let reach = Reach::part(lost, sample.grown(Snmp, "TcpInSegs"));
            ("several hosts, or clocks, share one address", reach)
        }
    };
    let dropped = sample.around.dropped(CHECK.id);
    let title = format!("segments are rejected because of old timestamps: {why}{}", dropped.example());
    let draft = found
        .add(Severity::Warning, Confidence::Likely, title)
        .proof(COUNTERS.iter().chain(OVERTAKEN).filter_map(|name| sample.evidence(Netstat, name, None)))
        .proof(dropped.evidence())
        .lost(lost, "segments dropped")
        .reach(reach, "received segments");
    // Without timestamps (net.ipv4.tcp_timestamps=0) a sequence number that wraps is accepted, and a path that reorders
    // packets becomes slower still.
    let advice = match is_reordered {
        true => "look for a router that sends the packets of one connection over several links",
        false => "check for a load balancer or NAT on the path that mixes timestamps of several hosts",
    };
    draft.remedy("", advice, "");
}
