//! Folds connections into flows while they are read.

use crate::Verdict;
use crate::chunks::Chunks;
use crate::connection::{Connection, ConnectionCounters};
use crate::owner_lists::{OWNERS_MAX, OwnerLists, nobody};
use crate::packed::{Key, Kind, NONE, Packed, narrow};
use crate::tally::Tally;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::rows::{Flow, FlowRtt, FlowStates, Socket};
use record::{Addr, Next, Owner, State};
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};

/// The other end of a connection between two namespaces of this host.
pub(crate) struct OtherEnd<'o> {
    /// Inode of its namespace.
    pub(crate) netns_id: u64,
    /// The processes that hold it.
    pub(crate) owners: &'o [Owner],
}

/// Where the connections of a flow are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Place {
    /// Inode of the namespace.
    netns_id: u64,
    /// Inode of the other end's namespace; 0 if that is not on this host.
    peer_netns_id: u64,
    /// Interface, or VRF, that they are bound to; 0 is none.
    ifindex: u32,
}

/// Data that only some flows have: queued bytes, requested sums, owners of the other end.
#[derive(Clone, Copy, Debug)]
struct Sums {
    recv_q: u64,
    send_q: u64,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
    retrans: Option<u64>,
    /// Index of its rates, or [`NONE`].
    rates: u32,
    /// Index of its round-trip times, or [`NONE`].
    rtts: u32,
    /// Index of the first owner of the other end, or [`NONE`].
    peer_first_owner: u32,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums {
            recv_q: 0,
            send_q: 0,
            bytes_in: None,
            bytes_out: None,
            retrans: None,
            rates: NONE,
            rtts: NONE,
            peer_first_owner: NONE,
        }
    }
}

/// Round-trip times of the connections that have a sample, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Rtts {
    sum: u64,
    connections: u32,
    max: u32,
    /// `u32::MAX` if unknown.
    min: u32,
}

impl Rtts {
    const NONE: Rtts = Rtts { sum: 0, connections: 0, max: 0, min: u32::MAX };

    fn add(&mut self, counters: &ConnectionCounters) {
        self.sum = self.sum.saturating_add(counters.rtt_us.into());
        self.connections = self.connections.saturating_add(1);
        self.max = self.max.max(counters.rtt_us);
        self.min = self.min.min(counters.min_rtt_us);
    }

    fn shown(&self) -> Option<FlowRtt> {
        let n = u64::from(self.connections);
        // Rounded to the nearest integer, as for `--avg`.
        let avg = (self.sum + n / 2).checked_div(n)?;
        Some(FlowRtt {
            min_us: (self.min != u32::MAX).then_some(self.min),
            avg_us: u32::try_from(avg).unwrap_or(u32::MAX),
            max_us: self.max,
        })
    }
}

/// The flows of the connections added so far.
///
/// Needs 36 bytes per IPv4 flow and 5 to 10 for the index; 34 more with an IPv6 address, 72 if bytes are queued or sums
/// were requested or the other end has owners, 24 for round-trip times, 28 for each owner. Connections are not kept.
/// Adding a connection costs one hash and one probe.
pub struct Grouping {
    index: HashTable<u32>,
    flows: Chunks<Packed>,
    /// Pairs of addresses that are not both IPv4.
    pairs: Chunks<(Addr, Addr)>,
    /// The places; the index is part of the key.
    places: Vec<Place>,
    /// Finds the index of a place in `places`.
    place_index: HashTable<u32>,
    /// The index that was found last.
    place_last: u32,
    /// See [`Grouping::joining_links`].
    joins_links: bool,
    /// Flows with more than two states.
    spill: Vec<FlowStates>,
    sums: Chunks<Sums>,
    /// Bytes received and sent per second, of flows with rates.
    rates: Chunks<[Option<u64>; 2]>,
    /// Round-trip times of flows that have them.
    rtts: Chunks<Rtts>,
    owners: OwnerLists,
    /// Connections whose flows will be searched together.
    waiting: Vec<Waiting>,
    connections: u64,
    seed: RandomState,
}

/// Maximum number of connections in `waiting`. A search for a flow takes three dependent memory accesses, none of them
/// in the cache; the processor overlaps the accesses of many searches in a row.
const WAITING: usize = 64;

/// A connection that adds only its state to its flow.
struct Waiting {
    key: Key,
    ends: Option<[u32; 2]>,
    hash: u64,
    state: State,
    guessed: bool,
}

impl Default for Grouping {
    fn default() -> Self {
        Grouping {
            index: HashTable::new(),
            flows: Chunks::new(),
            pairs: Chunks::new(),
            places: Vec::new(),
            place_index: HashTable::new(),
            place_last: 0,
            joins_links: false,
            spill: Vec::new(),
            sums: Chunks::new(),
            rates: Chunks::new(),
            rtts: Chunks::new(),
            owners: OwnerLists::new(),
            waiting: Vec::new(),
            connections: 0,
            // Peers choose their addresses and ports, so they could make an unseeded hash collide.
            seed: RandomState::default(),
        }
    }
}

impl Grouping {
    /// Creates an empty grouping.
    pub fn new() -> Grouping {
        Grouping::default()
    }

    /// The same, but connections that are bound to different interfaces share a flow, as in lstf.
    pub fn joining_links(self) -> Grouping {
        Grouping { joins_links: true, ..self }
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// True if it contains no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.len() == 0
    }

    /// Number of connections that were added.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Removes everything, keeps part of the memory for the next round.
    pub fn clear(&mut self) {
        self.index.clear();
        self.flows.clear();
        self.pairs.clear();
        self.places.clear();
        self.place_index.clear();
        self.spill.clear();
        self.sums.clear();
        self.rates.clear();
        self.rtts.clear();
        self.owners.clear();
        self.waiting.clear();
        self.connections = 0;
    }

    /// Adds one connection with its direction and its owners.
    #[inline]
    pub fn add(&mut self, row: &Socket<'_>, verdict: Verdict, owners: &[Owner]) {
        self.add_connection(&Connection::of(row), verdict, owners, None);
    }

    /// Like [`Grouping::add`], but if possible the flow is searched later, at the latest by [`Grouping::settle`]: in a
    /// large table this takes half the time.
    #[inline]
    pub(crate) fn add_soon(&mut self, row: &Socket<'_>, verdict: Verdict, owners: &[Owner]) {
        let connection = Connection::of(row);
        if has_sums(&connection) || !owners.is_empty() {
            return self.add_connection(&connection, verdict, owners, None);
        }
        let key = self.key(&connection, verdict, 0);
        let ends = narrow(key.local, key.peer);
        let hash = hash_of(&self.seed, &key, ends);
        self.waiting.push(Waiting { key, ends, hash, state: connection.state, guessed: verdict.guessed });
        if self.waiting.len() >= WAITING {
            self.settle();
        }
    }

    /// Adds the waiting connections.
    pub(crate) fn settle(&mut self) {
        let (index, flows, pairs) = (&self.index, &self.flows, &self.pairs);
        let mut found = [NONE; WAITING];
        for (at, one) in found.iter_mut().zip(&self.waiting) {
            *at = find(index, flows, pairs, one.hash, &one.key, one.ends).unwrap_or(NONE);
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for (at, one) in found.into_iter().zip(waiting.drain(..)) {
            let at = if at == NONE { self.find_or_insert(&one.key, one.ends, one.hash) } else { at };
            self.count(at, one.state, one.guessed);
        }
        self.waiting = waiting;
    }

    /// Adds one connection, optionally with its other end.
    pub(crate) fn add_connection(
        &mut self,
        connection: &Connection,
        verdict: Verdict,
        owners: &[Owner],
        other: Option<OtherEnd<'_>>,
    ) {
        let key = self.key(connection, verdict, other.as_ref().map_or(0, |other| other.netns_id));
        let ends = narrow(key.local, key.peer);
        let at = self.find_or_insert(&key, ends, hash_of(&self.seed, &key, ends));
        self.count(at, connection.state, verdict.guessed);
        if has_sums(connection) {
            self.add_sums(at, connection);
        }
        for owner in owners {
            let flow = self.flows.get_mut(at);
            flow.first_owner = self.owners.add(flow.first_owner, owner);
        }
        for owner in other.iter().flat_map(|other| other.owners) {
            let first = self.sums(at).peer_first_owner;
            let first = self.owners.add(first, owner);
            self.sums(at).peer_first_owner = first;
        }
    }

    fn count(&mut self, at: u32, state: State, guessed: bool) {
        self.connections += 1;
        let flow = self.flows.get_mut(at);
        flow.guessed |= guessed;
        let mut tally = flow.tally();
        tally.add(state, &mut self.spill);
        flow.set_tally(tally);
    }

    fn key(&mut self, connection: &Connection, verdict: Verdict, peer_netns: u64) -> Key {
        let kind = Kind::new(connection.proto, verdict.direction);
        let port = |port: u16, folded: bool| if folded { 0 } else { port };
        Key {
            local: connection.local.addr,
            peer: connection.peer.addr,
            place: self.place_number(Place {
                netns_id: connection.netns_id,
                peer_netns_id: peer_netns,
                ifindex: if self.joins_links { 0 } else { connection.ifindex },
            }),
            ports: [port(connection.local.port, kind.folds_local()), port(connection.peer.port, kind.folds_peer())],
            kind,
        }
    }

    /// The index of a place. Mostly it is the same as for the previous row.
    #[inline]
    fn place_number(&mut self, place: Place) -> u32 {
        if self.places.get(self.place_last as usize) != Some(&place) {
            self.place_last = self.find_place(place);
        }
        self.place_last
    }

    fn find_place(&mut self, place: Place) -> u32 {
        let (places, seed) = (&self.places, &self.seed);
        let hash = seed.hash_one(place);
        if let Some(&number) = self.place_index.find(hash, |&number| places.get(number as usize) == Some(&place)) {
            return number;
        }
        let number = places.len() as u32;
        let rehash = |&number: &u32| places.get(number as usize).map_or(hash, |place| seed.hash_one(place));
        self.place_index.insert_unique(hash, number, rehash);
        self.places.push(place);
        number
    }

    fn find_or_insert(&mut self, key: &Key, ends: Option<[u32; 2]>, hash: u64) -> u32 {
        if let Some(at) = find(&self.index, &self.flows, &self.pairs, hash, key, ends) {
            return at;
        }
        let at = self.insert(key, ends);
        let (flows, pairs, seed) = (&self.flows, &self.pairs, &self.seed);
        self.index.insert_unique(hash, at, |&at| {
            let flow = flows.get(at);
            let key = unpacked(flow, pairs);
            hash_of(seed, &key, narrow(key.local, key.peer))
        });
        at
    }

    fn insert(&mut self, key: &Key, ends: Option<[u32; 2]>) -> u32 {
        let pair = ends.is_none().then(|| self.pairs.push((key.local, key.peer)));
        self.flows.push(Packed {
            ends: ends.unwrap_or([pair.unwrap_or(NONE), NONE]),
            place: key.place,
            counts: Tally::EMPTY.counts,
            sums: NONE,
            first_owner: NONE,
            ports: key.ports,
            kind: key.kind,
            states: Tally::EMPTY.states,
            wide: pair.is_some(),
            guessed: false,
        })
    }

    fn sums(&mut self, at: u32) -> &mut Sums {
        let flow = self.flows.get_mut(at);
        if flow.sums == NONE {
            flow.sums = self.sums.push(Sums::default());
        }
        self.sums.get_mut(flow.sums)
    }

    fn add_sums(&mut self, at: u32, connection: &Connection) {
        let sums = self.sums(at);
        sums.recv_q = sums.recv_q.saturating_add(connection.recv_q.into());
        sums.send_q = sums.send_q.saturating_add(connection.send_q.into());
        let Some(counters) = connection.counters else { return };
        let [bytes_in, bytes_out, retrans, in_per_s, out_per_s] = counters.sums;
        sums.bytes_in = sum(sums.bytes_in, bytes_in);
        sums.bytes_out = sum(sums.bytes_out, bytes_out);
        sums.retrans = sum(sums.retrans, retrans);
        if in_per_s.is_some() || out_per_s.is_some() {
            let mut place = sums.rates;
            if place == NONE {
                place = self.rates.push([None; 2]);
                self.sums(at).rates = place;
            }
            let [sum_in, sum_out] = self.rates.get_mut(place);
            (*sum_in, *sum_out) = (sum(*sum_in, in_per_s), sum(*sum_out, out_per_s));
        }
        if counters.rtt_us != 0 {
            self.add_rtt(at, &counters);
        }
    }

    fn add_rtt(&mut self, at: u32, counters: &ConnectionCounters) {
        let mut place = self.sums(at).rtts;
        if place == NONE {
            place = self.rtts.push(Rtts::NONE);
            self.sums(at).rtts = place;
        }
        self.rtts.get_mut(place).add(counters);
    }

    /// Hands every flow to `each`, in an order that depends only on the flows: most connections first, then by
    /// protocol, local address and port, peer address and port, direction, namespaces.
    pub fn emit(&self, each: &mut dyn for<'r, 'b> FnMut(&'r Flow<'b>) -> Next) -> u64 {
        let mut order: Vec<(u128, u32)> =
            (0..self.flows.len() as u32).map(|at| (self.rank(self.flows.get(at)), at)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.compare(a.1, b.1)));
        let mut handed_out = 0;
        for (_, at) in order {
            handed_out += 1;
            if self.emit_one(self.flows.get(at), each) == Next::Stop {
                break;
            }
        }
        handed_out
    }

    /// Sort key as one number: of IPv4 flows everything except direction and namespaces, of others the beginning. So
    /// sorting rarely has to load two flows (which took 5 times as long). From the top: 30 bits of connections,
    /// protocol, family, 32 bits of the local address, 16 of its port, 32 of the peer's address, 16 of its port.
    fn rank(&self, flow: &Packed) -> u128 {
        const MOST: u64 = (1 << 30) - 1;
        let fewer = MOST - flow.tally().total(&self.spill).min(MOST);
        let ends = unpacked(flow, &self.pairs);
        let head = u128::from(fewer) << 98 | u128::from(flow.kind.proto() as u8) << 97;
        match (ends.local, ends.peer) {
            // The rest of the address is cut off, so nothing may follow it.
            (Addr::V6([a, b, c, d, ..]), _) => head | 1 << 96 | u128::from(u32::from_be_bytes([a, b, c, d])) << 64,
            (Addr::V4(local), peer) => {
                let (peer, port) = match peer {
                    Addr::V4(peer) => (u32::from_be_bytes(peer), flow.ports[1]),
                    Addr::V6(_) => (u32::MAX, u16::MAX),
                };
                let local = u128::from(u32::from_be_bytes(local)) << 64 | u128::from(flow.ports[0]) << 48;
                head | local | u128::from(peer) << 16 | u128::from(port)
            }
        }
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        let (a, b) = (self.flows.get(a), self.flows.get(b));
        b.tally().total(&self.spill).cmp(&a.tally().total(&self.spill)).then_with(|| {
            let order = |flow: &Packed| {
                let key = unpacked(flow, &self.pairs);
                let (proto, direction) = (key.kind.proto(), key.kind.direction());
                (proto, key.local, key.ports[0], key.peer, key.ports[1], direction, self.places[key.place as usize])
            };
            order(a).cmp(&order(b))
        })
    }

    fn emit_one(&self, flow: &Packed, each: &mut dyn for<'r, 'b> FnMut(&'r Flow<'b>) -> Next) -> Next {
        let key = unpacked(flow, &self.pairs);
        let states = flow.tally().expand(&self.spill);
        let mut owners = [nobody(); OWNERS_MAX];
        let len = self.owners.list(flow.first_owner, &mut owners);
        let sums = if flow.sums == NONE { Sums::default() } else { *self.sums.get(flow.sums) };
        let mut peer_owners = [nobody(); OWNERS_MAX];
        let peers = self.owners.list(sums.peer_first_owner, &mut peer_owners);
        let rates = if sums.rates == NONE { [None; 2] } else { *self.rates.get(sums.rates) };
        let port = |folded: bool, port: u16| if folded { None } else { Some(port) };
        let Place { netns_id, peer_netns_id, ifindex } = self.places[key.place as usize];
        each(&Flow {
            netns_id,
            peer_netns_id,
            proto: key.kind.proto(),
            direction: key.kind.direction(),
            guessed: flow.guessed,
            local_addr: key.local,
            local_port: port(key.kind.folds_local(), key.ports[0]),
            peer_addr: key.peer,
            peer_port: port(key.kind.folds_peer(), key.ports[1]),
            ifindex,
            connections: flow.tally().total(&self.spill),
            states: &states,
            owners: &owners[..len],
            peer_owners: &peer_owners[..peers],
            bytes_in: sums.bytes_in,
            bytes_out: sums.bytes_out,
            retrans_total: sums.retrans,
            recv_q: sums.recv_q,
            send_q: sums.send_q,
            bytes_in_per_s: rates[0],
            bytes_out_per_s: rates[1],
            rtt: if sums.rtts == NONE { None } else { self.rtts.get(sums.rtts).shown() },
            diff: None,
        })
    }
}

fn sum(so_far: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (so_far, more) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// True if the connection adds more than its state to its flow.
#[inline]
fn has_sums(connection: &Connection) -> bool {
    connection.recv_q != 0 || connection.send_q != 0 || connection.counters.is_some()
}

#[inline]
fn find(
    index: &HashTable<u32>,
    flows: &Chunks<Packed>,
    pairs: &Chunks<(Addr, Addr)>,
    hash: u64,
    key: &Key,
    ends: Option<[u32; 2]>,
) -> Option<u32> {
    index.find(hash, |&at| is_same(flows.get(at), pairs, key, ends)).copied()
}

#[inline]
fn is_same(flow: &Packed, pairs: &Chunks<(Addr, Addr)>, key: &Key, ends: Option<[u32; 2]>) -> bool {
    if (flow.place, flow.ports, flow.kind) != (key.place, key.ports, key.kind) {
        return false;
    }
    match ends {
        Some(ends) => !flow.wide && flow.ends == ends,
        None => flow.wide && *pairs.get(flow.ends[0]) == (key.local, key.peer),
    }
}

fn unpacked(flow: &Packed, pairs: &Chunks<(Addr, Addr)>) -> Key {
    let (local, peer) = if flow.wide {
        *pairs.get(flow.ends[0])
    } else {
        (Addr::V4(flow.ends[0].to_be_bytes()), Addr::V4(flow.ends[1].to_be_bytes()))
    };
    Key { local, peer, place: flow.place, ports: flow.ports, kind: flow.kind }
}

#[inline]
fn hash_of(seed: &RandomState, key: &Key, ends: Option<[u32; 2]>) -> u64 {
    let mut hasher = seed.build_hasher();
    let [local_port, peer_port] = key.ports;
    let rest = u64::from(key.place) << 40 | u64::from(key.kind.bits()) << 32;
    hasher.write_u64(rest | u64::from(local_port) << 16 | u64::from(peer_port));
    match ends {
        Some([local, peer]) => hasher.write_u64(u64::from(local) << 32 | u64::from(peer)),
        None => {
            hasher.write(key.local.octets());
            hasher.write(key.peer.octets());
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ephemeral, Listeners, direction};
    use record::Proto;
    use record::rows::Endpoint;

    fn row(n: u8) -> Socket<'static> {
        let end = |last: u8, port| match n % 3 {
            0 => Endpoint { addr: Addr::V6([last; 16]), port },
            _ => Endpoint { addr: Addr::V4([192, 0, 2, last]), port },
        };
        Socket {
            proto: Proto::Tcp,
            state: [State::ESTABLISHED, State::TIME_WAIT, State::CLOSE_WAIT][usize::from(n % 7 % 3)],
            local: end(1, 40_000 + u16::from(n)),
            peer: end(n % 11, 443),
            rqueue: u32::from(n % 13 == 0),
            ..Socket::EMPTY
        }
    }

    fn lines(grouping: &Grouping) -> Vec<String> {
        let mut lines = Vec::new();
        grouping.emit(&mut |flow| {
            lines.push(format!("{flow:?}"));
            Next::More
        });
        lines
    }

    #[test]
    fn soon_is_the_same_as_at_once() {
        let (listeners, mut at_once, mut soon) = (Listeners::new(), Grouping::new(), Grouping::new());
        // More connections than may wait, including several of the same new flow.
        for n in (0..=255).chain(0..100) {
            let verdict = direction(&row(n), &listeners, Ephemeral::default());
            at_once.add(&row(n), verdict, &[]);
            soon.add_soon(&row(n), verdict, &[]);
        }
        assert_ne!(lines(&soon), lines(&at_once));
        soon.settle();
        assert_eq!(lines(&soon), lines(&at_once));
        assert_eq!(soon.connections(), 356);
        // Connections that wait when a scan is interrupted are not part of the next one.
        soon.add_soon(&row(1), direction(&row(1), &listeners, Ephemeral::default()), &[]);
        soon.clear();
        soon.settle();
        assert!(soon.is_empty());
    }
}
