//! Peers that do not answer new connections.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::dropped::Dropped;
use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample, ecn_syn};

/// Fewest retransmissions for a finding if own connections wait; fewer are lost now and then.
const SOME: u64 = 3;
/// Fewest retransmissions for a finding otherwise: scanners leave some SYN-ACKs unanswered on any reachable host.
const MANY: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "syn-retrans",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "SYNs or SYN-ACKs are retransmitted: the peer does not answer.",
    rule: "TCPSynRetrans grew by at least 10, or by 3 while connections of this host wait for an answer. The peer \
           with the most retransmitted SYNs is named. It is a warning if at least 3 connections wait for the same \
           port of a peer; otherwise a hint: monitors ask hosts that are off, and scanners do not answer SYN-ACKs.",
    sources: "/proc/net/netstat: TCPSynRetrans; connections in SYN_SENT via sock_diag",
    refuted_by: "no connection in `netwren sockets 'state in (syn_sent, syn_recv)'`.",
    run,
};

/// True if programs need a peer that does not answer: more than a monitor's single attempt waits for it.
pub(super) fn is_wanted(sample: &Sample) -> bool {
    sample.after.unanswered.values().any(|count| u64::from(*count) >= SOME)
}

/// True if connections of this host wait for the receiver of these packets.
pub(super) fn wait_for(sample: &Sample, dropped: &Dropped<'_>) -> bool {
    let receivers = || dropped.all.iter().filter_map(|one| Some(one.ends?.1.unmapped()));
    let waiting = sample.after.unanswered.iter().filter(|(_, count)| u64::from(**count) >= SOME);
    waiting.into_iter().any(|((peer, _), _)| receivers().any(|to| to == peer.addr.unmapped()))
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtTCPSynRetrans";
    let again = sample.grown(Netstat, name);
    let is_own = !sample.after.unanswered.is_empty();
    let is_ecn = || !is_own && ecn_syn::swallowed(sample).is_some();
    if again < if is_own { SOME } else { MANY } || is_ecn() {
        return;
    }
    let most = sample.after.unanswered.iter().max_by_key(|(_, count)| **count);
    let title = match most {
        Some(((peer, port), _)) => format!("connections are not established: {peer} port {port} does not answer"),
        None => "connections are not established: the peer does not answer".to_owned(),
    };
    let waiting = most.map(|((peer, port), count)| {
        state(format!("connections to {peer} port {port} without an answer"), *count, None)
    });
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(most.map_or(String::new(), |((peer, port), _)| format!("{peer} port {port}")))
        .proof(sample.evidence(Netstat, name, None))
        .proof(waiting)
        .cost(format!("{again} SYNs retransmitted; each waits one second, then two, then four"))
        .reach(if is_wanted(sample) { Reach::part(1, 1) } else { Reach::Nobody }, "")
        .remedy(
            "netwren sockets 'state in (syn_sent, syn_recv)' --by peer_addr,peer_port --limit 10",
            "shows the peers that do not answer: a service is down, or a filter is on the path",
            "",
        );
}
