//! One pass over the sockets of a namespace: the facts that checks need, in bounded memory.

use record::rows::Socket;
use record::{Addr, Proto, State, Timer};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::ends::{Holder, NameOwner, PeerHost, SOCKETS_MAX, name};
use super::pace::PaceCensus;
use super::port_use::{PortsTaken, SHARERS_MAX, Sharers};
use super::waiting::Waiting;

/// Bound: local addresses of a namespace whose ports `doctor` counts. Beyond: connections of further addresses are not
/// checked, counted (exit code 3). By: a user who makes connections from as many addresses.
const ADDRESSES_MAX: usize = 256;

/// Fewest unread bytes for a socket to be recorded.
const UNREAD_MIN: u32 = 64 << 10;

/// Fewest consecutive retransmissions for a connection to count as stuck.
const STUCK_RETRANSMITS: u8 = 2;

/// Most connections to this host itself that are recorded.
const OWN_CALLS_MAX: usize = 8;

/// The port of DNS.
const DNS: u16 = 53;

/// The facts about a namespace's sockets that checks need.
#[derive(Debug, Default, Clone)]
pub struct SocketCensus {
    /// TCP listeners whose accept queue is not empty.
    pub listeners: Vec<Queue>,
    /// TCP listeners that dropped connections since they were made.
    pub overflowing: Vec<Queue>,
    /// UDP sockets that dropped packets or have unread ones.
    pub udp: Vec<Queue>,
    /// UDP sockets whose send buffer is at least half full: the queue is in bytes of kernel memory.
    pub senders: Vec<Queue>,
    /// Connections with many unread bytes.
    pub unread: Vec<Queue>,
    /// Connections from local ports in the kernel's range, by the destination's port, local address and destination.
    pub destinations: BTreeMap<(u16, Addr, PeerHost), PortsInUse>,
    /// Local ports of the kernel's range that are in use, by protocol and local address; those of UDP together, because
    /// the kernel chooses them before it knows the address.
    pub taken: BTreeMap<(Proto, Addr), PortsTaken>,
    /// Unconnected UDP sockets by port, address and interface; 0 for none.
    pub udp_bound: BTreeMap<(u16, Addr, u32), Sharers>,
    /// Ports with a listener or an unconnected UDP socket.
    pub served: BTreeMap<(Proto, u16), Served>,
    /// Inodes of TCP listeners, by port: the last one of each.
    pub listener_inodes: BTreeMap<u16, u32>,
    /// Local TCP ports outside the kernel's range that have a connection, or had one until a minute ago.
    pub used: BTreeSet<u16>,
    /// Connections with retransmitted SYNs and no answer, by peer and port.
    pub unanswered: BTreeMap<(PeerHost, u16), u32>,
    /// Some of the connections to this host itself, with retransmitted SYNs and no answer.
    pub own_calls: Vec<Queue>,
    /// The oldest connection with data to send, by local address.
    pub sources: BTreeMap<Addr, SendingConnection>,
    /// Connections that the peer has closed and the program has not, by owner.
    pub unclosed: BTreeMap<Holder, Unclosed>,
    /// Connections that wait for their peer to acknowledge data or to open its window.
    pub stuck: Vec<Stuck>,
    /// Connections with an empty send queue, open or just closed, by peer.
    pub at_ease: BTreeMap<PeerHost, u32>,
    /// UDP sockets connected to a DNS server, with an empty receive queue.
    pub resolvers: Vec<Queue>,
    /// UDP sockets with a peer, and TCP connections that wait for the answer to their SYN.
    pub asking: Vec<Asking>,
    /// Netlink sockets that lost messages.
    pub netlink: Vec<Queue>,
    /// Packet sockets that lost packets.
    pub packet: Vec<Queue>,
    /// Packet sockets that deliver packets late.
    pub late: Vec<LateReader>,
    /// What slows connections down.
    pub pace: PaceCensus,
    /// Connections in which nothing moves.
    pub waiting: Waiting,
    /// Sockets and destinations beyond [`SOCKETS_MAX`], which are not recorded.
    pub over: u64,
}

/// The listeners, or unconnected UDP sockets, at a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// One of them and its owner: `nginx (812) at 127.0.0.1:80`. Empty for ports beyond the first [`SOCKETS_MAX`].
    pub example: String,
    /// Number of the others.
    pub more: u32,
}

/// A connection with data to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendingConnection {
    /// The connection; its queue is what waits to be sent or acknowledged.
    pub socket: Queue,
    /// Bytes that the peer has acknowledged since the connection began; `None` if the number is unknown.
    pub acked: Option<u64>,
}

/// A socket that expects answers from one address and port only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    /// UDP or TCP.
    pub proto: Proto,
    /// Its local port.
    pub port: u16,
    /// The peer's address.
    pub peer: Addr,
    /// The peer's port.
    pub peer_port: u16,
}

/// Connections that a process has not closed although their peers have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unclosed {
    /// Number of connections.
    pub count: u32,
    /// One of them: `10.0.0.1:80 from 10.0.0.2:4711`.
    pub example: String,
}

/// A connection that cannot send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// [`Socket::identity`]; 0 if it is unknown.
    pub identity: u64,
    /// Its addresses and ports.
    pub name: String,
    /// The peer.
    pub peer: PeerHost,
    /// Its owner.
    pub owner: Holder,
    /// True if the peer's window is closed; false if the peer acknowledges nothing.
    pub is_window: bool,
    /// Bytes that wait to be sent or acknowledged.
    pub send_q: u32,
    /// Consecutive retransmissions or probes.
    pub again: u8,
    /// Its local port.
    pub local_port: u16,
    /// Bytes that the peer has acknowledged since the connection began; `None` if the number is unknown.
    pub acked: Option<u64>,
}

/// A packet socket that delivers packets when a block of its ring is full or after a timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateReader {
    /// Its owner.
    pub owner: Holder,
    /// Longest time that a packet waits, in milliseconds.
    pub late_ms: u32,
}

/// A socket with a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// [`Socket::identity`]; 0 if it is unknown.
    pub identity: u64,
    /// Its address and port, and its peer's if it has one: `10.0.0.1:80`.
    pub name: String,
    /// Its owner.
    pub owner: Holder,
    /// Bytes that wait, or connections if it is a listener.
    pub queue: u32,
    /// Limit of the queue; `None` if it is unknown.
    pub limit: Option<u32>,
    /// Packets that the socket dropped since it was made.
    pub drops: Option<u32>,
    /// Local port; 0 without a port.
    pub port: u16,
    /// Bytes of a TCP connection that its program has read since it began; `None` if the number is unknown.
    pub read: Option<u64>,
}

/// Local ports in use towards one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortsInUse {
    /// Number of ports.
    pub used: u32,
    /// Number of ports in TIME_WAIT.
    pub time_wait: u32,
}

impl Queue {
    /// The socket and its owner: `nginx (812) at 0.0.0.0:80`.
    pub fn words(&self) -> String {
        if self.owner.is_known() { format!("{} at {}", self.owner, self.name) } else { self.name.clone() }
    }
}

impl SocketCensus {
    /// Counts a socket. `owner` returns its owner and is called only for sockets that are recorded. `ports` is the
    /// kernel's range of local ports, `iface` is the interface that the socket is bound to; empty for none.
    pub fn add(&mut self, socket: &Socket<'_>, ports: (u16, u16), iface: &str, owner: &mut NameOwner<'_>) {
        self.waiting.add(socket, iface, owner);
        match (socket.proto, socket.state) {
            (Proto::Tcp, State::LISTEN) => {
                self.add_served(socket, iface, owner);
                self.listener_inodes.insert(socket.local.port, socket.inode);
                let drops = socket.skmem.and_then(|skmem| skmem.get(8)).filter(|drops| *drops > 0);
                if socket.rqueue > 0 || drops.is_some() {
                    let listener = Queue { drops, ..queue(socket, iface, socket.wqueue, owner) };
                    if drops.is_some() {
                        keep(&mut self.overflowing, listener.clone(), &mut self.over);
                    }
                    if socket.rqueue > 0 {
                        keep(&mut self.listeners, listener, &mut self.over);
                    }
                }
            }
            (Proto::Tcp, _) => self.add_connection(socket, ports, iface, owner),
            (Proto::Udp, _) => self.add_udp(socket, ports, iface, owner),
            (Proto::Netlink | Proto::Packet, _) => self.add_tap(socket, owner),
            _ => {}
        }
    }

    fn add_udp(&mut self, socket: &Socket<'_>, ports: (u16, u16), iface: &str, owner: &mut NameOwner<'_>) {
        if (ports.0..=ports.1).contains(&socket.local.port) {
            self.add_taken((Proto::Udp, Addr::ANY4), socket, owner);
        }
        if socket.peer.is_unset() {
            self.add_served(socket, iface, owner);
            self.add_bound(socket);
        } else {
            self.add_asking(socket);
            if socket.peer.port == DNS && socket.rqueue == 0 {
                keep(&mut self.resolvers, queue(socket, iface, None, owner), &mut self.over);
            }
        }
        let memory = |at| socket.skmem.and_then(|skmem| skmem.get(at));
        let drops = memory(8);
        // SK_MEMINFO_WMEM_ALLOC and SK_MEMINFO_SNDBUF
        if let Some((used, limit)) = memory(2).zip(memory(3)).filter(|(used, limit)| *limit > 0 && *used >= limit / 2) {
            let sender = Queue { queue: used, ..queue(socket, iface, Some(limit), owner) };
            keep(&mut self.senders, sender, &mut self.over);
        }
        if socket.rqueue > 0 || drops.is_some_and(|drops| drops > 0) {
            let limit = memory(1);
            keep(&mut self.udp, Queue { drops, ..queue(socket, iface, limit, owner) }, &mut self.over);
        }
    }

    /// Counts a netlink or packet socket.
    fn add_tap(&mut self, socket: &Socket<'_>, owner: &mut NameOwner<'_>) {
        let (netlink, packet) = socket.extras.map_or((None, None), |extras| (extras.netlink, extras.packet));
        let drops = socket.skmem.and_then(|skmem| skmem.get(8)).or_else(|| netlink?.drops);
        if let Some(late_ms) = packet.and_then(|packet| packet.late_ms()).filter(|late_ms| *late_ms > 0) {
            if self.late.len() < SOCKETS_MAX {
                self.late.push(LateReader { owner: owner(), late_ms });
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
        keep(of, Queue { drops, name, ..queue(socket, "", None, owner) }, &mut self.over);
    }

    fn add_connection(&mut self, socket: &Socket<'_>, ports: (u16, u16), iface: &str, owner: &mut NameOwner<'_>) {
        if socket.rqueue >= UNREAD_MIN {
            let limit = socket.skmem.and_then(|skmem| skmem.get(1));
            keep(&mut self.unread, queue(socket, iface, limit, owner), &mut self.over);
        }
        self.add_source(socket, iface, owner);
        let peer = PeerHost { addr: socket.peer.addr.unmapped(), iface: iface.to_owned() };
        self.pace.add(socket, &peer, owner, &mut self.over);
        if socket.state == State::SYN_SENT {
            self.add_asking(socket);
        }
        match socket.state {
            State::SYN_SENT if socket.retrans > 0 => {
                let is_own = socket.peer.addr.is_loopback() || socket.peer.addr == socket.local.addr;
                if is_own && self.own_calls.len() < OWN_CALLS_MAX {
                    self.own_calls.push(queue(socket, iface, None, owner));
                }
                add_one(&mut self.unanswered, (peer.clone(), socket.peer.port), &mut self.over);
            }
            State::CLOSE_WAIT if !is_sending(socket) => self.add_unclosed(socket, iface, owner),
            _ => {}
        }
        let is_window = socket.timer == PROBE;
        if is_window || socket.timer == RETRANSMIT && socket.retrans >= STUCK_RETRANSMITS {
            self.add_stuck(socket, &peer, is_window, owner);
        } else if matches!(socket.state, State::ESTABLISHED | State::TIME_WAIT) && socket.wqueue.unwrap_or(0) == 0 {
            add_one(&mut self.at_ease, peer.clone(), &mut self.over);
        }
        let is_begun = !matches!(socket.state, State::SYN_SENT | State::SYN_RECV);
        if is_begun && !socket.peer.is_unset() && !(ports.0..=ports.1).contains(&socket.local.port) {
            self.used.insert(socket.local.port);
        }
        if (ports.0..=ports.1).contains(&socket.local.port) && !socket.peer.is_unset() {
            self.add_taken((Proto::Tcp, socket.local.addr.unmapped()), socket, owner);
            let key = (socket.peer.port, socket.local.addr.unmapped(), peer);
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
    fn add_asking(&mut self, socket: &Socket<'_>) {
        if self.asking.len() >= SOCKETS_MAX {
            self.over += 1;
            return;
        }
        let (peer, peer_port) = (socket.peer.addr.unmapped(), socket.peer.port);
        self.asking.push(Asking { proto: socket.proto, port: socket.local.port, peer, peer_port });
    }

    fn add_served(&mut self, socket: &Socket<'_>, iface: &str, owner: &mut NameOwner<'_>) {
        let is_over = self.served.len() >= SOCKETS_MAX;
        match self.served.entry((socket.proto, socket.local.port)) {
            Entry::Occupied(mut served) => served.get_mut().more += 1,
            Entry::Vacant(place) => {
                let example = if is_over { String::new() } else { queue(socket, iface, None, owner).words() };
                place.insert(Served { example, more: 0 });
            }
        }
    }

    fn add_source(&mut self, socket: &Socket<'_>, iface: &str, owner: &mut NameOwner<'_>) {
        let from = socket.local.addr.unmapped();
        let waiting = socket.wqueue.filter(|bytes| *bytes > 0 && socket.state == State::ESTABLISHED);
        let (Some(waiting), false) = (waiting, socket.identity() == 0 || from.is_loopback()) else { return };
        let known = self.sources.get(&from).map(|old| old.socket.identity);
        self.over += u64::from(known.is_none() && self.sources.len() >= ADDRESSES_MAX);
        if known.map_or(self.sources.len() < ADDRESSES_MAX, |identity| socket.identity() < identity) {
            let connection = Queue { queue: waiting, ..queue(socket, iface, None, owner) };
            let acked = socket.tcp_info.and_then(|info| info.bytes_acked());
            self.sources.insert(from, SendingConnection { socket: connection, acked });
        }
    }

    fn add_taken(&mut self, key: (Proto, Addr), socket: &Socket<'_>, owner: &mut NameOwner<'_>) {
        if self.taken.len() >= ADDRESSES_MAX && !self.taken.contains_key(&key) {
            self.over += 1;
            return;
        }
        self.taken.entry(key).or_default().add(socket.local.port, socket.state == State::TIME_WAIT, owner);
    }

    fn add_bound(&mut self, socket: &Socket<'_>) {
        let key = (socket.local.port, socket.local.addr, socket.ifindex);
        if self.udp_bound.len() >= SOCKETS_MAX && !self.udp_bound.contains_key(&key) {
            self.over += 1;
            return;
        }
        let first = || Sharers { first: socket.inode, others: Vec::new() };
        let sharers = self.udp_bound.entry(key).or_insert_with(first);
        if sharers.first != socket.inode && socket.inode != 0 && sharers.others.len() < SHARERS_MAX {
            sharers.others.push(socket.inode);
        }
    }

    fn add_stuck(&mut self, socket: &Socket<'_>, peer: &PeerHost, is_window: bool, owner: &mut NameOwner<'_>) {
        // A connection that is not established yet does not count as stuck.
        if matches!(socket.state, State::SYN_SENT | State::SYN_RECV) {
            return;
        }
        if self.stuck.len() >= SOCKETS_MAX {
            self.over += 1;
            return;
        }
        let Queue { identity, name, owner, .. } = queue(socket, &peer.iface, None, owner);
        let (peer, send_q) = (peer.clone(), socket.wqueue.unwrap_or(0));
        let acked = socket.tcp_info.and_then(|info| info.bytes_acked());
        let (again, local_port) = (socket.retrans, socket.local.port);
        self.stuck.push(Stuck { identity, name, peer, owner, is_window, send_q, again, local_port, acked });
    }

    fn add_unclosed(&mut self, socket: &Socket<'_>, iface: &str, owner: &mut NameOwner<'_>) {
        let Queue { name, owner, .. } = queue(socket, iface, None, owner);
        if self.unclosed.len() >= SOCKETS_MAX && !self.unclosed.contains_key(&owner) {
            self.over += 1;
            return;
        }
        let of = self.unclosed.entry(owner).or_insert_with(|| Unclosed { count: 0, example: name });
        of.count += 1;
    }
}

/// Values of `idiag_timer`.
const RETRANSMIT: Timer = Timer(1);
const PROBE: Timer = Timer(4);

/// A program that sent data less than this long ago, in milliseconds, is still sending.
const SENDING_MS: u32 = 2000;

/// True for a connection whose peer has closed its direction only and still receives: `wget` and `curl` may do so.
fn is_sending(socket: &Socket<'_>) -> bool {
    let is_recent = socket.tcp_info.is_some_and(|info| {
        // The kernel also sets the time when the connection begins.
        info.bytes_sent().is_some_and(|sent| sent > 0) && info.last_data_sent_ms().is_some_and(|ms| ms < SENDING_MS)
    });
    socket.wqueue.unwrap_or(0) > 0 || is_recent
}

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

fn queue(socket: &Socket<'_>, iface: &str, limit: Option<u32>, owner: &mut NameOwner<'_>) -> Queue {
    let name = name(socket, iface);
    let received = socket.tcp_info.and_then(|info| info.bytes_received());
    let read = received.map(|received| received.saturating_sub(socket.rqueue.into()));
    let (identity, port, queue) = (socket.identity(), socket.local.port, socket.rqueue);
    Queue { identity, name, owner: owner(), queue, limit, drops: None, port, read }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_about_a_process_name_it_alone() {
        let holder = |name: &str, is_shared| Holder { name: name.into(), pid: Some(7), is_shared }.process();
        assert_eq!(holder("nginx (7, likely: 4 processes hold it)", true), "nginx (7)");
        assert_eq!(holder("a, likely: b (7, likely: 4 processes hold it)", true), "a, likely: b (7)");
        assert_eq!(holder("a, likely: b (7)", false), "a, likely: b (7)");
    }

    #[test]
    fn census_is_bounded() {
        let mut census = SocketCensus::default();
        let socket = Socket { proto: Proto::Tcp, state: State::LISTEN, rqueue: 1, ..Socket::EMPTY };
        (0..SOCKETS_MAX + 2).for_each(|_| census.add(&socket, (1, 2), "", &mut Holder::default));
        assert_eq!((census.listeners.len(), census.over), (SOCKETS_MAX, 2));
    }

    #[test]
    fn one_address_on_two_links_is_two_peers() {
        let end = |last, port| record::rows::Endpoint {
            addr: Addr::V6([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
            port,
        };
        let socket = Socket {
            state: State::SYN_SENT,
            retrans: 2,
            rqueue: UNREAD_MIN,
            local: end(1, 40_000),
            peer: end(2, 80),
            ..Socket::EMPTY
        };
        let mut census = SocketCensus::default();
        for (ifindex, iface) in [(3, "eth0"), (4, "eth1"), (3, "eth0")] {
            census.add(&Socket { ifindex, ..socket }, (32_768, 60_999), iface, &mut Holder::default);
        }
        let peers: Vec<_> = census.unanswered.iter().map(|((peer, _), count)| (peer.to_string(), *count)).collect();
        assert_eq!(peers, [("fe80::2%eth0".to_owned(), 2), ("fe80::2%eth1".to_owned(), 1)]);
        assert_eq!(census.destinations.len(), 2);
        assert_eq!(census.unread[1].name, "[fe80::1%eth1]:40000 from [fe80::2%eth1]:80");
    }
}
