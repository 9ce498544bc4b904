//! Peers that do not read their data.

use record::Proto;
use record::rows::{Confidence, Severity};
use std::collections::BTreeMap;

use super::dead_peer::dead_identities;
use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::Stuck;

pub(super) const CHECK: Check = Check {
    id: "peer-window",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "A peer does not read: its receive window is closed, and this host waits.",
    rule: "The same connection probes a closed window at both readings, and its peer acknowledged nothing between \
           them, but answers the probes. It is a hint if the peer is a client of this host: players pause on purpose.",
    sources: "connection timers via sock_diag: probe",
    refuted_by: "a send queue that shrinks in `netwren sockets 'timer = probe' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let of_window = sample.before.stuck.iter().filter(|one| one.is_window && one.identity != 0);
    let before: BTreeMap<u64, &Stuck> = of_window.map(|one| (one.identity, one)).collect();
    let was = |now: &&Stuck| {
        before.get(&now.identity).is_some_and(|before| before.acked.is_none() || before.acked == now.acked)
    };
    let is_client = |one: &Stuck| sample.after.served.contains_key(&(Proto::Tcp, one.local_port));
    let mut all: Vec<_> = sample.after.stuck.iter().filter(|one| one.is_window && one.send_q > 0).filter(was).collect();
    let dead = dead_identities(sample);
    all.retain(|one| !dead.contains(&one.identity));
    all.sort_by_key(|one| is_client(one));
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
        .reach(if is_client(first) { Reach::Nobody } else { Reach::part(1, 1) }, "")
        .remedy("netwren sockets 'timer = probe' -o wide", "shows all connections in this state", "")
        .remedy("", "check the program at the other end: it is busy, stopped, or waiting for something else", "");
}
