//! One pass over the sockets of a namespace: what checks need of them, in bounded memory.

use record::rows::{Endpoint, Socket};
use record::{Addr, Proto, State};
use std::collections::BTreeMap;

/// Sockets of each kind that are remembered, and destinations.
pub const SOCKETS_MAX: usize = 65_536;

/// A queue of unread bytes from which on a socket is remembered.
const UNREAD_MIN: u32 = 64 << 10;

/// The sockets of a namespace, as far as checks need them.
#[derive(Debug, Default, Clone)]
pub struct SocketCensus {
    /// Listeners of TCP whose accept queue is not empty.
    pub listeners: Vec<Queue>,
    /// UDP sockets that dropped something, or have something to be read.
    pub udp: Vec<Queue>,
    /// Connections with many unread bytes.
    pub unread: Vec<Queue>,
    /// Connections from local ports that the kernel chooses: by local address and destination.
    pub destinations: BTreeMap<(Addr, Addr, u16), PortsInUse>,
    /// Sockets and destinations beyond [`SOCKETS_MAX`], not remembered.
    pub over: u64,
}

/// A socket with a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its cookie, which no other one has; 0 if the kernel did not send it.
    pub cookie: u64,
    /// Its address and port, and those of the peer where it has one: `10.0.0.1:80`.
    pub name: String,
    /// The process that holds it: `nginx (812)`; empty if that is unknown.
    pub owner: String,
    /// The number of that process.
    pub pid: Option<u32>,
    /// Bytes, or of a listener connections, that wait.
    pub queue: u32,
    /// The most that may wait; `None` if it is unknown.
    pub limit: Option<u32>,
    /// Packets that the socket dropped since it was made.
    pub drops: Option<u32>,
}

/// Local ports in use towards one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortsInUse {
    /// All of them.
    pub used: u32,
    /// Those in TIME_WAIT.
    pub time_wait: u32,
}

/// Names the process that holds a socket, and its number.
pub type NameOwner<'n> = dyn FnMut() -> (String, Option<u32>) + 'n;

impl Queue {
    /// The socket and its process: `nginx (812) at 0.0.0.0:80`.
    pub fn words(&self) -> String {
        if self.owner.is_empty() { self.name.clone() } else { format!("{} at {}", self.owner, self.name) }
    }
}

impl SocketCensus {
    /// Counts a socket; `owner` names its process and is called only for sockets that are remembered. `ports` are the
    /// local ports that the kernel chooses.
    pub fn add(&mut self, socket: &Socket<'_>, ports: (u16, u16), owner: &mut NameOwner<'_>) {
        match (socket.proto, socket.state) {
            (Proto::Tcp, State::LISTEN) if socket.rqueue > 0 => {
                let queue = queue(socket, socket.wqueue, owner);
                keep(&mut self.listeners, queue, &mut self.over);
            }
            (Proto::Tcp, State::LISTEN) => {}
            (Proto::Tcp, _) => self.add_connection(socket, ports, owner),
            (Proto::Udp, _) => {
                let drops = socket.skmem.and_then(|skmem| skmem.get(8));
                if socket.rqueue > 0 || drops.is_some_and(|drops| drops > 0) {
                    let limit = socket.skmem.and_then(|skmem| skmem.get(1));
                    keep(&mut self.udp, Queue { drops, ..queue(socket, limit, owner) }, &mut self.over);
                }
            }
            _ => {}
        }
    }

    fn add_connection(&mut self, socket: &Socket<'_>, ports: (u16, u16), owner: &mut NameOwner<'_>) {
        if socket.rqueue >= UNREAD_MIN {
            let limit = socket.skmem.and_then(|skmem| skmem.get(1));
            keep(&mut self.unread, queue(socket, limit, owner), &mut self.over);
        }
        if (ports.0..=ports.1).contains(&socket.local.port) && !socket.peer.is_none() {
            let key = (socket.local.addr.unmapped(), socket.peer.addr.unmapped(), socket.peer.port);
            if self.destinations.len() >= SOCKETS_MAX && !self.destinations.contains_key(&key) {
                self.over += 1;
                return;
            }
            let of = self.destinations.entry(key).or_default();
            of.used += 1;
            of.time_wait += u32::from(socket.state == State::TIME_WAIT);
        }
    }
}

fn keep(all: &mut Vec<Queue>, one: Queue, over: &mut u64) {
    if all.len() < SOCKETS_MAX { all.push(one) } else { *over += 1 }
}

fn queue(socket: &Socket<'_>, limit: Option<u32>, owner: &mut NameOwner<'_>) -> Queue {
    let name = match socket.peer.is_none() {
        true => endpoint(&socket.local),
        false => format!("{} from {}", endpoint(&socket.local), endpoint(&socket.peer)),
    };
    let (owner, pid) = owner();
    Queue { cookie: socket.cookie, name, owner, pid, queue: socket.rqueue, limit, drops: None }
}

fn endpoint(end: &Endpoint) -> String {
    let (addr, port) = (end.addr.unmapped(), end.port);
    match addr {
        Addr::V4(_) => format!("{addr}:{port}"),
        Addr::V6(_) => format!("[{addr}]:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn census_is_bounded() {
        let mut census = SocketCensus::default();
        let socket = Socket { proto: Proto::Tcp, state: State::LISTEN, rqueue: 1, ..Socket::EMPTY };
        (0..SOCKETS_MAX + 2).for_each(|_| census.add(&socket, (1, 2), &mut || (String::new(), None)));
        assert_eq!((census.listeners.len(), census.over), (SOCKETS_MAX, 2));
    }
}
