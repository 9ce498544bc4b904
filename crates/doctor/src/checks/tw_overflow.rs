//! Connections that end without TIME_WAIT.

use record::rows::CounterSource::{Netstat, Sockstat};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::remedy::larger;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "tw-overflow",
    needs: &[],
    area: "tcp",
    about: "Too many connections are in TIME_WAIT: others end without it.",
    rule: "TCPTimeWaitOverflow grew. It is a hint: the connections have ended.",
    sources: "/proc/net/netstat: TCPTimeWaitOverflow; /proc/net/sockstat: TCP tw; net.ipv4.tcp_max_tw_buckets",
    refuted_by: "`TCP.tw` far below tcp_max_tw_buckets.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtTCPTimeWaitOverflow";
    let cut = sample.grown(Netstat, name);
    if cut == 0 {
        return;
    }
    let limit = sample.setting("ipv4/tcp_max_tw_buckets", 0);
    let proof = [sample.evidence(Netstat, name, None), sample.evidence(Sockstat, "TCP.tw", limit)];
    let title = "too many connections are in TIME_WAIT: others end without it".to_owned();
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .proof(proof.into_iter().flatten())
        .lost(cut, "connections ended without TIME_WAIT: old segments may reach new connections")
        .reach(Reach::Nobody, "")
        .remedy("netwren sockets 'state = time_wait' --by peer --limit 10", "shows the destinations", "")
        .remedy("", "keep connections open and reuse them", "")
        .remedy(
            format!("sysctl -w net.ipv4.tcp_max_tw_buckets={}", larger(limit, 65_536)),
            "allows more connections in TIME_WAIT",
            "each takes 250 bytes of memory",
        );
}
