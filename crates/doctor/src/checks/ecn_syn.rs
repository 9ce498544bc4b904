//! SYNs that ask for ECN and vanish.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::PeerHost;

/// Fewest retransmitted SYNs.
const AGAIN: u64 = 2;
/// Fewest connections that wait, if none is established.
const SOME: u32 = 3;

/// Values of `tcp_ecn` with which own SYNs ask for ECN (Documentation/networking/ip-sysctl.rst).
const ASKS: &[i64] = &[1, 3, 4];

pub(super) const CHECK: Check = Check {
    id: "ecn-syn",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "SYNs that ask for ECN are lost on the path, and their retransmissions without ECN are answered.",
    rule: "tcp_ecn asks for ECN, at least 2 SYNs were retransmitted, and at least two thirds of the connections \
           that this host opened needed one. At least 3 connections to a port, or one while others to the peer are \
           established, wait for the answer to their first SYN, none to this peer waits for the answer to a later \
           one, and none uses ECN.",
    sources: "/proc/net/netstat: TCPSynRetrans; snmp: ActiveOpens; connections and their options via sock_diag",
    refuted_by: "connections that need no retransmission with ECN, or still need one with `net.ipv4.tcp_ecn=2`.",
    run,
};

/// Returns the peer and the port that SYNs with ECN do not reach, and the number of connections that wait.
pub(super) fn swallowed(sample: &Sample) -> Option<(&PeerHost, u16, u32)> {
    let again = sample.grown(Netstat, "TcpExtTCPSynRetrans");
    let opened = sample.grown(Snmp, "TcpActiveOpens");
    let asks = sample.setting("ipv4/tcp_ecn", 0).is_some_and(|ecn| ASKS.contains(&ecn));
    // SYNs with data are lost on some paths as well, and their retransmissions pass.
    let is_fast_open = sample.grown(Netstat, "TcpExtTCPFastOpenActiveFail") > 0;
    if !asks || is_fast_open || again < AGAIN || again.saturating_mul(3) < opened.saturating_mul(2) {
        return None;
    }
    let waits = |peer: &PeerHost| {
        [&sample.before, &sample.after].iter().any(|one| one.unanswered.keys().any(|(other, _)| other == peer))
    };
    let has_ecn = |peer: &PeerHost| sample.after.pace.ecn_peers.contains(peer);
    let is_many = |peer: &PeerHost, count: u32| count >= SOME || sample.after.at_ease.contains_key(peer);
    let opening = sample.after.pace.opening.iter();
    let all = opening.filter(|((peer, _), count)| is_many(peer, **count) && !waits(peer) && !has_ecn(peer));
    all.max_by_key(|(_, count)| **count).map(|((peer, port), count)| (peer, *port, *count))
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let Some((peer, port, count)) = swallowed(sample) else { return };
    let (again, name) = (sample.grown(Netstat, "TcpExtTCPSynRetrans"), "TcpExtTCPSynRetrans");
    let title = format!("SYNs that ask for ECN do not reach {peer} port {port}, those without ECN do");
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(format!("{peer} port {port}"))
        .proof(sample.evidence(Netstat, name, None))
        .proof(sample.evidence(Snmp, "TcpActiveOpens", None))
        .proof([
            state("tcp_ecn", sample.setting("ipv4/tcp_ecn", 0).unwrap_or(0), None),
            state(
                format!("connections to {peer} port {port} that wait for the answer to their first SYN"),
                count,
                None,
            ),
        ])
        .cost(format!("each of {again} connections began a second late"))
        .remedy(
            "sysctl -w net.ipv4.tcp_ecn=2",
            "uses ECN only if the peer asks for it, so that SYNs pass",
            "connections of this host do without ECN",
        )
        .remedy("", "look for a firewall on the path that drops SYNs with the flags ECE and CWR", "");
}
