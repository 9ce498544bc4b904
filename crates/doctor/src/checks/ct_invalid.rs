//! Packets that belong to no flow of connection tracking.

use record::rows::CounterSource::{Conntrack, Snmp};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::percent;
use super::{Check, Findings, Sample};

/// Fewest packets for a finding; fewer are normal noise: late segments of ended connections.
const SOME: u64 = 20;

pub(super) const CHECK: Check = Check {
    id: "ct-invalid",
    needs: &[],
    area: "conntrack",
    about: "Packets arrive that match no tracked connection: rules treat them as invalid, NAT skips them.",
    rule: "`invalid` grew by at least 20, and by 1 % of the packets; not if one direction of a flow takes another \
           path. It is a hint: scans and backscatter match no connection either.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: invalid; /proc/net/snmp: InReceives, OutRequests",
    refuted_by: "`invalid` that does not grow in `netwren nat stats --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let invalid = sample.grown(Conntrack, "invalid");
    let packets = sample.grown(Snmp, "IpInReceives") + sample.grown(Snmp, "IpOutRequests");
    if invalid < SOME || invalid.saturating_mul(100) < packets || super::asymmetric_route::is_one_way(sample) {
        return;
    }
    let log = match sample.is_first() {
        true => "makes the kernel log why they are invalid",
        // The kernel does not log for other namespaces.
        false => {
            "makes the kernel log why they are invalid, if net.netfilter.nf_log_all_netns is 1 in the first network \
             namespace"
        }
    };
    let title = format!("{} of the packets match no tracked connection", percent(invalid, packets.max(invalid)));
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object("nf_conntrack")
        .proof(sample.evidence(Conntrack, "invalid", None))
        .lost(invalid, "invalid packets: never translated, and dropped if a rule does so")
        .reach(Reach::Nobody, "")
        .remedy(
            "sysctl -w net.netfilter.nf_conntrack_log_invalid=255",
            log,
            "one log line per packet: set it back to 0",
        )
        .remedy(
            "",
            "look for packets that bypass this host in one direction, damaged packets, and connections older than the \
             table",
            "",
        );
}
