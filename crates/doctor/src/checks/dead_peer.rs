//! Peers that were connected and no longer answer.

use record::rows::CounterSource::Snmp;
use record::rows::{Confidence, Severity};
use record::{Addr, Proto};
use std::collections::{BTreeMap, BTreeSet};

use super::accepting::is_long;
use super::reach::Reach;
use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, NeighbourSeen, PeerHost, SOCKETS_MAX, Silent, Unanswered};

/// Fewest unanswered retransmissions or probes.
const SOME: u8 = 2;
/// More bytes than a segment with the smallest usual MTU has: a path may lose only large segments.
const LARGE: u32 = 1200;
/// Fewest silent clients of this host for more than a hint: clients are switched off, or leave their network.
const CLIENTS: usize = 3;

pub(super) const CHECK: Check = Check {
    id: "dead-peer",
    needs: &[Probe::Drops, Probe::Neighbours, Probe::Routes, Probe::Sockets],
    area: "tcp",
    about: "A connected peer no longer answers: it has died, or its path no longer delivers anything.",
    rule: "A connection has at least 2 unanswered retransmissions, window probes or keepalive probes, no fewer than at \
           the first reading, and none of the peer's connections received a segment within the window. Connections \
           whose first large segment is lost do not count, nor do peers whose packets this host drops, or whose next \
           hop does not answer. It is a hint for clients of this host, unless at least 3 are silent and none is heard.",
    sources: "timers, retransmissions and the time of the last segment (tcpi_last_ack_recv) via sock_diag",
    refuted_by: "`ping ADDRESS` with an answer, or a segment of the peer in `netwren capture 'host ADDRESS'`.",
    run,
};

/// Returns the connections whose peer is dead for this host.
pub(super) fn dead_connections(sample: &Sample) -> Vec<&Silent> {
    let waiting = &sample.after.waiting;
    if waiting.silent.is_empty() || waiting.heard.len() >= SOCKETS_MAX || !is_long(sample) {
        return Vec::new();
    }
    let heard = heard_within(sample);
    let again = again_before(sample);
    let connecting: BTreeSet<&PeerHost> = sample.after.unanswered.keys().map(|(peer, _)| peer).collect();
    let is_silent = |one: &&Silent| {
        let has_grown = again.get(&one.identity).is_none_or(|before| *before <= one.again);
        one.again >= SOME && has_grown && !heard.contains(&one.peer.addr)
    };
    waiting.silent.iter().filter(is_silent).filter(|one| !may_be_mtu(&connecting, one)).collect()
}

/// Returns the identities of the connections whose peer is dead for this host.
pub(super) fn dead_identities(sample: &Sample) -> BTreeSet<u64> {
    dead_connections(sample).iter().map(|one| one.identity).collect()
}

/// Returns the peers from which a segment arrived within the window.
fn heard_within(sample: &Sample) -> BTreeSet<Addr> {
    let window_ms = sample.window_ns / 1_000_000;
    sample.after.waiting.heard.iter().filter(|(_, ms)| u64::from(*ms) < window_ms).map(|(addr, _)| *addr).collect()
}

/// Returns the unanswered segments of each silent connection at the first reading, by identity.
fn again_before(sample: &Sample) -> BTreeMap<u64, u8> {
    sample.before.waiting.silent.iter().map(|one| (one.identity, one.again)).collect()
}

/// Returns the retransmissions of these connections within the window.
pub(super) fn dead_retransmits(sample: &Sample) -> u64 {
    let before = again_before(sample);
    let old = |one: &Silent| before.get(&one.identity).copied().unwrap_or(0);
    let data = |one: &&Silent| one.what == Unanswered::Data;
    dead_connections(sample).into_iter().filter(data).map(|one| u64::from(one.again.saturating_sub(old(one)))).sum()
}

/// True if the path may lose only large segments: the connection has not got one through yet, and new connections to
/// the peer are not silent. `connecting` are the peers that do not answer those.
fn may_be_mtu(connecting: &BTreeSet<&PeerHost>, one: &Silent) -> bool {
    let is_first = one.acked.is_none_or(|acked| acked < LARGE.into());
    let is_large = one.what == Unanswered::Data && one.segment >= LARGE;
    is_large && is_first && !connecting.contains(&one.peer)
}

/// True if this host loses the peer's packets itself, which other checks report.
fn is_lost_here(sample: &Sample, peer: &Addr) -> bool {
    let around = &sample.around;
    // Segments that arrive and are rejected by TCP, or have no socket, do not count.
    let is_here = |drop: &DropSeen| !drop.reason.starts_with("TCP_") && drop.reason != "NO_SOCKET";
    let names = |drop: &DropSeen| {
        drop.ends.is_some_and(|(from, to)| [from.unmapped(), to.unmapped()].contains(peer)) && is_here(drop)
    };
    let is_next_hop = |one: &NeighbourSeen| one.addr.unmapped() == *peer || around.gateway_at(one).is_some();
    around.drops.iter().flatten().any(names) || around.neighbours.iter().any(is_next_hop)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let mut dead = dead_connections(sample);
    dead.retain(|one| !is_lost_here(sample, &one.peer.addr));
    let is_client = |one: &Silent| sample.after.served.contains_key(&(Proto::Tcp, one.local_port));
    dead.sort_by_key(|one| (is_client(one), std::cmp::Reverse(one.again)));
    let Some(first) = dead.first() else { return };
    let peers: BTreeSet<&Addr> = dead.iter().map(|one| &one.peer.addr).collect();
    let others = heard_within(sample).into_iter().filter(|addr| !addr.is_loopback()).count();
    // Several clients at once, and no other peer: it is the path.
    let is_path = others == 0 && peers.len() >= CLIENTS;
    let reach = if is_client(first) && !is_path { Reach::Nobody } else { Reach::part(1, 10) };
    let more = if peers.len() > 1 { format!(", nor do {} other peers", peers.len() - 1) } else { String::new() };
    let title = format!(
        "{} no longer answers{more}: {} {} of {} are unanswered, and nothing has arrived for {} s",
        first.peer,
        first.again,
        kind(first),
        first.owner,
        first.heard_ms / 1000
    );
    let proof = dead.iter().take(8).map(|one| {
        state(format!("unanswered {} of {}, {} bytes waiting", kind(one), one.name, one.send_q), one.again, None)
    });
    let others = i64::try_from(others).unwrap_or(i64::MAX);
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(first.peer.to_string())
        .holder(&first.owner)
        .proof(proof)
        .proof([state("other peers whose connections received something within the window", others, None)])
        .proof(["TcpInSegs", "IcmpInDestUnreachs"].into_iter().filter_map(|name| sample.evidence(Snmp, name, None)))
        .cost("the program waits until TCP gives up: about 15 minutes for data, two hours for an idle connection")
        .reach(reach, "")
        .remedy(format!("ping -c 3 {}", address(&first.peer)), "tests whether the whole host is dead, or its path", "")
        .remedy("", "set TCP_USER_TIMEOUT or keepalive in the program, so that it notices sooner", "");
}

/// The peer's address for a command: a link-local one needs its interface.
fn address(peer: &PeerHost) -> String {
    match argument(&peer.iface, "") {
        iface if peer.addr.is_link_local_v6() && !iface.is_empty() => format!("{}%{iface}", peer.addr),
        _ => peer.addr.to_string(),
    }
}

fn kind(one: &Silent) -> &'static str {
    match one.what {
        Unanswered::Data => "retransmissions",
        Unanswered::WindowProbes => "window probes",
        Unanswered::Keepalives => "keepalive probes",
    }
}
