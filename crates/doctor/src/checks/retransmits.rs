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
           from those to peers that no longer answer. It is a hint if most first copies arrived, or if at least 100 \
           were retransmitted and less than 1 % of them were lost again or waited for a timeout: bulk fills a queue on \
           the path, which then drops some of it. The check `reordering` covers segments that overtook others.",
    sources: "/proc/net/snmp: RetransSegs, OutSegs; netstat: TCPSynRetrans, TCPTimeouts, TCPFastRetrans, \
              TCPLostRetransmit, TCPDSACKRecv",
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
    let is_by_bulk = is_by_bulk(sample, again);
    let why = match (is_late, is_by_bulk) {
        (true, _) => "most first copies arrived: they are late or reordered",
        (false, true) => "a queue on the path is full, and they arrive at the second attempt",
        (false, false) => "they are lost",
    };
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
        .reach(if is_late || is_by_bulk { Reach::Nobody } else { Reach::part(again, all) }, "")
        .remedy(
            "netwren sockets 'retrans_total > 0' --by peer_addr --sum retrans_total --limit 10",
            "shows the peers: if all are in one network, its path loses packets, otherwise the link of this host",
            "",
        );
}

/// True if the retransmitted segments arrived. A path that loses a part of all segments loses that part of the
/// retransmitted ones as well; a queue that bulk has filled has room again once its senders slow down.
fn is_by_bulk(sample: &Sample, again: u64) -> bool {
    let [lost, timeouts] = ["TcpExtTCPLostRetransmit", "TcpExtTCPTimeouts"].map(|name| sample.grown(Netstat, name));
    again >= SENT_MIN && lost.saturating_add(timeouts).saturating_mul(100) < again
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::diagnose;

    #[test]
    fn bulk_that_fills_a_queue_is_a_hint() {
        let found = |again, lost, timeouts| {
            let rows = [
                (Snmp, "TcpOutSegs", "", 0, 25_000),
                (Snmp, "TcpRetransSegs", "", 0, again),
                (Netstat, "TcpExtTCPLostRetransmit", "", 0, lost),
                (Netstat, "TcpExtTCPTimeouts", "", 0, timeouts),
            ];
            diagnose(&[Sample::of(&rows)]).first().map(|one| (one.id, one.severity))
        };
        assert_eq!(found(750, 0, 0), Some(("retransmits", Severity::Hint)));
        assert_eq!(found(750, 5, 2), Some(("retransmits", Severity::Hint)));
        // 3 % of all are lost, on a path of which bulk uses a part only.
        assert_eq!(found(750, 22, 0), Some(("retransmits", Severity::Warning)));
        assert_eq!(found(750, 0, 9), Some(("retransmits", Severity::Warning)));
    }
}
