//! Peers that do not read their data.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Sample};

pub(super) const CHECK: Check = Check {
    id: "peer-window",
    area: "tcp",
    about: "A peer does not read what it gets: its window is closed, and we wait.",
    rule: "The same connection probes a closed window at both readings.",
    sources: "timers of connections by sock_diag: probe",
    refuted_by: "a send queue that shrinks in `netwren sockets 'timer = probe' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let was = |cookie: u64| cookie != 0 && sample.before.stuck.iter().any(|one| one.cookie == cookie && one.is_window);
    let all: Vec<_> =
        sample.after.stuck.iter().filter(|one| one.is_window && one.send_q > 0 && was(one.cookie)).collect();
    let Some(first) = all.first() else { return };
    let who = if first.owner.is_empty() { String::new() } else { format!(" to {}", first.owner) };
    let title = format!("{} does not read: its window{who} is closed", first.peer);
    let proof = all.iter().take(8).map(|one| state(format!("bytes that wait in {}", one.name), one.send_q, None));
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .object(first.peer.to_string())
        .proof(proof)
        .cost("the connection stands still until the peer reads")
        .remedy("netwren sockets 'timer = probe' -o wide", "shows all connections that wait so", "")
        .remedy("", "look at the program at the other end: it is busy, stopped or waits for somebody else", "");
}
