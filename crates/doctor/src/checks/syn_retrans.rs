//! Peers that do not answer new connections.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::accepting::is_long;
use super::dropped::Dropped;
use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample, ecn_syn};
use crate::seen::PeerHost;

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
           port of a peer; otherwise a hint: monitors ask hosts that are off, and scanners do not answer SYN-ACKs. \
           Also a hint: at both readings at least 3 SYNs wait for a port of a peer with which no connection exists, \
           because programs give up before the kernel repeats a SYN.",
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
    if is_ecn() {
        return;
    }
    if again < if is_own { SOME } else { MANY } {
        return given_up(sample, found);
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

/// Reports the peer of most connections that programs give up within a second.
fn given_up(sample: &Sample, found: &mut Findings<'_>) {
    let (before, after) = (&sample.before, &sample.after);
    let is_connected = |peer: &PeerHost| [before, after].iter().any(|one| one.at_ease.contains_key(peer));
    let waiting = after.pace.opening.iter().filter_map(|(to, count)| {
        let least = before.pace.opening.get(to)?.min(count);
        (u64::from(*least) >= SOME && !is_connected(&to.0)).then_some((to, *least))
    });
    let Some(((peer, port), least)) = waiting.max_by_key(|(_, least)| *least).filter(|_| is_long(sample)) else {
        return;
    };
    let title = format!("{peer} port {port} does not answer: programs give up connections to it within a second");
    found
        .add(Severity::Hint, Confidence::Likely, title)
        .object(format!("{peer} port {port}"))
        .proof([state(format!("SYNs to {peer} port {port} that wait at both readings"), least, None)])
        .proof(sample.evidence(Snmp, "TcpActiveOpens", None))
        .cost("each connection waits in vain, or for the program's next address of the same name")
        .reach(Reach::Nobody, "")
        .remedy(
            "netwren sockets 'state = syn_sent' --by peer_addr,peer_port --limit 10",
            "shows the peers that do not answer: a service is down, or a filter is on the path",
            "",
        );
}
