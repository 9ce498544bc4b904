//! Servers that cannot accept connections because they have too many files open.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::Descriptors;

/// Fewest open descriptors for a finding, in percent of the limit.
const MANY_PERCENT: u64 = 90;
/// Default of fs.nr_open: the kernel refuses larger limits.
const OPEN_MAX: u64 = 1_048_576;

pub(super) const CHECK: Check = Check {
    id: "fd-limit",
    needs: &[Probe::Descriptors, Probe::Sockets],
    area: "tcp",
    about: "A server with waiting connections has nearly reached its limit of open files: accept() fails.",
    rule: "A process with waiting connections has used at least 90 % of its limit of file descriptors.",
    sources: "accept queues via sock_diag; /proc/PID/fd, /proc/PID/limits",
    refuted_by: "`ls /proc/PID/fd | wc -l` far below \"Max open files\" in /proc/PID/limits.",
    run,
};

/// True if a process has nearly reached its limit.
pub(super) fn is_near_limit(one: &Descriptors) -> bool {
    one.limit > 0 && one.used.saturating_mul(100) >= one.limit.saturating_mul(MANY_PERCENT)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in &sample.descriptors {
        if !is_near_limit(one) {
            continue;
        }
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let is_over = one.used >= one.limit;
        let severity = if is_over { Severity::Critical } else { Severity::Warning };
        let title = format!("{} has {} of {} file descriptors open", one.process, one.used, one.limit);
        // Beyond fs.nr_open no process is allowed more.
        let command = (one.limit < OPEN_MAX).then(|| {
            let more = one.limit.saturating_mul(4).min(OPEN_MAX);
            let effect = "allows the process more, until it ends; LimitNOFILE= in its unit makes this permanent";
            // With the colon, the hard limit remains as it is.
            let colon = if more <= one.hard_limit { ":" } else { "" };
            (format!("prlimit --pid {} --nofile={more}{colon}", one.pid), effect, "")
        });
        let waiting = sample.after.listeners.iter().filter(|listener| listener.owner.pid == Some(one.pid));
        found
            .add(severity, Confidence::Certain, title)
            .object(one.process.clone())
            .proof([state("open file descriptors", number(one.used), Some(number(one.limit)))])
            .proof(waiting.take(8).map(|listener| {
                state(format!("accept queue of {}", listener.name), listener.queue, listener.limit.map(i64::from))
            }))
            .cost(if is_over { "accept() fails: connections wait, then are lost" } else { "soon accept() fails" })
            .remedies(command)
            .remedy(
                "",
                "if the program leaks file descriptors, a larger limit only delays the end: it must be fixed",
                "",
            );
    }
}
