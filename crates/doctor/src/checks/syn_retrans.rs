//! Peers that do not answer new connections.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Sample};

/// Fewest retransmissions for a finding if own connections wait; fewer are lost now and then.
const SOME: u64 = 3;
/// Fewest retransmissions for a finding otherwise: scanners leave some SYN-ACKs unanswered on any reachable host.
const MANY: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "syn-retrans",
    area: "tcp",
    about: "SYNs, or the answers to them, are sent again: the other side is silent.",
    rule: "TCPSynRetrans grew by at least 10; by 3 while own connections wait for an answer. The peer \
           is the one towards whom most SYNs were sent again.",
    sources: "/proc/net/netstat: TCPSynRetrans; connections in SYN_SENT by sock_diag",
    refuted_by: "no connection in `netwren sockets 'state in (syn_sent, syn_recv)'`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtTCPSynRetrans";
    let again = sample.grown(Netstat, name);
    let is_own = !sample.after.unanswered.is_empty();
    if again < if is_own { SOME } else { MANY } {
        return;
    }
    let most = sample.after.unanswered.iter().max_by_key(|(_, count)| **count);
    let title = match most {
        Some(((peer, port), _)) => format!("connections do not come about: {peer} port {port} does not answer"),
        None => "connections do not come about: the other side does not answer".to_owned(),
    };
    let waiting = most.map(|((peer, port), count)| {
        state(format!("connections to {peer} port {port} without an answer"), *count, None)
    });
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(most.map_or(String::new(), |((peer, port), _)| format!("{peer} port {port}")))
        .proof(sample.evidence(Netstat, name, None))
        .proof(waiting)
        .cost(format!("{again} SYNs sent again; each waits a second, then two, then four"))
        .remedy(
            "netwren sockets 'state in (syn_sent, syn_recv)' --by peer_addr,peer_port --limit 10",
            "shows who does not answer: a service that is down, or a filter on the way",
            "",
        );
}
