//! TCP as a whole is at its memory limit.

use record::rows::CounterSource::{Netstat, Sockstat};
use record::rows::{Confidence, Severity};

use super::remedy::larger_memory;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "tcp-memory",
    needs: &[],
    area: "tcp",
    about: "TCP sockets use so much memory in total that windows shrink and segments are dropped.",
    rule: "TCPMemoryPressures grew, or the memory is above the second number of tcp_mem.",
    sources: "/proc/net/netstat: TCPMemoryPressures; /proc/net/sockstat: TCP mem; net.ipv4.tcp_mem",
    refuted_by: "`TCP.mem` below tcp_mem in `netwren counters name = TCP.mem`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let pressures = sample.grown(Netstat, "TcpExtTCPMemoryPressures");
    let (used, limit) = (sample.counter(Sockstat, "TCP.mem"), sample.setting("ipv4/tcp_mem", 1));
    let is_over = used.zip(limit).is_some_and(|(used, limit)| limit > 0 && used.after >= limit);
    if pressures == 0 && !is_over {
        return;
    }
    let proof =
        [sample.evidence(Sockstat, "TCP.mem", limit), sample.evidence(Netstat, "TcpExtTCPMemoryPressures", None)];
    found
        .add(Severity::Critical, Confidence::Certain, "TCP has reached its memory limit: windows shrink".to_owned())
        .object("tcp_mem")
        .proof(proof.into_iter().flatten())
        .cost("all connections of the host become slower, new data is dropped")
        .remedy(
            "netwren sockets --columns process,recv_q,send_q --sort recv_q",
            "shows the processes whose sockets use it",
            "",
        )
        .remedies([larger_memory(sample, "ipv4/tcp_mem", "TCP.mem")]);
}
