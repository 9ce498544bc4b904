//! One pass over the sockets of a namespace: what checks need of them, in bounded memory.

use record::rows::{Confidence, Endpoint, Socket};
use record::{Addr, Proto, State, Timer};
use std::collections::{BTreeMap, BTreeSet};

/// Sockets of each kind that are remembered, and destinations.
pub const SOCKETS_MAX: usize = 65_536;

/// A queue of unread bytes from which on a socket is remembered.
const UNREAD_MIN: u32 = 64 << 10;

/// Retransmissions in a row from which on a connection is stuck.
const STUCK_RETRANSMITS: u8 = 2;

/// The port of DNS.
const DNS: u16 = 53;

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
    /// Ports that somebody listens on, or takes datagrams at.
    pub served: BTreeSet<(Proto, u16)>,
    /// SYNs that were sent again without an answer: connections by peer and port.
    pub unanswered: BTreeMap<(Addr, u16), u32>,
    /// Connections that the peer has closed and the program has not, by the process that holds them.
    pub unclosed: BTreeMap<String, Unclosed>,
    /// Connections that wait for their peer's acknowledgement, or for its window.
    pub stuck: Vec<Stuck>,
    /// Connections with nothing to be sent, open or closed just now, by peer.
    pub at_ease: BTreeMap<Addr, u32>,
    /// UDP sockets that are connected to a DNS server.
    pub resolvers: Vec<Queue>,
    /// Netlink sockets that lost messages.
    pub netlink: Vec<Queue>,
    /// Packet sockets that lost packets.
    pub packet: Vec<Queue>,
    /// Packet sockets that give packets out late.
    pub late: Vec<LateReader>,
    /// Sockets and destinations beyond [`SOCKETS_MAX`], not remembered.
    pub over: u64,
}

/// Connections that a process has not closed though their peer has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unclosed {
    /// How many.
    pub count: u32,
    /// One of them: `10.0.0.1:80 from 10.0.0.2:4711`.
    pub example: String,
}

/// A connection that cannot send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// Its cookie; 0 if the kernel did not send it.
    pub cookie: u64,
    /// Its ends.
    pub name: String,
    /// The address of the peer.
    pub peer: Addr,
    /// The process that holds it; empty if that is unknown.
    pub owner: String,
    /// True if the peer's window is closed; false if the peer acknowledges nothing.
    pub is_window: bool,
    /// Bytes that wait to be sent or acknowledged.
    pub send_q: u32,
    /// Retransmissions or probes in a row.
    pub again: u8,
    /// Bytes that the peer has acknowledged since the connection began; `None` if they are unknown.
    pub acked: Option<u64>,
}

/// A packet socket that gives out packets when a block of its ring is full, or after a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateReader {
    /// The process that holds it; empty if that is unknown.
    pub owner: String,
    /// The longest that a packet waits.
    pub late_ms: u32,
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
    /// True if other processes also hold the socket; `owner` is then a guess at which of them uses it.
    pub is_shared: bool,
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

/// The process that holds a socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// `nginx (812)`, or `nginx (812, likely: 4 processes hold it)`; empty if unknown.
    pub name: String,
    /// Its process ID.
    pub pid: Option<u32>,
    /// True if other processes also hold the socket.
    pub is_shared: bool,
}

/// Names the process that holds a socket.
pub type NameOwner<'n> = dyn FnMut() -> Holder + 'n;

impl Queue {
    /// The socket and its process: `nginx (812) at 0.0.0.0:80`.
    pub fn words(&self) -> String {
        if self.owner.is_empty() { self.name.clone() } else { format!("{} at {}", self.owner, self.name) }
    }

    /// How certain it is that the named process is to blame, if the rest of the finding is proved.
    pub fn confidence(&self) -> Confidence {
        if self.is_shared { Confidence::Likely } else { Confidence::Certain }
    }
}

impl SocketCensus {
    /// Counts a socket; `owner` names its process and is called only for sockets that are remembered. `ports` are the
    /// local ports that the kernel chooses.
    pub fn add(&mut self, socket: &Socket<'_>, ports: (u16, u16), owner: &mut NameOwner<'_>) {
        match (socket.proto, socket.state) {
            (Proto::Tcp, State::LISTEN) => {
                self.served.insert((Proto::Tcp, socket.local.port));
                if socket.rqueue > 0 {
                    let queue = queue(socket, socket.wqueue, owner);
                    keep(&mut self.listeners, queue, &mut self.over);
                }
            }
            (Proto::Tcp, _) => self.add_connection(socket, ports, owner),
            (Proto::Udp, _) => self.add_udp(socket, owner),
            (Proto::Netlink | Proto::Packet, _) => self.add_tap(socket, owner),
            _ => {}
        }
    }

    fn add_udp(&mut self, socket: &Socket<'_>, owner: &mut NameOwner<'_>) {
        if socket.peer.is_none() {
            self.served.insert((Proto::Udp, socket.local.port));
        } else if socket.peer.port == DNS && socket.rqueue == 0 {
            keep(&mut self.resolvers, queue(socket, None, owner), &mut self.over);
        }
        let drops = socket.skmem.and_then(|skmem| skmem.get(8));
        if socket.rqueue > 0 || drops.is_some_and(|drops| drops > 0) {
            let limit = socket.skmem.and_then(|skmem| skmem.get(1));
            keep(&mut self.udp, Queue { drops, ..queue(socket, limit, owner) }, &mut self.over);
        }
    }

    /// A netlink or packet socket.
    fn add_tap(&mut self, socket: &Socket<'_>, owner: &mut NameOwner<'_>) {
        let (netlink, packet) = socket.extras.map_or((None, None), |extras| (extras.netlink, extras.packet));
        let drops = socket.skmem.and_then(|skmem| skmem.get(8)).or_else(|| netlink?.drops);
        if let Some(late_ms) = packet.and_then(|packet| packet.late_ms()).filter(|late_ms| *late_ms > 0) {
            if self.late.len() < SOCKETS_MAX {
                self.late.push(LateReader { owner: owner().name, late_ms });
            } else {
                self.over += 1;
            }
        }
        if drops.is_none_or(|drops| drops == 0) {
            return;
        }
        let name = match netlink {
            Some(netlink) => format!("netlink {} port {}", netlink.protocol.name(), netlink.portid),
            None => "a packet socket".to_owned(),
        };
        let of = if netlink.is_some() { &mut self.netlink } else { &mut self.packet };
        keep(of, Queue { drops, name, ..queue(socket, None, owner) }, &mut self.over);
    }

    fn add_connection(&mut self, socket: &Socket<'_>, ports: (u16, u16), owner: &mut NameOwner<'_>) {
        if socket.rqueue >= UNREAD_MIN {
            let limit = socket.skmem.and_then(|skmem| skmem.get(1));
            keep(&mut self.unread, queue(socket, limit, owner), &mut self.over);
        }
        let peer = socket.peer.addr.unmapped();
        match socket.state {
            State::SYN_SENT if socket.retrans > 0 => {
                add_one(&mut self.unanswered, (peer, socket.peer.port), &mut self.over);
            }
            State::CLOSE_WAIT => self.add_unclosed(socket, owner),
            _ => {}
        }
        let is_window = socket.timer == PROBE;
        if is_window || socket.timer == RETRANSMIT && socket.retrans >= STUCK_RETRANSMITS {
            self.add_stuck(socket, is_window, owner);
        } else if matches!(socket.state, State::ESTABLISHED | State::TIME_WAIT) && socket.wqueue.unwrap_or(0) == 0 {
            add_one(&mut self.at_ease, peer, &mut self.over);
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

impl SocketCensus {
    fn add_stuck(&mut self, socket: &Socket<'_>, is_window: bool, owner: &mut NameOwner<'_>) {
        // A connection that does not come about is no stuck one.
        if matches!(socket.state, State::SYN_SENT | State::SYN_RECV) {
            return;
        }
        if self.stuck.len() >= SOCKETS_MAX {
            self.over += 1;
            return;
        }
        let Queue { cookie, name, owner, .. } = queue(socket, None, owner);
        let (peer, send_q) = (socket.peer.addr.unmapped(), socket.wqueue.unwrap_or(0));
        let acked = socket.tcp_info.and_then(|info| info.bytes_acked());
        self.stuck.push(Stuck { cookie, name, peer, owner, is_window, send_q, again: socket.retrans, acked });
    }

    fn add_unclosed(&mut self, socket: &Socket<'_>, owner: &mut NameOwner<'_>) {
        let Queue { name, owner, .. } = queue(socket, None, owner);
        if self.unclosed.len() >= SOCKETS_MAX && !self.unclosed.contains_key(&owner) {
            self.over += 1;
            return;
        }
        let of = self.unclosed.entry(owner).or_insert_with(|| Unclosed { count: 0, example: name });
        of.count += 1;
    }
}

/// Timers of a connection: `idiag_timer`.
const RETRANSMIT: Timer = Timer(1);
const PROBE: Timer = Timer(4);

fn add_one<K: Ord>(all: &mut BTreeMap<K, u32>, key: K, over: &mut u64) {
    if all.len() < SOCKETS_MAX || all.contains_key(&key) {
        *all.entry(key).or_default() += 1;
    } else {
        *over += 1;
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
    let Holder { name: owner, pid, is_shared } = owner();
    Queue { cookie: socket.cookie, name, owner, pid, is_shared, queue: socket.rqueue, limit, drops: None }
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
        (0..SOCKETS_MAX + 2).for_each(|_| census.add(&socket, (1, 2), &mut Holder::default));
        assert_eq!((census.listeners.len(), census.over), (SOCKETS_MAX, 2));
    }
}
