//! Segments outside the window of established connections.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};

/// Fewest segments for a finding; late ones occur on every path.
const SOME: u64 = 5;

const CHALLENGES: &[&str] = &["TcpExtTCPChallengeACK", "TcpExtTCPACKSkippedChallenge"];
const SYNS: &str = "TcpExtTCPSYNChallenge";

pub(super) const CHECK: Check = Check {
    id: "challenged",
    needs: &[Probe::Drops],
    area: "tcp",
    about: "Resets, SYNs or acknowledgements outside the window reach established connections: the kernel answers with \
            a challenge ACK and keeps the connection.",
    rule: "TCPChallengeACK and TCPACKSkippedChallenge grew by at least 5 together. It is a hint, because the kernel \
           ignores such segments, unless most are SYNs (TCPSYNChallenge) and these are 1 % of the accepted \
           connections: then peers cannot connect from that port until their next attempt.",
    sources: "/proc/net/netstat: TCPChallengeACK, TCPSYNChallenge, TCPACKSkippedChallenge; the tracepoint kfree_skb \
              via BPF: TCP_RESET, TCP_TOO_OLD_ACK, TCP_ACK_UNSENT_DATA",
    refuted_by: "segments that a path delivers late: `netwren drops 'reason ~ TCP' --events --for 5` shows them.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let lost: u64 = CHALLENGES.iter().map(|name| sample.grown(Netstat, name)).sum();
    if lost < SOME {
        return;
    }
    let dropped = sample.around.dropped(CHECK.id);
    let syns = sample.grown(Netstat, SYNS);
    let is_syn = syns.saturating_mul(2) >= lost;
    let why = match is_syn {
        true => "peers send SYNs on connections that are still open here: they restarted, or a NAT reuses its ports",
        false => "resets or acknowledgements outside the window reach open connections: forged, or late",
    };
    let reach = if is_syn { Reach::part(syns, sample.grown(Snmp, "TcpPassiveOpens")) } else { Reach::Nobody };
    let draft = found
        .add(Severity::Warning, Confidence::Likely, format!("{why}{}", dropped.example()))
        .proof(CHALLENGES.iter().chain([&SYNS]).filter_map(|name| sample.evidence(Netstat, name, None)))
        .proof(dropped.evidence())
        .lost(lost, "segments answered with a challenge ACK, or ignored")
        .reach(reach, "")
        .remedy("netwren drops 'reason ~ TCP' --events --for 5", "shows the segments and their senders", "");
    if is_syn {
        draft.remedy("", "make the NAT keep its entries longer than this host keeps idle connections", "");
    }
}
