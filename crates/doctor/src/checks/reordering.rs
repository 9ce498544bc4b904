//! Paths on which segments overtake each other.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::pace::paces;
use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};

/// Fewest segments that overtook others.
const SOME: u64 = 20;
/// From this share of needless retransmissions on, in percent, connections are slow; before, TCP has adapted.
const HARMFUL_PERCENT: u64 = 2;

/// Counters of segments that overtook others on the path.
pub(super) const OVERTAKEN: &[&str] = &["TcpExtTCPSACKReorder", "TcpExtTCPRenoReorder", "TcpExtTCPTSReorder"];

/// Counters of retransmissions that proved needless, and of their consequences.
const NEEDLESS: &[&str] =
    &["TcpExtTCPFullUndo", "TcpExtTCPPartialUndo", "TcpExtTCPDSACKUndo", "TcpExtTCPDSACKRecv", "TcpExtPAWSEstab"];

pub(super) const CHECK: Check = Check {
    id: "reordering",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "Segments overtake each other on the path: TCP takes late ones for lost and slows down.",
    rule: "At least 20 sent segments, and 1 % of all, were acknowledged after later ones although they were not lost, \
           and no fewer than were retransmitted. It is a hint if less than 2 % were retransmitted: TCP has adapted.",
    sources: "/proc/net/netstat: TCPSACKReorder, TCPTSReorder, TCPRenoReorder, TCPFullUndo, TCPPartialUndo, \
              TCPDSACKRecv; snmp: OutSegs, RetransSegs; tcp_info via sock_diag: reord_seen",
    refuted_by: "counters of reordering that stand still while segments are retransmitted: then they are lost.",
    run,
};

/// Returns how many segments overtook others.
pub(super) fn overtaken(sample: &Sample) -> u64 {
    OVERTAKEN.iter().map(|name| sample.grown(Netstat, name)).sum()
}

/// True if reordering explains retransmissions and old timestamps.
pub(super) fn explains(sample: &Sample) -> bool {
    let (late, again) = (overtaken(sample), sample.grown(Snmp, "TcpRetransSegs"));
    late >= SOME && late.saturating_mul(100) >= sample.grown(Snmp, "TcpOutSegs") && late >= again
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    if !explains(sample) {
        return;
    }
    let (late, sent) = (overtaken(sample), sample.grown(Snmp, "TcpOutSegs").max(1));
    let most = paces(sample).filter(|one| one.grown.overtaken > 0).max_by_key(|one| one.grown.overtaken);
    let to = most.as_ref().map_or(String::new(), |one| format!(" to {}", one.now.peer));
    let who = most.as_ref().filter(|one| one.now.owner.is_known());
    let who = who.map_or(String::new(), |one| format!(", such as segments of {}", one.now.owner));
    let title = format!("segments overtake each other on the path{to}{who}: TCP takes the late ones for lost");
    let again = sample.grown(Snmp, "TcpRetransSegs");
    let draft = found
        .add(Severity::Warning, Confidence::Likely, title)
        .proof(OVERTAKEN.iter().chain(NEEDLESS).filter_map(|name| sample.evidence(Netstat, name, None)))
        .proof(["TcpRetransSegs", "TcpOutSegs"].into_iter().filter_map(|name| sample.evidence(Snmp, name, None)))
        .proof(most.as_ref().map(|one| one.evidence("reordering events", |all| all.overtaken)))
        .cost(format!("{late} segments overtook others, {again} were retransmitted needlessly"))
        .reach(Reach::part(again, sent.saturating_add(again)).or_more_than(HARMFUL_PERCENT), "sent segments")
        .remedy(
            "",
            "look for a device on the path that sends the packets of one connection over several links: a bond in mode \
             balance-rr, routes that are chosen per packet",
            "",
        )
        .remedy(
            "netwren sockets 'reord_seen > 0' --by peer_addr --sum reord_seen --limit 10",
            "shows the peers: if all are in one network, its path reorders, otherwise the link of this host",
            "",
        );
    if let Some(one) = most {
        draft.object(one.now.peer.to_string()).holder(&one.now.owner);
    }
}
