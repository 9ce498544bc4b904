//! Servers that accept connections and then do not read their requests.

use record::Proto;
use record::rows::{Confidence, Severity};
use std::collections::BTreeSet;

use super::accepting::{idle_listeners, is_long};
use super::process_stopped::Held;
use super::reach::Reach;
use super::unread::{UnreadAt, UnreadOf};
use super::words::{look_at, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::Holder;

/// Fewest connections that wait for a finding: one client may send its next request early.
const SOME: u32 = 3;

pub(super) const CHECK: Check = Check {
    id: "unread-requests",
    needs: &[Probe::Processes, Probe::Sockets, Probe::Unix],
    area: "tcp",
    about: "A server accepts connections but does not read their requests: its clients wait.",
    rule: "At least 3 connections of a port with a listener have the same unread data at both readings, and their \
           program neither read nor sent anything on them. It is a hint if it read from other connections of the \
           port with unread data.",
    sources: "receive queues, received and sent bytes via sock_diag",
    refuted_by: "a server that answers one request of a connection before it reads the next, and takes long for it.",
    run,
};

/// The ports whose server reads no requests, with the owner of a connection and its addresses.
fn ports(sample: &Sample) -> Vec<(u16, UnreadAt, &Holder, &str)> {
    if !is_long(sample) || sample.before.waiting.unread.len() < SOME as usize {
        return Vec::new();
    }
    let idle: BTreeSet<u16> = idle_listeners(sample).iter().map(|one| one.listener.port).collect();
    let held = Held::new(sample);
    // A program that does not even accept, or does not run, is reported for that.
    let is_explained = |port: u16, owner| idle.contains(&port) || held.has(owner);
    let all = UnreadOf::new(sample).into_ports();
    let found = all.filter_map(|(port, of)| {
        let (owner, example) = sample.after.waiting.readers.get(&port)?;
        let is_served = sample.after.served.contains_key(&(Proto::Tcp, port));
        let is_hung = of.stale >= SOME && is_served && !is_explained(port, owner);
        is_hung.then_some((port, of, owner, &**example))
    });
    found.collect()
}

/// The ports for which this check has a finding: others need not report their single connections.
pub(super) fn reported_ports(sample: &Sample) -> BTreeSet<u16> {
    ports(sample).iter().map(|(port, ..)| *port).collect()
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for (port, UnreadAt { stale, read, .. }, owner, example) in ports(sample) {
        let title = format!("{owner} at port {port} does not read its clients' requests: {stale} connections wait");
        found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(format!("port {port}"))
            .holder(owner)
            .proof([
                state(format!("connections with unread data at both readings, such as {example}"), stale, None),
                state("connections with unread data at the first reading that were read, or ended", read, None),
            ])
            .cost(format!("{stale} clients wait for an answer"))
            .reach(if read == 0 { Reach::part(1, 1) } else { Reach::Nobody }, "")
            .remedy(look_at(owner.pid), "shows where its threads wait: a lock, a disk, another host", "")
            .remedy("", "find out what its workers wait for; more of them only help if they are busy", "");
    }
}
