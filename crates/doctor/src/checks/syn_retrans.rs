//! Peers that do not answer when connections begin.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "syn-retrans",
    area: "tcp",
    about: "SYNs, or the answers to them, are sent again: the other side is silent.",
    rule: "TCPSynRetrans grew by at least 10.",
    sources: "/proc/net/netstat: TCPSynRetrans",
    refuted_by: "no connection in `netwren sockets 'state in (syn_sent, syn_recv)'`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtTCPSynRetrans";
    let again = sample.grown(Netstat, name);
    if again < 10 {
        return;
    }
    found
        .add(
            Severity::Warning,
            Confidence::Likely,
            "connections do not come about: the other side does not answer".to_owned(),
        )
        .proof(sample.evidence(Netstat, name, None))
        .cost(format!("{again} SYNs sent again; each waits a second, then two, then four"))
        .remedy(
            "netwren sockets 'state in (syn_sent, syn_recv)' --by peer_addr,peer_port --limit 10",
            "shows who does not answer: a service that is down, or a filter on the way",
            "",
        );
}
