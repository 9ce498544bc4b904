//! Connections folded into flows while they are read.

use crate::Verdict;
use crate::chunks::Chunks;
use crate::holders::{HOLDERS_MAX, Holders, nobody};
use crate::packed::{Key, Kind, NONE, Packed, narrow};
use crate::tally::Tally;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::rows::{Flow, FlowStates, Socket};
use record::{Addr, Next, Owner};
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};

/// What only some flows have: bytes that wait, and sums that were asked for.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    recv_q: u64,
    send_q: u64,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
    retrans: Option<u64>,
}

/// The flows of the connections added so far.
///
/// 36 bytes a flow of IPv4 and 5 to 10 of index; 34 more where an address is IPv6, 64 where bytes wait in a queue or
/// were asked for, 28 for each holder. Nothing is kept of a connection. A connection costs one hash and one probe.
pub struct Grouping {
    index: HashTable<u32>,
    flows: Chunks<Packed>,
    /// Pairs of addresses that are not both IPv4.
    pairs: Chunks<(Addr, Addr)>,
    /// Namespaces by the number that stands in the key. There are few: found by looking through them.
    netns: Vec<u64>,
    /// Flows with more than two states.
    spill: Vec<FlowStates>,
    sums: Chunks<Sums>,
    holders: Holders,
    connections: u64,
    seed: RandomState,
}

impl Default for Grouping {
    fn default() -> Self {
        Grouping {
            index: HashTable::new(),
            flows: Chunks::new(),
            pairs: Chunks::new(),
            netns: Vec::new(),
            spill: Vec::new(),
            sums: Chunks::new(),
            holders: Holders::new(),
            connections: 0,
            // A peer chooses its address and port: an unseeded hash could be made to collide.
            seed: RandomState::default(),
        }
    }
}

impl Grouping {
    /// No flow yet.
    pub fn new() -> Grouping {
        Grouping::default()
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.flows.len() == 0
    }

    /// How many connections were added.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Forgets all, keeps part of the memory for the next round.
    pub fn clear(&mut self) {
        self.index.clear();
        self.flows.clear();
        self.pairs.clear();
        self.netns.clear();
        self.spill.clear();
        self.sums.clear();
        self.holders.clear();
        self.connections = 0;
    }

    /// Adds one connection with its direction and its holders.
    pub fn add(&mut self, row: &Socket<'_>, verdict: Verdict, owners: &[Owner]) {
        let key = self.key(row, verdict);
        let at = self.find_or_insert(&key);
        self.connections += 1;
        let flow = self.flows.get_mut(at);
        flow.guessed |= verdict.guessed;
        let mut tally = flow.tally();
        tally.add(row.state, &mut self.spill);
        flow.set_tally(tally);
        if row.rqueue != 0 || row.wqueue.unwrap_or(0) != 0 || row.tcp_info.is_some() {
            self.add_sums(at, row);
        }
        for owner in owners {
            let flow = self.flows.get_mut(at);
            flow.holders = self.holders.add(flow.holders, owner);
        }
    }

    fn key(&mut self, row: &Socket<'_>, verdict: Verdict) -> Key {
        let kind = Kind::new(row.proto, verdict.direction);
        let port = |port: u16, folded: bool| if folded { 0 } else { port };
        Key {
            local: row.local.addr.unmapped(),
            peer: row.peer.addr.unmapped(),
            netns: self.netns_number(row.netns_id),
            ports: [port(row.local.port, kind.folds_local()), port(row.peer.port, kind.folds_peer())],
            kind,
        }
    }

    /// The number of a namespace. Rows come namespace by namespace, so the last one is looked at first.
    #[inline]
    fn netns_number(&mut self, id: u64) -> u32 {
        match self.netns.iter().rposition(|&known| known == id) {
            Some(number) => number as u32,
            None => {
                self.netns.push(id);
                (self.netns.len() - 1) as u32
            }
        }
    }

    fn find_or_insert(&mut self, key: &Key) -> u32 {
        let ends = narrow(key.local, key.peer);
        let hash = hash_of(&self.seed, key, ends);
        let (flows, pairs) = (&self.flows, &self.pairs);
        let same = |&at: &u32| is_same(flows.get(at), pairs, key, ends);
        if let Some(&at) = self.index.find(hash, same) {
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
            netns: key.netns,
            counts: Tally::EMPTY.counts,
            sums: NONE,
            holders: NONE,
            ports: key.ports,
            kind: key.kind,
            states: Tally::EMPTY.states,
            wide: pair.is_some(),
            guessed: false,
        })
    }

    fn add_sums(&mut self, at: u32, row: &Socket<'_>) {
        let flow = self.flows.get_mut(at);
        if flow.sums == NONE {
            flow.sums = self.sums.push(Sums::default());
        }
        let sums = self.sums.get_mut(flow.sums);
        sums.recv_q = sums.recv_q.saturating_add(row.rqueue.into());
        sums.send_q = sums.send_q.saturating_add(row.wqueue.unwrap_or(0).into());
        if let Some(info) = row.tcp_info {
            sums.bytes_in = sum(sums.bytes_in, info.bytes_received());
            sums.bytes_out = sum(sums.bytes_out, info.bytes_sent());
            sums.retrans = sum(sums.retrans, info.total_retrans().map(u64::from));
        }
    }

    /// Hands every flow to `each`, in an order that depends on the flows alone: most connections first, then by
    /// protocol, local address and port, peer address and port, direction, namespace.
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

    /// The order of IPv4 flows but for direction and namespace in one number, and the beginning of that of others:
    /// sorting seldom has to fetch two flows (it took 5 times as long). From the top: 30 bits of connections, protocol,
    /// family, 32 of the local address, 16 of its port, 32 of the peer's address, 16 of its port.
    fn rank(&self, flow: &Packed) -> u128 {
        const MOST: u64 = (1 << 30) - 1;
        let fewer = MOST - flow.tally().total(&self.spill).min(MOST);
        let ends = unpacked(flow, &self.pairs);
        let head = u128::from(fewer) << 98 | u128::from(flow.kind.proto() as u8) << 97;
        match (ends.local, ends.peer) {
            // The rest of the address is cut off: nothing may follow it.
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
                (proto, key.local, key.ports[0], key.peer, key.ports[1], direction, self.netns[key.netns as usize])
            };
            order(a).cmp(&order(b))
        })
    }

    fn emit_one(&self, flow: &Packed, each: &mut dyn for<'r, 'b> FnMut(&'r Flow<'b>) -> Next) -> Next {
        let key = unpacked(flow, &self.pairs);
        let states = flow.tally().expand(&self.spill);
        let mut owners = [nobody(); HOLDERS_MAX];
        let len = self.holders.list(flow.holders, &mut owners);
        let sums = if flow.sums == NONE { Sums::default() } else { *self.sums.get(flow.sums) };
        let port = |folded: bool, port: u16| if folded { None } else { Some(port) };
        each(&Flow {
            netns_id: self.netns[key.netns as usize],
            proto: key.kind.proto(),
            direction: key.kind.direction(),
            guessed: flow.guessed,
            local_addr: key.local,
            local_port: port(key.kind.folds_local(), key.ports[0]),
            peer_addr: key.peer,
            peer_port: port(key.kind.folds_peer(), key.ports[1]),
            connections: flow.tally().total(&self.spill),
            states: &states,
            owners: &owners[..len],
            bytes_in: sums.bytes_in,
            bytes_out: sums.bytes_out,
            retrans_total: sums.retrans,
            recv_q: sums.recv_q,
            send_q: sums.send_q,
        })
    }
}

fn sum(so_far: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (so_far, more) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

#[inline]
fn is_same(flow: &Packed, pairs: &Chunks<(Addr, Addr)>, key: &Key, ends: Option<[u32; 2]>) -> bool {
    if (flow.netns, flow.ports, flow.kind) != (key.netns, key.ports, key.kind) {
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
    Key { local, peer, netns: flow.netns, ports: flow.ports, kind: flow.kind }
}

#[inline]
fn hash_of(seed: &RandomState, key: &Key, ends: Option<[u32; 2]>) -> u64 {
    let mut hasher = seed.build_hasher();
    let [local_port, peer_port] = key.ports;
    let rest = u64::from(key.netns) << 40 | u64::from(key.kind.bits()) << 32;
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
