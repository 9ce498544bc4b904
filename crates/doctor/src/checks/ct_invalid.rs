//! Packets that belong to no flow of connection tracking.

use record::rows::CounterSource::{Conntrack, Snmp};
use record::rows::{Confidence, Severity};

use super::words::percent;
use super::{Check, Findings, Sample};

/// Fewest packets for a finding; fewer are normal noise: late segments of ended connections.
const SOME: u64 = 20;

pub(super) const CHECK: Check = Check {
    id: "ct-invalid",
    area: "conntrack",
    about: "Packets come that fit no connection of connection tracking: rules treat them as invalid, NAT skips them.",
    rule: "`invalid` grew by at least 20, and by 1 % of the packets; not where half of a flow goes another way.",
    sources: "ctnetlink or /proc/net/stat/nf_conntrack: invalid; /proc/net/snmp: InReceives, OutRequests",
    refuted_by: "`invalid` that stands still in `netwren nat stats --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let invalid = sample.grown(Conntrack, "invalid");
    let packets = sample.grown(Snmp, "IpInReceives") + sample.grown(Snmp, "IpOutRequests");
    if invalid < SOME || invalid.saturating_mul(100) < packets || super::asymmetric_route::is_one_way(sample) {
        return;
    }
    let title = format!("{} of the packets fit no tracked connection", percent(invalid, packets.max(invalid)));
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object("nf_conntrack")
        .proof(sample.evidence(Conntrack, "invalid", None))
        .lost(invalid, "packets invalid: dropped where a rule says so, never translated")
        .remedy(
            "sysctl -w net.netfilter.nf_conntrack_log_invalid=255",
            "lets the kernel log why they are invalid",
            "a line in the log for each: set it back to 0",
        )
        .remedy(
            "",
            "look for packets that skip this host on one way, damaged ones, and connections older than the table",
            "",
        );
}
