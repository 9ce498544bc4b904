//! Connections that the kernel gave up because their peer no longer answered.

use record::Proto;
use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Severity};
use std::collections::BTreeSet;

use super::reach::Reach;
use super::reset_groups::resets_of;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{ResetKind, Stuck};

/// Fewest connections for a warning.
const SOME: u64 = 3;
/// Most connections that the evidence names.
const SHOWN_MAX: usize = 4;

pub(super) const CHECK: Check = Check {
    id: "gave-up",
    needs: &[Probe::Resets, Probe::Sockets],
    area: "tcp",
    about: "The kernel gave up established connections: the peer acknowledged nothing until the time limit.",
    rule: "TCPAbortOnTimeout grew, and a connection that was retransmitting at the first reading no longer exists, or \
           the kernel reset one whose keepalives were not answered. It is a warning if at least 3 connections of \
           programs that use services of others are lost; otherwise a hint: clients leave without a word.",
    sources: "/proc/net/netstat: TCPAbortOnTimeout; sockets via sock_diag; the tracepoint tcp_send_reset via BPF",
    refuted_by: "a peer that was switched off.",
    run,
};

/// Returns the connections that waited for acknowledgements and no longer exist.
fn lost_connections(sample: &Sample) -> Vec<&Stuck> {
    let still: BTreeSet<u64> = sample.after.stuck.iter().map(|one| one.identity).collect();
    let is_left = |one: &&Stuck| one.identity != 0 && !still.contains(&one.identity);
    let all = sample.before.stuck.iter().filter(|one| !one.is_window).filter(is_left);
    all.filter(|one| is_gone(sample, one)).collect()
}

/// True if a connection that no longer waits for acknowledgements does not exist either.
fn is_gone(sample: &Sample, one: &Stuck) -> bool {
    // One that was acknowledged in the meantime still has its port.
    let mut ports = sample.after.taken.iter().filter(|((proto, _), _)| *proto == Proto::Tcp);
    let is_chosen = |at, bound: fn(i64, i64) -> bool| {
        sample.setting("ipv4/ip_local_port_range", at).is_some_and(|limit| bound(one.local_port.into(), limit))
    };
    match is_chosen(0, |port, first| port >= first) && is_chosen(1, |port, last| port <= last) {
        true => !ports.any(|(_, taken)| taken.has(one.local_port)),
        false => !sample.after.at_ease.contains_key(&one.peer),
    }
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "TcpExtTCPAbortOnTimeout";
    let aborted = sample.grown(Netstat, name);
    let is_client = |port: u16| !sample.after.served.contains_key(&(Proto::Tcp, port));
    let lost = lost_connections(sample);
    let of_keepalive = resets_of(sample, ResetKind::OfKernel);
    let title = match (lost.first(), of_keepalive.first()) {
        _ if aborted == 0 => return,
        (Some(one), _) => format!(
            "the connection of {} at {} was given up: {} did not acknowledge {} bytes",
            one.owner, one.name, one.peer, one.send_q
        ),
        (None, Some(one)) => {
            format!("connections of {} with {} were given up: no answer to keepalives", one.owner, one.peer)
        }
        (None, None) => return,
    };
    let of_clients = lost.iter().filter(|one| is_client(one.local_port)).count() as u64
        + of_keepalive.iter().filter(|one| !one.is_service).map(|one| one.sum.count).sum::<u64>();
    let owner = lost.first().map(|one| &one.owner).or_else(|| of_keepalive.first().map(|one| one.owner));
    let object = lost.first().map_or(String::new(), |one| one.name.clone());
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(object)
        .holder(owner)
        .proof(sample.evidence(Netstat, name, None))
        .proof(
            lost.iter().take(SHOWN_MAX).map(|one| state(format!("retransmissions of {}", one.name), one.again, None)),
        )
        .proof(of_keepalive.iter().flat_map(|one| one.evidence(sample)))
        .lost(aborted, "connections given up")
        .reach(if of_clients >= SOME { Reach::part(of_clients, of_clients) } else { Reach::Nobody }, "")
        .remedy("", "find out whether the peer is down, or whether the path or a firewall drops its packets", "");
}
