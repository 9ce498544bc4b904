//! Fragments that cannot be reassembled.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Sample};

/// Fewest packets for a finding; fewer are normal noise.
const SOME: u64 = 5;

const COUNTERS: [(record::rows::CounterSource, &str); 4] =
    [(Snmp, "IpReasmFails"), (Snmp, "IpReasmTimeout"), (Snmp6, "Ip6ReasmFails"), (Snmp6, "Ip6ReasmTimeout")];

pub(super) const CHECK: Check = Check {
    id: "reassembly",
    needs: &[],
    area: "routing",
    about: "Fragmented packets arrive incomplete, or there is no room to reassemble them.",
    rule: "IpReasmFails or Ip6ReasmFails grew by at least 5. Less than 1 % of the fragments is a hint.",
    sources: "/proc/net/snmp, snmp6: ReasmFails, ReasmTimeout; /proc/net/sockstat: FRAG memory",
    refuted_by: "senders that send single fragments on purpose.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let lost = sample.grown(Snmp, "IpReasmFails") + sample.grown(Snmp6, "Ip6ReasmFails");
    if lost < SOME {
        return;
    }
    let proof = COUNTERS.iter().filter_map(|(source, name)| sample.evidence(*source, name, None));
    let title = "fragmented packets are lost: fragments are missing, or there is no room for them";
    found
        .add(Severity::Warning, Confidence::Certain, title.to_owned())
        .proof(proof)
        .proof(sample.evidence(record::rows::CounterSource::Sockstat, "FRAG.memory", None))
        .lost(lost, "packets not reassembled")
        .reach(
            Reach::part(lost, sample.grown(Snmp, "IpReasmReqds") + sample.grown(Snmp6, "Ip6ReasmReqds")),
            "fragments",
        )
        .remedy("", "make the sender send datagrams that fit the path MTU", "")
        .remedy(
            "sysctl -w net.ipv4.ipfrag_high_thresh=8388608",
            "allows more memory for waiting fragments",
            "takes up to 8 MiB of kernel memory per network namespace",
        );
}
