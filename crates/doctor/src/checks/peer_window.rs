//! Peers that do not read their data.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "peer-window",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "A peer does not read: its receive window is closed, and this host waits.",
    rule: "The same connection probes a closed window at both readings.",
    sources: "connection timers via sock_diag: probe",
    refuted_by: "a send queue that shrinks in `netwren sockets 'timer = probe' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let was = |cookie: u64| cookie != 0 && sample.before.stuck.iter().any(|one| one.cookie == cookie && one.is_window);
    let all: Vec<_> =
        sample.after.stuck.iter().filter(|one| one.is_window && one.send_q > 0 && was(one.cookie)).collect();
    let Some(first) = all.first() else { return };
    let who = if first.owner.is_known() { format!(" for {}", first.owner) } else { String::new() };
    let title = format!("{} does not read: its receive window{who} is closed", first.peer);
    let proof = all.iter().take(8).map(|one| state(format!("bytes waiting in {}", one.name), one.send_q, None));
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .object(first.peer.to_string())
        .holder(&first.owner)
        .proof(proof)
        .cost("the connection stalls until the peer reads")
        .remedy("netwren sockets 'timer = probe' -o wide", "shows all connections in this state", "")
        .remedy("", "check the program at the other end: it is busy, stopped, or waiting for something else", "");
}
