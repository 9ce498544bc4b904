//! CPUs that do not process their waiting packets in time.

use record::rows::CounterSource::Softnet;
use record::rows::{Confidence, Severity};

use super::remedy::larger;
use super::words::of_object;
use super::{Check, Findings, Sample};

/// Fewest squeezes per second for a finding; any busy host has fewer.
const OFTEN_PER_S: f64 = 50.0;

pub(super) const CHECK: Check = Check {
    id: "softnet-squeeze",
    needs: &[],
    area: "cpu",
    about: "A CPU repeatedly stops receiving packets because its time or budget is used up.",
    rule: "`time_squeeze` of a CPU grew by more than 50 per second.",
    sources: "/proc/net/softnet_stat, column 3",
    refuted_by: "CPUs with idle time: compare `netwren counters 'source = softnet' --watch` with top(1).",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let packets = larger(sample.setting("core/netdev_budget", 0), 600);
    let time_us = larger(sample.setting("core/netdev_budget_usecs", 0), 8000);
    for (cpu, moved) in sample.objects(Softnet, "time_squeeze") {
        let times = moved.grown();
        if (times as f64) < OFTEN_PER_S * sample.seconds().max(0.1) {
            continue;
        }
        let name = String::from_utf8_lossy(cpu);
        found
            .add(Severity::Hint, Confidence::Likely, format!("{name} cannot process its packets in time"))
            .object(name.clone())
            .proof([of_object("time_squeeze", cpu, moved, None)])
            .cost("packets wait longer; nothing is lost yet")
            .remedy(
                format!("sysctl -w net.core.netdev_budget={packets} net.core.netdev_budget_usecs={time_us}"),
                "processes more packets at once",
                "programs on the CPU wait longer",
            )
            .remedy("", "distribute packets over CPUs: more queues (ethtool -L), or receive packet steering", "");
    }
}
