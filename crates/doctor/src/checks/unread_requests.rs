//! Servers that accept connections and then do not read their requests.

use record::Proto;
use record::rows::{Confidence, Severity};
use std::collections::BTreeMap;

use super::accepting::{idle_listeners, is_long};
use super::not_accepting::look_at;
use super::process_stopped::hold_of;
use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Holder, UnreadData};

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

/// Connections with unread data, by local port.
pub(super) struct UnreadOf {
    ports: BTreeMap<u16, UnreadAt>,
}

/// Numbers of connections of a port.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UnreadAt {
    /// Connections with unread data at the second reading.
    pub(super) all: u32,
    /// Connections that also had it at the first reading, on which the program neither read nor sent anything, and whose
    /// peer has not closed its direction.
    pub(super) stale: u32,
    /// Connections with unread data at the first reading that were read since, or have ended.
    pub(super) read: u32,
}

impl UnreadOf {
    pub(super) fn new(sample: &Sample) -> UnreadOf {
        let (before, after) = (&sample.before.waiting.unread, &sample.after.waiting.unread);
        let now: BTreeMap<u64, &UnreadData> = after.iter().map(|one| (one.cookie, one)).collect();
        let mut ports: BTreeMap<u16, UnreadAt> = BTreeMap::new();
        after.iter().for_each(|one| ports.entry(one.port).or_default().all += 1);
        let is_same = |now: &UnreadData, old: &UnreadData| {
            now.unread >= old.unread && now.read.is_some() && now.read == old.read && now.sent == old.sent
        };
        for old in before {
            let of = ports.entry(old.port).or_default();
            match now.get(&old.cookie) {
                Some(now) if is_same(now, old) => of.stale += u32::from(now.is_open),
                _ => of.read += 1,
            }
        }
        UnreadOf { ports }
    }

    /// Numbers of a port.
    pub(super) fn of_port(&self, port: u16) -> UnreadAt {
        self.ports.get(&port).copied().unwrap_or_default()
    }
}

/// The ports whose server reads no requests, with the owner of a connection and its addresses.
fn ports(sample: &Sample) -> Vec<(u16, UnreadAt, &Holder, &str)> {
    if !is_long(sample) || sample.before.waiting.unread.len() < SOME as usize {
        return Vec::new();
    }
    let idle = idle_listeners(sample);
    // A program that does not even accept, or does not run, is reported for that.
    let is_explained =
        |port: u16, owner| idle.iter().any(|idle| idle.listener.port == port) || hold_of(sample, owner).is_some();
    let all = UnreadOf::new(sample).ports.into_iter();
    let found = all.filter_map(|(port, of)| {
        let (owner, example) = sample.after.waiting.readers.get(&port)?;
        let is_served = sample.after.served.contains(&(Proto::Tcp, port));
        let is_hung = of.stale >= SOME && is_served && !is_explained(port, owner);
        is_hung.then_some((port, of, owner, &**example))
    });
    found.collect()
}

/// The ports for which this check has a finding: others need not report their single connections.
pub(super) fn reported_ports(sample: &Sample) -> Vec<u16> {
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
