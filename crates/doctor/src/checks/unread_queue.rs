//! Programs that do not read their data.

use record::rows::{Confidence, Evidence, Severity};

use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "unread-queue",
    area: "tcp",
    about: "A program does not read what has come: its peer has to wait.",
    rule: "A connection has 64 KiB or more unread at both readings, and not less at the second.",
    sources: "receive queues by sock_diag",
    refuted_by: "a program that waits on purpose, for a slow disk say.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in sample.after.unread.iter().filter(|one| one.cookie != 0) {
        let before = sample.before.unread.iter().find(|before| before.cookie == one.cookie);
        let Some(before) = before.filter(|before| before.queue <= one.queue) else { continue };
        let who = if one.owner.is_empty() { "a program" } else { &*one.owner };
        let title = format!("{who} does not read from {}: {} KiB wait", one.name, one.queue / 1024);
        found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(one.name.clone())
            .proof([Evidence {
                counter: format!("recv_q of {}", one.name),
                before: Some(before.queue.into()),
                after: one.queue.into(),
                limit: one.limit.map(i64::from),
            }])
            .cost("its peer cannot send: the window is closed, or will be")
            .remedy("", "find out what the program waits for (a lock, a disk, another peer)", "");
    }
}
