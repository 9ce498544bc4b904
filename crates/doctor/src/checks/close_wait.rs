//! Programs that do not close connections that their peers have closed.

use record::rows::{Confidence, Evidence, Severity};

use super::{Check, Findings, Probe, Sample};

/// Fewest such connections of one process for a finding.
const MANY: u32 = 50;

pub(super) const CHECK: Check = Check {
    id: "close-wait",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "A program does not close connections that its peers have closed: they accumulate in CLOSE_WAIT.",
    rule: "A process has at least 50 connections in CLOSE_WAIT at both readings, and no fewer at the second. \
           Connections on which it sent data within two seconds do not count: only their peers' direction is closed.",
    sources: "connection states, send queues and times of the last data via sock_diag",
    refuted_by: "a decreasing number in `netwren sockets 'state = close_wait' --by process --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (owner, now) in &sample.after.unclosed {
        let before = sample.before.unclosed.get(owner).map_or(0, |of| of.count);
        if before < MANY || now.count < before {
            continue;
        }
        found
            .add(
                Severity::Warning,
                Confidence::Certain,
                format!("{owner} does not close {} connections that its peers have closed", now.count),
            )
            .object(owner.name.clone())
            .holder(owner)
            .proof([Evidence {
                counter: format!("connections in CLOSE_WAIT, such as {}", now.example),
                before: Some(before.into()),
                after: now.count.into(),
                limit: Some(MANY.into()),
            }])
            .cost("each uses a file descriptor and memory, until the program runs out of them")
            .remedy(
                "netwren sockets 'state = close_wait' --by process,local_port --limit 10",
                "shows the processes that own them",
                "",
            )
            .remedy(
                "",
                "a bug in the program: it must close a connection when the peer has closed it; a restart helps for now",
                "",
            );
    }
}
