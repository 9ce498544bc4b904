//! Sockets without an owner that still wait for the network.

use record::rows::CounterSource::{Netstat, Sockstat};
use record::rows::{Confidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "orphans",
    needs: &[],
    area: "tcp",
    about: "Closed connections whose data the peers do not accept accumulate, or are reset because there are too many.",
    rule: "TCPAbortOnMemory grew, or there are more orphans than half of tcp_max_orphans.",
    sources: "/proc/net/netstat: TCPAbortOnMemory; /proc/net/sockstat: TCP orphan; net.ipv4.tcp_max_orphans",
    refuted_by: "few sockets without owner in `netwren sockets 'state in (fin_wait1, last_ack, closing)'`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let aborted = sample.grown(Netstat, "TcpExtTCPAbortOnMemory");
    let (orphans, limit) = (sample.counter(Sockstat, "TCP.orphan"), sample.setting("ipv4/tcp_max_orphans", 0));
    let are_many =
        orphans.zip(limit).is_some_and(|(orphans, limit)| limit > 0 && orphans.after.saturating_mul(2) > limit);
    if aborted == 0 && !are_many {
        return;
    }
    let severity = if aborted > 0 { Severity::Critical } else { Severity::Warning };
    let proof =
        [sample.evidence(Netstat, "TcpExtTCPAbortOnMemory", None), sample.evidence(Sockstat, "TCP.orphan", limit)];
    let draft = found
        .add(
            severity,
            Confidence::Certain,
            "too many closed connections are waiting for peers that do not answer".to_owned(),
        )
        .proof(proof.into_iter().flatten())
        .remedy(
            "netwren sockets 'state in (fin_wait1, last_ack, closing)' --by peer_addr --limit 10",
            "shows the peers that do not accept their data",
            "",
        )
        .remedy("sysctl -w net.ipv4.tcp_orphan_retries=2", "aborts them sooner", "slow peers may lose the last data");
    if aborted > 0 {
        draft.lost(aborted, "connections reset");
    } else {
        draft.cost("memory; beyond the limit connections are reset");
    }
}
