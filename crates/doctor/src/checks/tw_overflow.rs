//! Connections that end without TIME_WAIT.

use record::rows::CounterSource::{Netstat, Sockstat};
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "tw-overflow",
    area: "tcp",
    about: "So many connections are in TIME_WAIT that others end without it.",
    rule: "TCPTimeWaitOverflow grew.",
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
        .lost(cut, "connections ended without TIME_WAIT, so that old segments may reach new ones")
        .remedy("netwren sockets 'state = time_wait' --by peer --limit 10", "shows towards whom", "")
        .remedy("", "keep connections open and use them again", "")
        .remedy(
            format!("sysctl -w net.ipv4.tcp_max_tw_buckets={}", limit.unwrap_or(65_536).saturating_mul(2)),
            "lets more of them wait",
            "250 bytes of memory each",
        );
}
