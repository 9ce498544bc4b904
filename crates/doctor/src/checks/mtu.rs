//! Packets that are too large for the next link.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::{Reach, moved_packets};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "mtu",
    needs: &[Probe::Drops],
    area: "routing",
    about: "Packets are dropped because they exceed the MTU of the next link.",
    rule: "IpFragFails, Ip6FragFails or Ip6InTooBigErrors grew by at least 3. Up to 5 % of the packets is a hint: \
           path MTU discovery needs them.",
    sources: "/proc/net/snmp: FragFails; snmp6: Ip6FragFails, Ip6InTooBigErrors; the tracepoint kfree_skb via BPF: \
              PKT_TOO_BIG",
    refuted_by: "senders that then send smaller packets: path MTU discovery drops a few packets on each path.",
    run,
};

/// A table that limits the segment size of forwarded connections to the MTU of their route.
const MSS: &str = "nft 'table inet mss { chain forward { type filter hook forward priority mangle; tcp flags syn tcp \
                   option maxseg size set rt mtu; }; }'";

/// Packets that path MTU discovery may lose before it has found the size.
const FEW: u64 = 3;

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let counters = [(Snmp, "IpFragFails"), (Snmp6, "Ip6FragFails"), (Snmp6, "Ip6InTooBigErrors")];
    let lost: u64 = counters.iter().map(|(source, name)| sample.grown(*source, name)).sum();
    if lost < FEW {
        return;
    }
    // Only TCP negotiates the size of its packets.
    let dropped = &sample.around.dropped(CHECK.id).all;
    let is_tcp = dropped.is_empty() || dropped.iter().any(|one| one.proto == "tcp");
    let proof = counters.map(|(source, name)| sample.evidence(source, name, None));
    found
        .add(Severity::Warning, Confidence::Certain, "packets are too large for their next link".to_owned())
        .proof(proof.into_iter().flatten())
        .lost(lost, "packets dropped")
        .reach(Reach::part(lost, moved_packets(sample)).or_more_than(5), "packets")
        .remedies(is_tcp.then_some((MSS, "makes new TCP connections through this host use segments that fit", "")))
        .remedy("ip link show", "shows the MTU of each interface: it must be the same along a path", "")
        .remedy("", "make the senders send smaller packets, or accept ICMP \"fragmentation needed\" on their path", "");
}
