//! Paths on which large packets vanish and small ones arrive.

use record::Addr;
use record::rows::{Confidence, Severity};
use std::collections::{BTreeMap, BTreeSet};

use super::dead_peer::dead_identities;
use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{PeerHost, Stuck};

/// Fewest waiting bytes for a large packet: more than a segment with the smallest usual MTU.
const LARGE: u32 = 1200;

pub(super) const CHECK: Check = Check {
    id: "pmtu-blackhole",
    needs: &[Probe::Sockets],
    area: "routing",
    about: "Large packets to a peer are lost while small ones pass, and no router reports that they are too large.",
    rule: "A connection with more than 1200 unacknowledged bytes has retransmitted the same segment at least twice at \
           both readings, while other connections to the same peer work, or several were established and did not get \
           past their first large segment. A single connection counts only if it never got a large segment through.",
    sources: "timers, retransmissions, send queues and acknowledged bytes of connections via sock_diag",
    refuted_by: "`ping -M do -s 1472 ADDRESS` with an answer.",
    run,
};

/// True if small packets reach the peer of a stuck connection: either other connections to it are fine, or several
/// were established and got no further than their first large segment, whose number for each peer is in `first`.
fn is_alive(sample: &Sample, stuck: &Stuck, first: &BTreeMap<&PeerHost, usize>) -> bool {
    let is_not_alone = first.get(&stuck.peer).is_some_and(|count| *count > 1);
    sample.after.at_ease.contains_key(&stuck.peer) || is_first(stuck) && is_not_alone
}

/// True if the connection has not got a large segment through yet.
fn is_first(one: &Stuck) -> bool {
    one.acked.is_some_and(|acked| acked < LARGE.into())
}

/// Returns the number of connections of each peer.
fn count_by_peer<'s>(all: impl Iterator<Item = &'s Stuck>) -> BTreeMap<&'s PeerHost, usize> {
    let mut peers = BTreeMap::new();
    all.for_each(|one| *peers.entry(&one.peer).or_default() += 1);
    peers
}

/// True if the path's MTU explains the connection: it never got a large segment through, or others to the same peer
/// have `stopped` as well. One that worked and stopped alone lost its peer: several hosts may share the address.
fn is_explained(stuck: &Stuck, stopped: &BTreeMap<&PeerHost, usize>) -> bool {
    stuck.acked.is_none() || is_first(stuck) || stopped.get(&stuck.peer).is_some_and(|count| *count > 1)
}

/// A command that sends packets of 1500 bytes: 20 or 40 of the IP header, 8 of ICMP.
fn ping(peer: &PeerHost) -> String {
    let size = if matches!(peer.addr, Addr::V4(_)) { 1472 } else { 1452 };
    let on = match argument(&peer.iface, "") {
        "" => String::new(),
        iface => format!(" -I {iface}"),
    };
    format!("ping -M do -c 3 -s {size}{on} {}", peer.addr)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (before, after) = (&sample.before.stuck, &sample.after.stuck);
    let was_stuck: BTreeSet<u64> = before.iter().filter(|one| !one.is_window).map(|one| one.identity).collect();
    let first = count_by_peer(after.iter().filter(|one| is_first(one)));
    let all: Vec<&Stuck> = after
        .iter()
        .filter(|one| !one.is_window && one.send_q >= LARGE && one.identity != 0 && was_stuck.contains(&one.identity))
        .filter(|one| is_alive(sample, one, &first))
        .collect();
    let dead = if all.is_empty() { BTreeSet::new() } else { dead_identities(sample) };
    let all: Vec<&Stuck> = all.into_iter().filter(|one| !dead.contains(&one.identity)).collect();
    let stopped = count_by_peer(all.iter().copied());
    let stuck: Vec<_> = all.iter().filter(|one| is_explained(one, &stopped)).collect();
    let Some(first) = stuck.first() else { return };
    let title =
        format!("large packets to {} are lost, small ones pass: the path MTU is smaller than announced", first.peer);
    let proof = stuck.iter().take(4).map(|one| {
        state(format!("consecutive retransmissions of {}, {} bytes waiting", one.name, one.send_q), one.again, None)
    });
    let at_ease = sample.after.at_ease.get(&first.peer).copied().unwrap_or(0);
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(first.peer.to_string())
        .proof(proof)
        .proof([state(format!("working connections to {}", first.peer), at_ease, None)])
        .cost("connections are established, then stall as soon as large segments are sent")
        .remedy(ping(&first.peer), "tests whether packets of 1500 bytes pass", "")
        .remedy(
            "sysctl -w net.ipv4.tcp_mtu_probing=1",
            "makes TCP probe for the packet size",
            "connections that lose packets for other reasons may also use smaller packets",
        )
        .remedy("", "accept ICMP \"fragmentation needed\" and ICMPv6 \"packet too big\" on the path", "");
}
