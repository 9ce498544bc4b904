//! The outputs of an agent's parts, in one report.

use crate::notes;
use crate::reload::Monitors;
use export::{StatusReport, StoppedPart};
use runtime::run_group::RunGroup;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The view of a part's outputs.
pub(super) struct PartOutputs {
    pub(super) monitors: Monitors,
    /// Records that the kernel could not deliver.
    pub(super) lost: Arc<AtomicU64>,
}

/// Reports the outputs of all parts. Those of a part that has ended are as they were at its end.
pub fn group_report(group: &RunGroup) -> StatusReport {
    let (mut report, mut lost) = (StatusReport::default(), 0);
    group.parts(|name, outputs, trouble| {
        if let Some(part) = outputs.and_then(|outputs| outputs.downcast_ref::<PartOutputs>()) {
            report.outputs.extend(part.monitors.reports(name));
            lost += part.lost.load(Relaxed);
        }
        if outputs.is_none() && trouble.is_none() {
            report.silent.push(name);
        }
        let stopped = trouble.map(|why| StoppedPart { part: name, why: why.to_owned() });
        report.stopped.extend(stopped);
    });
    report.lost_in_kernel = Some(lost);
    report
}

/// The summed counts of all parts, for the service manager.
pub fn group_status_line(group: &RunGroup) -> String {
    let StatusReport { outputs, stopped, .. } = group_report(group);
    let line = notes::status_line(outputs.into_iter().map(|output| output.status));
    let names: Vec<&str> = stopped.iter().map(|part| part.part).collect();
    if names.is_empty() { line } else { format!("{line}, stopped: {}", names.join(", ")) }
}
