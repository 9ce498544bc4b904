//! CPUs with a full backlog of received packets.

use record::rows::CounterSource::Softnet;
use record::rows::{Confidence, Severity};

use super::remedy::larger;
use super::words::of_object;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "softnet-drop",
    needs: &[],
    area: "cpu",
    about: "A CPU drops received packets because its backlog is full.",
    rule: "`dropped` or `flow_limit_count` of a CPU grew.",
    sources: "/proc/net/softnet_stat, columns 2 and 11",
    refuted_by: "`netwren counters 'source = softnet and name = dropped' --watch` without growth.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let backlog = larger(sample.setting("core/netdev_max_backlog", 0), 10_000);
    for name in ["dropped", "flow_limit_count"] {
        for (cpu, moved) in sample.objects(Softnet, name).filter(|(_, moved)| moved.grown() > 0) {
            let title = format!("{} drops received packets: its backlog is full", String::from_utf8_lossy(cpu));
            found
                .add(Severity::Critical, Confidence::Certain, title)
                .object(String::from_utf8_lossy(cpu))
                .proof([of_object(name, cpu, moved, None)])
                .lost(moved.grown(), "packets dropped")
                .remedy(
                    format!("sysctl -w net.core.netdev_max_backlog={backlog}"),
                    "allows more packets in the backlog",
                    "packets wait longer",
                )
                .remedy("", "distribute packets over CPUs: more queues (ethtool -L), or receive packet steering", "");
        }
    }
}
