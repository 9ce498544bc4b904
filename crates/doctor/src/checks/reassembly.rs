//! Fragments that cannot be reassembled.

use record::rows::CounterSource::{Snmp, Snmp6, Sockstat};
use record::rows::{Confidence, Severity};

use super::accepting::is_long;
use super::reach::Reach;
use super::remedy::larger;
use super::{Check, Findings, Sample};

/// Fewest packets for a finding; fewer are normal noise.
const SOME: u64 = 5;
/// Fewest fragments without a complete packet for a finding.
const MANY: u64 = 10;

const COUNTERS: [(record::rows::CounterSource, &str); 4] =
    [(Snmp, "IpReasmFails"), (Snmp, "IpReasmTimeout"), (Snmp6, "Ip6ReasmFails"), (Snmp6, "Ip6ReasmTimeout")];

pub(super) const CHECK: Check = Check {
    id: "reassembly",
    needs: &[],
    area: "routing",
    about: "Fragmented packets arrive incomplete, or there is no room to reassemble them.",
    rule: "IpReasmFails or Ip6ReasmFails grew by at least 5. Less than 1 % of the fragments is a hint. Or at least 10 \
           fragments arrived within the window and no packet was complete: the kernel counts a failure only after the \
           30 s in which it waits for the rest.",
    sources: "/proc/net/snmp, snmp6: ReasmFails, ReasmTimeout; /proc/net/sockstat: FRAG memory",
    refuted_by: "senders that send single fragments on purpose.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let of_both = |name: &str| sample.grown(Snmp, &format!("Ip{name}")) + sample.grown(Snmp6, &format!("Ip6{name}"));
    let fragments = of_both("ReasmReqds");
    // Fragments that wait for the rest of their packets.
    let failed = of_both("ReasmFails");
    let is_waiting = failed + of_both("ReasmOKs") == 0 && fragments >= MANY && is_long(sample);
    let lost = if is_waiting { fragments } else { failed };
    if lost < SOME {
        return;
    }
    let proof = COUNTERS.iter().filter_map(|(source, name)| sample.evidence(*source, name, None));
    // More memory helps only where it is used up: otherwise the path loses fragments.
    let room = [("FRAG.memory", "ipv4/ipfrag_high_thresh"), ("FRAG6.memory", "ipv6/ip6frag_high_thresh")];
    let room = room.into_iter().filter_map(|(used, setting)| {
        let limit = sample.setting(setting, 0)?;
        let is_full = sample.counter(Sockstat, used)?.after.saturating_mul(4) >= limit.saturating_mul(3);
        let command = format!("sysctl -w net.{}={}", setting.replace('/', "."), larger(Some(limit), 8_388_608));
        is_full.then_some((command, "allows more memory for waiting fragments", ""))
    });
    let title = "fragmented packets are lost: fragments are missing, or the memory for them is full";
    found
        .add(Severity::Warning, Confidence::Certain, title.to_owned())
        .proof(proof)
        .proof(sample.evidence(Snmp, "IpReasmReqds", None))
        .proof(sample.evidence(Sockstat, "FRAG.memory", sample.setting("ipv4/ipfrag_high_thresh", 0)))
        .lost(lost, "packets not reassembled")
        .reach(Reach::part(lost, fragments), "fragments")
        .remedy("", "make the sender send datagrams that fit the path MTU", "")
        .remedies(room);
}
