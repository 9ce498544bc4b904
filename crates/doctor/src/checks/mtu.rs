//! Packets that are too large for the next link.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::no_route::moved_packets;
use super::reach::Reach;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "mtu",
    needs: &[],
    area: "routing",
    about: "Packets are dropped because they exceed the MTU of the next link.",
    rule: "IpFragFails, Ip6FragFails or Ip6InTooBigErrors grew by at least 3. Up to 5 % of the packets is a hint: \
           path MTU discovery needs them.",
    sources: "/proc/net/snmp: FragFails; snmp6: Ip6FragFails, Ip6InTooBigErrors",
    refuted_by: "senders that then send smaller packets: path MTU discovery drops a few packets on each path.",
    run,
};

/// Packets that path MTU discovery may lose before it has found the size.
const FEW: u64 = 3;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let counters = [(Snmp, "IpFragFails"), (Snmp6, "Ip6FragFails"), (Snmp6, "Ip6InTooBigErrors")];
    let lost: u64 = counters.iter().map(|(source, name)| sample.grown(*source, name)).sum();
    if lost < FEW {
        return;
    }
    let proof = counters.map(|(source, name)| sample.evidence(source, name, None));
    found
        .add(Severity::Warning, Confidence::Certain, "packets are too large for their next link".to_owned())
        .proof(proof.into_iter().flatten())
        .lost(lost, "packets dropped")
        .reach(Reach::part(lost, moved_packets(sample)).or_more_than(5), "packets")
        .remedy("ip link show", "shows the MTU of each interface: it must be the same along a path", "")
        .remedy(
            "nft add rule inet filter forward tcp flags syn tcp option maxseg size set rt mtu",
            "makes TCP negotiate a segment size that fits (table and chain are examples)",
            "",
        );
}
