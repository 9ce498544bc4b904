//! Connections in which nothing moves: not accepted, not read, or without an answer from their peer.

use record::rows::Socket;
use record::{Addr, Proto, State, Timer};
use std::collections::BTreeMap;

use super::ends::{Holder, NameOwner, PeerHost, SOCKETS_MAX, name as socket_name};

/// Values of `idiag_timer`.
const RETRANSMIT: Timer = Timer(1);
const KEEPALIVE: Timer = Timer(2);
const PROBE: Timer = Timer(4);

/// Peers that were heard longer ago than this are not recorded, in milliseconds: longer than any window of the doctor.
const HEARD_MS: u32 = 60_000;

/// The time that a connection stays in TIME_WAIT after its peer's last segment, in milliseconds: TCP_TIMEWAIT_LEN.
const TIME_WAIT_MS: u32 = 60_000;

/// Sockets that wait, in bounded memory.
#[derive(Debug, Default, Clone)]
pub struct Waiting {
    /// Number of TCP listeners by port.
    pub listeners: BTreeMap<u16, u32>,
    /// Connections in accept queues.
    pub unaccepted: Vec<Unaccepted>,
    /// Accepted connections with data that their program has not read.
    pub unread: Vec<UnreadData>,
    /// The owner of one of them, and its addresses, by local port.
    pub readers: BTreeMap<u16, (Holder, String)>,
    /// Connections whose peer left retransmissions or probes unanswered.
    pub silent: Vec<Silent>,
    /// Peers, and the milliseconds since the last segment of one of their connections. If the limit of
    /// [`SOCKETS_MAX`] is reached, a missing peer may have been heard.
    pub heard: Vec<(Addr, u32)>,
    /// Sockets beyond [`SOCKETS_MAX`] of a kind, which are not recorded.
    pub over: u64,
}

/// A connection in an accept queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unaccepted {
    /// [`Socket::identity`].
    pub identity: u64,
    /// Its local port.
    pub port: u16,
}

/// An accepted connection with unread data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadData {
    /// [`Socket::identity`].
    pub identity: u64,
    /// Its local port.
    pub port: u16,
    /// Unread bytes.
    pub unread: u32,
    /// Bytes that its program has read since it began; `None` if the number is unknown.
    pub read: Option<u64>,
    /// Bytes sent since it began; `None` if the number is unknown.
    pub sent: Option<u64>,
    /// True until the peer has closed its direction: clients that have given up no longer wait.
    pub is_open: bool,
}

/// Segments that a peer does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// Retransmitted data.
    Data,
    /// Probes of its closed window.
    WindowProbes,
    /// Keepalive probes.
    Keepalives,
}

/// A connection whose peer left a retransmission or a probe unanswered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silent {
    /// [`Socket::identity`].
    pub identity: u64,
    /// Its addresses and ports.
    pub name: String,
    /// The peer.
    pub peer: PeerHost,
    /// The peer's port.
    pub peer_port: u16,
    /// Its owner.
    pub owner: Holder,
    /// The segments that it does not answer.
    pub what: Unanswered,
    /// Consecutive retransmissions or probes.
    pub again: u8,
    /// Milliseconds since the last segment of the peer.
    pub heard_ms: u32,
    /// Bytes that wait to be acknowledged.
    pub send_q: u32,
    /// Average bytes of the segments that wait to be acknowledged.
    pub segment: u32,
    /// Bytes that the peer has acknowledged since the connection began; `None` if the number is unknown.
    pub acked: Option<u64>,
    /// Its local port.
    pub local_port: u16,
}

impl Waiting {
    /// Counts a TCP socket.
    pub(super) fn add(&mut self, socket: &Socket<'_>, iface: &str, owner: &mut NameOwner<'_>) {
        if socket.proto != Proto::Tcp {
            return;
        }
        if socket.state == State::LISTEN {
            *self.listeners.entry(socket.local.port).or_default() += 1;
            return;
        }
        let is_open = matches!(socket.state, State::ESTABLISHED | State::CLOSE_WAIT);
        // Only a connection that nothing has accepted is open without an inode.
        if is_open && socket.inode == 0 && socket.identity() != 0 {
            let one = Unaccepted { identity: socket.identity(), port: socket.local.port };
            push(&mut self.unaccepted, one, &mut self.over);
        }
        if is_open && socket.inode != 0 {
            self.add_unread(socket, iface, owner);
        }
        self.add_peer(socket, iface, owner);
    }

    fn add_unread(&mut self, socket: &Socket<'_>, iface: &str, owner: &mut NameOwner<'_>) {
        let is_open = socket.state == State::ESTABLISHED;
        // The end of the peer's data counts as a byte.
        if socket.rqueue <= u32::from(!is_open) || socket.identity() == 0 {
            return;
        }
        let (identity, port, info) = (socket.identity(), socket.local.port, socket.tcp_info);
        let received = info.and_then(|info| info.bytes_received());
        let read = received.map(|received| received.saturating_sub(socket.rqueue.into()));
        let sent = info.and_then(|info| info.bytes_sent());
        push(
            &mut self.unread,
            UnreadData { identity, port, unread: socket.rqueue, read, sent, is_open },
            &mut self.over,
        );
        // The owner of a connection that was accepted just now is unknown.
        let is_known = self.readers.get(&port).is_some_and(|(owner, _)| owner.is_known());
        if !is_known && (self.readers.contains_key(&port) || self.readers.len() < SOCKETS_MAX) {
            self.readers.insert(port, (owner(), socket_name(socket, iface)));
        }
    }

    fn add_heard(&mut self, addr: Addr, heard_ms: u32) {
        if heard_ms < HEARD_MS && self.heard.len() < SOCKETS_MAX {
            self.heard.push((addr, heard_ms));
        }
    }

    /// Records when the peer was heard, and what it leaves unanswered.
    fn add_peer(&mut self, socket: &Socket<'_>, iface: &str, owner: &mut NameOwner<'_>) {
        let addr = socket.peer.addr.unmapped();
        if socket.state == State::TIME_WAIT {
            self.add_heard(addr, TIME_WAIT_MS.saturating_sub(socket.timer_ms));
        }
        let Some(info) = socket.tcp_info else { return };
        let since = [info.last_ack_recv_ms(), info.last_data_recv_ms()].into_iter().flatten().min();
        let Some(heard_ms) = since.filter(|_| !matches!(socket.state, State::SYN_SENT | State::SYN_RECV)) else {
            return;
        };
        self.add_heard(addr, heard_ms);
        let what = match socket.timer {
            RETRANSMIT => Unanswered::Data,
            KEEPALIVE => Unanswered::Keepalives,
            PROBE => Unanswered::WindowProbes,
            _ => return,
        };
        if socket.retrans == 0 || socket.inode == 0 || socket.identity() == 0 {
            return;
        }
        if self.silent.len() >= SOCKETS_MAX {
            self.over += 1;
            return;
        }
        let send_q = socket.wqueue.unwrap_or(0);
        let in_flight = send_q.saturating_sub(info.notsent_bytes().unwrap_or(0));
        self.silent.push(Silent {
            identity: socket.identity(),
            name: socket_name(socket, iface),
            peer: PeerHost { addr, iface: iface.to_owned() },
            peer_port: socket.peer.port,
            owner: owner(),
            what,
            again: socket.retrans,
            heard_ms,
            send_q,
            segment: in_flight / info.unacked().unwrap_or(1).max(1),
            acked: info.bytes_acked(),
            local_port: socket.local.port,
        });
    }
}

fn push<T>(all: &mut Vec<T>, one: T, over: &mut u64) {
    if all.len() < SOCKETS_MAX { all.push(one) } else { *over += 1 }
}
