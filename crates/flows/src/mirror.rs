//! Finds the two ends of a connection between two namespaces of this host among all sockets.
//!
//! Namespaces are read in any order, so ends wait here until everything is read. Then two ends are one connection if
//! they mirror each other (each one's local end is the other's peer) and no third socket of the host has the same two
//! ends. Equal private addresses in unrelated namespaces result in a third socket, or in no mirror at all. A connection
//! with translated addresses (NAT) has different ends on each side and stays two flows.

use crate::connection::{Connection, ConnectionCounters};
use crate::direction::by_ports;
use crate::grouping::{Grouping, OtherEnd};
use crate::packed::NONE;
use crate::{Ranges, Verdict};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::rows::{Direction, Endpoint};
use record::{Addr, Owner, Proto, State};
use std::hash::{BuildHasher, Hasher};

/// Maximum number of waiting ends: 96 bytes each, 50 MiB. The mirror of a waiting end is always kept; any other end
/// becomes a separate flow, and is counted.
///
/// Bound: ends of connections that wait for their other end. Beyond: further ends become two flows; reported. By: a
/// local user with as many connections.
const WAITING_MAX: usize = 1 << 19;

/// One end.
struct Waiting<'l> {
    netns_id: u64,
    ifindex: u32,
    local: Endpoint,
    peer: Endpoint,
    owners: &'l [Owner],
    recv_q: u32,
    send_q: u32,
    /// Index of its counters, or [`NONE`].
    counters: u32,
    /// The next end of the same connection, or [`NONE`].
    next: u32,
    proto: Proto,
    state: State,
    verdict: Verdict,
    /// True if it passes the user's filter.
    wanted: bool,
}

const _: () = assert!(size_of::<Waiting<'_>>() <= 96);

/// Result of [`Mirrors::settle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Settled {
    /// Connections with both ends found.
    pub(crate) joined: u64,
    /// Ends that the filter left out.
    pub(crate) filtered: u64,
}

/// The waiting ends.
pub(crate) struct Mirrors<'l> {
    waiting: Vec<Waiting<'l>>,
    counters: Vec<ConnectionCounters>,
    /// The first end of each connection.
    index: HashTable<u32>,
    seed: RandomState,
    most: usize,
    left_alone: u64,
}

impl<'l> Mirrors<'l> {
    pub(crate) fn new() -> Mirrors<'l> {
        Mirrors::bounded(WAITING_MAX)
    }

    fn bounded(most: usize) -> Mirrors<'l> {
        Mirrors {
            waiting: Vec::new(),
            counters: Vec::new(),
            index: HashTable::new(),
            // Peers choose their ports, so they could make an unseeded hash collide.
            seed: RandomState::default(),
            most,
            left_alone: 0,
        }
    }

    /// Number of ends that could not be kept and become separate flows.
    pub(crate) fn left_alone(&self) -> u64 {
        self.left_alone
    }

    /// Keeps one end; returns false if there is no room for it.
    pub(crate) fn keep(&mut self, end: &Connection, verdict: Verdict, owners: &'l [Owner], wanted: bool) -> bool {
        let hash = hash_of(&self.seed, end.proto, end.local, end.peer);
        let waiting = &self.waiting;
        let same = |&at: &u32| waiting.get(at as usize).is_some_and(|w| is_same(w, end));
        let first = self.index.find_mut(hash, same);
        if first.is_none() && self.waiting.len() >= self.most {
            self.left_alone += 1;
            return false;
        }
        let at = self.waiting.len() as u32;
        let mut next = NONE;
        match first {
            Some(first) => next = std::mem::replace(first, at),
            None => {
                let (waiting, seed) = (&self.waiting, &self.seed);
                let rehash = |&at: &u32| match waiting.get(at as usize) {
                    Some(w) => hash_of(seed, w.proto, w.local, w.peer),
                    // This is the end that is pushed below.
                    None => hash,
                };
                self.index.insert_unique(hash, at, rehash);
            }
        }
        self.push(end, verdict, owners, wanted, next);
        true
    }

    fn push(&mut self, end: &Connection, verdict: Verdict, owners: &'l [Owner], wanted: bool, next: u32) {
        let mut counters = NONE;
        if let Some(known) = end.counters {
            counters = self.counters.len() as u32;
            self.counters.push(known);
        }
        let &Connection { netns_id, ifindex, proto, state, local, peer, recv_q, send_q, .. } = end;
        let queues = (recv_q, send_q);
        self.waiting.push(Waiting {
            netns_id,
            ifindex,
            local,
            peer,
            owners,
            recv_q: queues.0,
            send_q: queues.1,
            counters,
            next,
            proto,
            state,
            verdict,
            wanted,
        });
    }

    /// Adds all ends to `grouping`, the two ends of a connection as one. To be called when everything is read. If ends
    /// contradict each other, `ranges` decides, and the direction is marked as guessed.
    pub(crate) fn settle(&self, grouping: &mut Grouping, ranges: &Ranges) -> Settled {
        let mut settled = Settled::default();
        for &first in &self.index {
            let Some(a) = self.waiting.get(first as usize) else { continue };
            match self.waiting.get(a.next as usize) {
                Some(b) if b.next == NONE && is_mirror(a, b) => {
                    let seen = seen_by_the_opener(a, b, ranges);
                    self.settle_pair(seen, a.wanted || b.wanted, grouping, &mut settled);
                }
                _ => self.settle_alone(first, grouping, &mut settled),
            }
        }
        settled
    }

    /// `seen` is the end that opened the connection, the other end, and the verdict.
    fn settle_pair(
        &self,
        seen: (&Waiting<'l>, &Waiting<'l>, Verdict),
        wanted: bool,
        grouping: &mut Grouping,
        settled: &mut Settled,
    ) {
        if !wanted {
            settled.filtered += 2;
            return;
        }
        let (opener, service, verdict) = seen;
        let other = OtherEnd { netns_id: service.netns_id, owners: service.owners };
        grouping.add_connection(&self.connection(opener), verdict, opener.owners, Some(other));
        settled.joined += 1;
    }

    /// Adds the ends of a chain that is not a pair separately.
    fn settle_alone(&self, first: u32, grouping: &mut Grouping, settled: &mut Settled) {
        let mut at = first;
        while let Some(end) = self.waiting.get(at as usize) {
            if end.wanted {
                grouping.add_connection(&self.connection(end), end.verdict, end.owners, None);
            } else {
                settled.filtered += 1;
            }
            at = end.next;
        }
    }

    fn connection(&self, end: &Waiting<'_>) -> Connection {
        Connection {
            netns_id: end.netns_id,
            ifindex: end.ifindex,
            proto: end.proto,
            state: end.state,
            local: end.local,
            peer: end.peer,
            recv_q: end.recv_q,
            send_q: end.send_q,
            counters: self.counters.get(end.counters as usize).copied(),
        }
    }
}

/// Returns the end that opened the connection, the other end, and the verdict. A certain verdict of one end takes
/// precedence over a guess of the other. If both are certain of the same direction, one must be wrong (a listener has
/// closed since): the ports decide, as a guess.
fn seen_by_the_opener<'w, 'l>(
    a: &'w Waiting<'l>,
    b: &'w Waiting<'l>,
    ranges: &Ranges,
) -> (&'w Waiting<'l>, &'w Waiting<'l>, Verdict) {
    // The result must not depend on which end came first.
    let (a, b) = if (a.netns_id, a.local) <= (b.netns_id, b.local) { (a, b) } else { (b, a) };
    let sure = |end: &Waiting<'_>| end.verdict.direction != Direction::Unknown && !end.verdict.guessed;
    let (told, other) =
        if !sure(a) && (sure(b) || a.verdict.direction == Direction::Unknown) { (b, a) } else { (a, b) };
    let contradicted = sure(a) && sure(b) && a.verdict.direction == b.verdict.direction;
    let verdict = match contradicted {
        true => by_ports(told.local.port, told.peer.port, ranges.of(told.netns_id)),
        false => told.verdict,
    };
    match verdict.direction {
        Direction::Out => (told, other, verdict),
        Direction::In => (other, told, Verdict { direction: Direction::Out, ..verdict }),
        Direction::Unknown => (a, b, verdict),
    }
}

/// True if both have the same two ends, in either order.
fn is_same(one: &Waiting<'_>, other: &Connection) -> bool {
    let ends = (one.local, one.peer);
    one.proto == other.proto && (ends == (other.local, other.peer) || ends == (other.peer, other.local))
}

fn is_mirror(a: &Waiting<'_>, b: &Waiting<'_>) -> bool {
    a.netns_id != b.netns_id && (a.local, a.peer) == (b.peer, b.local)
}

/// Equal for both ends of a connection.
fn hash_of(seed: &RandomState, proto: Proto, local: Endpoint, peer: Endpoint) -> u64 {
    let (low, high) = if local <= peer { (local, peer) } else { (peer, local) };
    let mut hasher = seed.build_hasher();
    hasher.write_u64(u64::from(low.port) << 32 | u64::from(high.port) << 8 | proto as u64);
    for addr in [low.addr, high.addr] {
        match addr {
            Addr::V4(octets) => hasher.write_u32(u32::from_ne_bytes(octets)),
            Addr::V6(octets) => hasher.write_u128(u128::from_ne_bytes(octets)),
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
