//! Paths that deliver segments twice.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::pace::{TransferRate, paces};
use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};

/// Fewest duplicates for a finding.
const SOME: u64 = 20;
/// Up to this share, in percent, they waste little.
const HARMLESS_PERCENT: u64 = 5;

const DUBIOUS: &str = "TcpExtTCPDSACKIgnoredDubious";
const ANSWERED: &str = "TcpExtTCPDSACKOldSent";
const OLD: &str = "TcpExtPAWSEstab";
const GAPS: &str = "TcpExtTCPOFOQueue";

pub(super) const CHECK: Check = Check {
    id: "duplicates",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "The path delivers segments twice.",
    rule: "Peers report at least 20 duplicates, and 1 % of the sent segments, that this host did not retransmit. Or at \
           least 20 segments, and 1 % of the received ones, arrived again with a new timestamp, twice as many as came \
           after a gap. Up to 5 % is a hint.",
    sources: "/proc/net/netstat: TCPDSACKIgnoredDubious, TCPDSACKRecv, TCPDSACKOldSent, TCPOFOQueue, PAWSEstab; \
              snmp: OutSegs, InSegs, RetransSegs; tcp_info via sock_diag: dsack_dups, total_retrans",
    refuted_by: "a peer that retransmits as much as arrives again: then acknowledgements of this host are lost.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (sent, received) = (sample.grown(Snmp, "TcpOutSegs"), sample.grown(Snmp, "TcpInSegs"));
    let is_some = |count: u64, of: u64| count >= SOME && count.saturating_mul(100) >= of;
    // A segment with an old timestamp is answered in the same way.
    let arrived = sample.grown(Netstat, ANSWERED).saturating_sub(sample.grown(Netstat, OLD));
    let reported = sample.grown(Netstat, DUBIOUS);
    if is_some(reported, sent) {
        add_sent(sample, reported, sent, found);
    } else if is_some(arrived, received) && arrived >= sample.grown(Netstat, GAPS).saturating_mul(2) {
        add_received(sample, arrived, received, found);
    }
}

/// Duplicates of what this host sent: it knows that it did not retransmit them.
fn add_sent(sample: &Sample, count: u64, sent: u64, found: &mut Findings<'_>) {
    let of = |one: &TransferRate<'_>| one.grown.duplicates.saturating_sub(one.grown.retransmitted);
    let most = paces(sample).filter(|one| of(one) > 0).max_by_key(|one| of(one));
    let to = most.as_ref().map_or(String::new(), |one| format!(" to {}", one.now.peer));
    let who = most.as_ref().filter(|one| one.now.owner.is_known());
    let who = who.map_or(String::new(), |one| format!(", such as segments of {}", one.now.owner));
    let draft = found
        .add(Severity::Warning, Confidence::Likely, format!("the path{to} delivers segments twice{who}"))
        .proof([DUBIOUS, "TcpExtTCPDSACKRecv"].into_iter().filter_map(|name| sample.evidence(Netstat, name, None)))
        .proof(["TcpRetransSegs", "TcpOutSegs"].into_iter().filter_map(|name| sample.evidence(Snmp, name, None)))
        .proof(most.as_ref().map(|one| one.evidence("duplicates that the peer reports", |all| all.duplicates)))
        .cost(format!("{count} segments arrived twice, although this host sent them once"))
        .reach(Reach::part(count, sent).or_more_than(HARMLESS_PERCENT), "sent segments")
        .remedy("", "look for a loop or a copy on the path: a bond in mode broadcast, a mirrored port, a bridge", "");
    if let Some(one) = most {
        draft.object(one.now.peer.to_string()).holder(&one.now.owner);
    }
}

/// Duplicates of what peers sent.
fn add_received(sample: &Sample, count: u64, received: u64, found: &mut Findings<'_>) {
    let title = "segments arrive twice: the path duplicates them, or the peers retransmit them needlessly";
    found
        .add(Severity::Warning, Confidence::Likely, title.to_owned())
        .proof([ANSWERED, GAPS].into_iter().filter_map(|name| sample.evidence(Netstat, name, None)))
        .proof(sample.evidence(Snmp, "TcpInSegs", None))
        .cost(format!("{count} segments arrived again"))
        .reach(Reach::part(count, received).or_more_than(HARMLESS_PERCENT), "received segments")
        .remedy(
            "nstat -n; sleep 3; nstat -s TcpRetransSegs",
            "run it at the peers: if they retransmit less, the path duplicates (a loop, a bond in mode broadcast, a \
             mirrored port), otherwise acknowledgements of this host are lost or late",
            "",
        );
}
