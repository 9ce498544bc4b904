//! Segments that must be retransmitted.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::dead_peer::dead_retransmits;
use super::reach::Reach;
use super::words::percent;
use super::{Check, Findings, Probe, Sample, reordering};

/// Fewest sent segments for a finding; fewer prove nothing.
const SENT_MIN: u64 = 100;

pub(super) const CHECK: Check = Check {
    id: "retransmits",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "Many segments are retransmitted: the path or the peer loses them.",
    rule: "At least 20 segments other than SYNs and SYN-ACKs, and 2 % of the sent segments, are retransmitted, apart \
           from those to peers that no longer answer. It is a hint if most first copies arrived. The check \
           `reordering` covers segments that overtook others.",
    sources: "/proc/net/snmp: RetransSegs, OutSegs; netstat: TCPSynRetrans, TCPTimeouts, TCPFastRetrans, TCPDSACKRecv",
    refuted_by: "TCPDSACKRecv that grows as fast: then the first copies arrived, and packets are only late.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // The check `syn-retrans` covers SYNs: they prove nothing about the path of established connections.
    let of_syns = sample.grown(Netstat, "TcpExtTCPSynRetrans");
    let again = sample.grown(Snmp, "TcpRetransSegs").saturating_sub(of_syns);
    // A dead peer proves nothing about the path of others; the check `dead-peer` reports it.
    let again = if again < 20 { again } else { again.saturating_sub(dead_retransmits(sample)) };
    let sent = sample.grown(Snmp, "TcpOutSegs");
    let all = again.saturating_add(sent);
    if again < 20 || all < SENT_MIN || again.saturating_mul(50) < all || reordering::explains(sample) {
        return;
    }
    let is_late = sample.grown(Netstat, "TcpExtTCPDSACKRecv").saturating_mul(2) > again;
    let why = if is_late { "most first copies arrived: they are late or reordered" } else { "they are lost" };
    let of_netstat = ["TcpExtTCPTimeouts", "TcpExtTCPFastRetrans", "TcpExtTCPLostRetransmit", "TcpExtTCPDSACKRecv"];
    let proof = ["TcpRetransSegs", "TcpOutSegs"].map(|name| sample.evidence(Snmp, name, None));
    found
        .add(
            Severity::Warning,
            Confidence::Likely,
            format!("{} of TCP segments are retransmitted: {why}", percent(again, all)),
        )
        .proof(proof.into_iter().flatten())
        .proof(of_netstat.into_iter().filter_map(|name| sample.evidence(Netstat, name, None)))
        .cost(format!("{again} segments retransmitted; each timeout delays a connection by 200 ms or more"))
        .reach(if is_late { Reach::Nobody } else { Reach::part(again, all) }, "")
        .remedy(
            "netwren sockets 'retrans_total > 0' --by peer_addr --sum retrans_total --limit 10",
            "shows the peers: if all are in one network, its path loses packets, otherwise the link of this host",
            "",
        );
}
