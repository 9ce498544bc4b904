//! Full receive buffers of TCP sockets.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};

/// Counters of data that was discarded because of a full buffer.
const LOST: &[&str] = &[
    "TcpExtRcvPruned",
    "TcpExtOfoPruned",
    "TcpExtTCPRcvQDrop",
    "TcpExtTCPOFODrop",
    "TcpExtTCPBacklogDrop",
    "TcpExtTCPZeroWindowDrop",
];

pub(super) const CHECK: Check = Check {
    id: "rcv-prune",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "Received segments are discarded because a receive buffer is full; the peer must retransmit them.",
    rule: "RcvPruned, OfoPruned, TCPRcvQDrop, TCPOFODrop, TCPBacklogDrop or TCPZeroWindowDrop grew by at least 5. \
           Less than 1 % of the received segments is a hint.",
    sources: "/proc/net/netstat",
    refuted_by: "no rows in `netwren sockets 'recv_q > 64k' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let lost: u64 = LOST.iter().map(|name| sample.grown(Netstat, name)).sum();
    if lost < 5 {
        return;
    }
    let proof = LOST.iter().filter_map(|name| sample.evidence(Netstat, name, None));
    let worst = sample.after.unread.iter().max_by_key(|one| one.queue);
    let title = match worst {
        Some(one) => format!("segments are discarded: {} reads too slowly", one.words()),
        None => "segments are discarded: a program reads too slowly for its receive buffer".to_owned(),
    };
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .socket(worst)
        .proof(proof)
        .lost(lost, "segments discarded")
        .reach(Reach::part(lost, sample.grown(Snmp, "TcpInSegs")), "received segments")
        .remedy("netwren sockets 'proto = tcp' --sort recv_q --limit 10", "shows the processes that do not read", "")
        .remedy("", "set a larger third number in net.ipv4.tcp_rmem", "each socket may take that much memory");
}
