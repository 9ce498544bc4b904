//! Programs that do not read their data.

use record::Proto;
use record::rows::{Confidence, Evidence, Severity};

use super::accepting::by_identity;
use super::process_stopped::Held;
use super::reach::Reach;
use super::unread_requests::reported_ports;
use super::{Check, Findings, Probe, Sample};
use crate::seen::Queue;

pub(super) const CHECK: Check = Check {
    id: "unread-queue",
    needs: &[Probe::Processes, Probe::Sockets, Probe::Unix],
    area: "tcp",
    about: "A program does not read received data: its peer has to wait.",
    rule: "A connection has 64 KiB or more of unread data at both readings, no less at the second, and its program \
           read nothing between them. It is a hint at a client: players pause on purpose.",
    sources: "receive queues and received bytes via sock_diag",
    refuted_by: "a program that waits on purpose, for example for a slow disk.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let reported = reported_ports(sample);
    let (held, old) = (Held::new(sample), by_identity(&sample.before.unread));
    for one in &sample.after.unread {
        let has_read = |before: &&Queue| before.read.is_some() && before.read != one.read;
        let before = old.get(&one.identity).copied();
        let Some(before) = before.filter(|before| before.queue <= one.queue && !has_read(before)) else { continue };
        if reported.contains(&one.port) || held.has(&one.owner) {
            continue;
        }
        let is_service = sample.after.served.contains_key(&(Proto::Tcp, one.port));
        let reach = if is_service { Reach::part(1, 1) } else { Reach::Nobody };
        let who = &one.owner;
        let title = format!("{who} does not read from {}: {} KiB are waiting", one.name, one.queue / 1024);
        found
            .add(Severity::Warning, Confidence::Likely, title)
            .socket(one)
            .proof([Evidence {
                counter: format!("recv_q of {}", one.name),
                before: Some(before.queue.into()),
                after: one.queue.into(),
                limit: one.limit.map(i64::from),
            }])
            .cost("its peer cannot send: the receive window is closed, or closes soon")
            .reach(reach, "")
            .remedy("", "find out what the program is waiting for (a lock, a disk, another peer)", "");
    }
}
