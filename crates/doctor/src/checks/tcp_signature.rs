//! TCP segments whose signature (MD5 or TCP-AO) is missing or wrong.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Probe, Sample};

/// Fewest segments for more than a hint: a peer that tries to connect sends one per second or less.
const SOME: u64 = 3;

pub(super) const CHECK: Check = Check {
    id: "tcp-signature",
    needs: &[Probe::Drops],
    area: "tcp",
    about: "TCP segments are dropped because their signature (MD5 or TCP-AO, used by BGP) is missing, wrong or \
            unexpected.",
    rule: "TCPMD5NotFound, TCPMD5Failure, TCPMD5Unexpected, TCPAOBad, TCPAOKeyNotFound or TCPAORequired grew; 3 or \
           more are a warning. Unexpected signatures are a hint: any host can send them.",
    sources: "/proc/net/netstat; the tracepoint kfree_skb via BPF: TCP_MD5NOTFOUND and similar reasons",
    refuted_by: "a peer that was just configured, and whose segments are accepted now.",
    run,
};

const LOSSES: &[(&str, &str)] = &[
    ("TcpExtTCPMD5NotFound", "they have no MD5 signature, but this host has a key for the peer"),
    ("TcpExtTCPMD5Failure", "their MD5 signature is wrong: the two ends have different keys"),
    ("TcpExtTCPAOBad", "their TCP-AO signature is wrong: the two ends have different keys"),
    ("TcpExtTCPAORequired", "they have no TCP-AO signature, but this host has a key for the peer"),
    ("TcpExtTCPAOKeyNotFound", "this host does not have the TCP-AO key that the peer uses"),
    (UNEXPECTED, "they have an MD5 signature, but this host has no key for the peer"),
];
const UNEXPECTED: &str = "TcpExtTCPMD5Unexpected";

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let grown = |loss: &&(&str, &str)| sample.grown(Netstat, loss.0);
    let Some(worst) = LOSSES.iter().max_by_key(grown) else { return };
    let lost = grown(&worst);
    if lost == 0 {
        return;
    }
    let dropped = sample.around.dropped(CHECK.id);
    let severity = if lost >= SOME && worst.0 != UNEXPECTED { Severity::Warning } else { Severity::Hint };
    found
        .add(severity, Confidence::Certain, format!("TCP segments are dropped: {}{}", worst.1, dropped.example()))
        .proof(LOSSES.iter().filter_map(|(name, _)| sample.evidence(Netstat, name, None)))
        .proof(dropped.evidence())
        .lost(lost, "segments dropped")
        .remedy("", "set the same key for the session on both ends (BGP: `password` of the neighbour)", "")
        .remedy(
            "netwren drops 'reason in (TCP_MD5NOTFOUND, TCP_MD5FAILURE, TCP_MD5UNEXPECTED)' --for 5 -o wide",
            "shows these segments with their peers",
            "",
        );
}
