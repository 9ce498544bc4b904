//! The thread that queries name servers.
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use packet::dns::{PtrAnswer, PtrQuery};
use record::Addr;
use sys::caps::CapSet;
use sys::rights;

use super::{NAME_MAX, ResolverOptions, ResolverState, Shared, Slot, WorkerRights};

/// Pause between two checks of the sockets while answers are pending: too short to delay a lookup noticeably, and a
/// thousand checks cost 5 ms of CPU. (The standard library cannot wait for a socket and a condition variable at once.)
const PAUSE: Duration = Duration::from_millis(2);

/// Maximum size of an answer. Over UDP without EDNS a server sends at most 512 bytes.
///
/// Bound: bytes of a DNS answer. Beyond: the answer is cut and then refused. By: the name servers.
const ANSWER_MAX: usize = 4096;

/// Upper limit of concurrent queries for any options, because answers are matched with a linear search.
///
/// Bound: DNS queries at a time. Beyond: further queries wait. By: the name servers.
const IN_FLIGHT_MAX: usize = 1024;

/// Maximum number of datagrams taken from one socket before the others' turn, so that a flood does not starve them.
const BURST: usize = 256;

/// A pending query.
struct Flight {
    query: PtrQuery,
    addr: Addr,
    /// Number of queries sent for this address, including this one.
    tries: u32,
    /// Index of the queried server.
    server: usize,
    /// Time at which it is given up.
    due: Instant,
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    /// Connected sockets: the kernel only lets through datagrams of the queried server, and reports a closed port.
    servers: Vec<UdpSocket>,
    flights: Vec<Flight>,
    settled: Vec<(Addr, Slot)>,
    timeout: Duration,
    tries: u32,
    in_flight_max: usize,
    random: RandomState,
    drawn: u64,
}

/// Drops all capabilities once the thread's sockets are open, so that a name server that takes over the thread gains
/// none.
fn give_rights_up() {
    // If it has no capabilities, or the kernel refuses, queries are sent anyway.
    let _ = rights::forbid_new().and_then(|()| rights::keep_only(CapSet::default()));
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, servers: &[SocketAddr], options: &ResolverOptions) -> Worker {
        Worker {
            shared,
            servers: servers.iter().filter_map(|server| connect(*server).ok()).collect(),
            flights: Vec::new(),
            settled: Vec::new(),
            timeout: options.timeout,
            tries: options.tries.max(1),
            in_flight_max: options.in_flight_max.clamp(1, IN_FLIGHT_MAX),
            random: RandomState::new(),
            drawn: 0,
        }
    }

    /// Works until the resolver is dropped. The thread drops its capabilities on request, at the latest before its
    /// first query. It must not do so earlier: until then the program may become another user, with all its threads.
    pub(super) fn run(mut self) {
        let mut has_rights = true;
        // After a change of user the thread could no longer do this.
        rights::drop_bounding(CapSet::default());
        while let Some(wanted) = self.next_wanted(has_rights) {
            if std::mem::take(&mut has_rights) {
                give_rights_up();
                self.shared.lock().rights = WorkerRights::GivenUp;
                self.shared.done.notify_all();
            }
            wanted.into_iter().for_each(|addr| self.ask(addr, 1));
            self.receive();
            self.expire();
            self.publish();
        }
    }

    // Waits for new addresses, a request to drop capabilities, or time to check for answers. `None` ends the worker.
    fn next_wanted(&self, has_rights: bool) -> Option<Vec<Addr>> {
        let room = self.in_flight_max.saturating_sub(self.flights.len());
        let mut state = self.shared.lock();
        if self.flights.is_empty() {
            let is_idle = |state: &ResolverState| {
                state.queue.is_empty() && !state.closed && !(has_rights && state.rights == WorkerRights::Unwanted)
            };
            while is_idle(&state) {
                state = self.shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        } else if !state.closed && (state.queue.is_empty() || room == 0) {
            let woken = self.shared.work.wait_timeout(state, PAUSE);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.closed {
            return None;
        }
        let take = room.min(state.queue.len());
        Some(state.queue.drain(..take).collect())
    }

    // Sends the `tries`-th query for an address. A failed send counts as a server that did not answer.
    fn ask(&mut self, addr: Addr, tries: u32) {
        if tries > self.tries || self.servers.is_empty() {
            self.settled.push((addr, Slot::Failed));
            return;
        }
        let query = PtrQuery::new(self.free_id(), addr);
        let server = (tries as usize - 1) % self.servers.len();
        let sent = self.servers.get(server).is_some_and(|socket| socket.send(query.as_bytes()).is_ok());
        let due = if sent { Instant::now() + self.timeout } else { Instant::now() };
        self.flights.push(Flight { query, addr, tries, server, due });
    }

    // An unpredictable id that no pending query uses. Keyed with the system's random numbers, SipHash of a counter is
    // as unpredictable as 16 bits can be; the kernel also chooses a random port.
    fn free_id(&mut self) -> u16 {
        loop {
            self.drawn += 1;
            let id = self.random.hash_one(self.drawn) as u16;
            if self.flights.iter().all(|flight| flight.query.id() != id) {
                return id;
            }
        }
    }

    fn receive(&mut self) {
        let mut buffer = [0; ANSWER_MAX];
        for server in 0..self.servers.len() {
            for _ in 0..BURST {
                let Some(socket) = self.servers.get(server) else { break };
                match socket.recv(&mut buffer) {
                    Ok(got) => self.take(server, buffer.get(..got).unwrap_or_default()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The port is closed or the network is down: waiting for this server is useless.
                    Err(_) => self.give_up_on(server),
                }
            }
        }
    }

    // Handles one datagram if it answers one of our queries to this server.
    fn take(&mut self, server: usize, bytes: &[u8]) {
        let asked =
            |flight: &Flight| Some(flight.query.find_answer(bytes)).filter(|_| flight.server == server).flatten();
        let hit = self.flights.iter().enumerate().find_map(|(at, flight)| Some((at, asked(flight)?)));
        let Some((at, answer)) = hit else { return };
        let slot = match answer {
            PtrAnswer::Name(name) => name_slot(name),
            PtrAnswer::NoName => Slot::Nameless,
            PtrAnswer::Failed(_) => {
                // Another server may know the name; `expire` asks it.
                if let Some(flight) = self.flights.get_mut(at) {
                    flight.due = Instant::now();
                }
                return;
            }
        };
        let flight = self.flights.swap_remove(at);
        self.settled.push((flight.addr, slot));
    }

    fn give_up_on(&mut self, server: usize) {
        let now = Instant::now();
        for flight in self.flights.iter_mut().filter(|flight| flight.server == server) {
            flight.due = now;
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let mut at = 0;
        while let Some(flight) = self.flights.get(at) {
            if flight.due > now {
                at += 1;
                continue;
            }
            let late = self.flights.swap_remove(at);
            self.ask(late.addr, late.tries + 1);
        }
    }

    fn publish(&mut self) {
        if self.settled.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        for (addr, slot) in self.settled.drain(..) {
            let report = &mut state.report;
            match slot {
                Slot::Name(_) => report.found += 1,
                Slot::Nameless => report.nameless += 1,
                Slot::Failed | Slot::Waiting => report.failed += 1,
            }
            report.waiting = report.waiting.saturating_sub(1);
            state.slots.insert(addr, slot);
        }
        drop(state);
        self.shared.done.notify_all();
    }
}

// Returns `Nameless` for the root and for names that are longer than `NAME_MAX`, that no host can have, or that would
// be read as an address.
fn name_slot(name: packet::dns::Name<'_>) -> Slot {
    let mut text = Vec::new();
    name.put_text(&mut text);
    if name.is_root() || text.len() > NAME_MAX || !is_host_name(&text) || is_like_address(&text) {
        return Slot::Nameless;
    }
    Slot::Name(text.into())
}

// Accepts the same host names as glibc: no label is empty or starts with `-`.
fn is_host_name(text: &[u8]) -> bool {
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.split(|byte| *byte == b'.')
        .all(|label| label.iter().all(is_usual) && !matches!(label.first(), None | Some(b'-')))
}

// True for text that inet_aton(3) and people read as an address: its last label is a number, as in 10.0.0.1, 10.1 and
// 0x7f000001. No top-level domain is a number. IPv6 addresses contain characters that host names do not allow.
fn is_like_address(text: &[u8]) -> bool {
    let last = text.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    let hex = last.strip_prefix(b"0x").or_else(|| last.strip_prefix(b"0X"));
    last.iter().all(u8::is_ascii_digit) || hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
}

fn connect(server: SocketAddr) -> std::io::Result<UdpSocket> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
