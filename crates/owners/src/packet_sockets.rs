//! The sockets that packets come from and go to, according to the newest reading and later events.
//!
//! A packet can be answered from a reading taken after it, or by a socket that already has its addresses and ports;
//! otherwise it must wait. It must not be answered from a reading taken before its connection began, because the ports
//! may have belonged to another process.

use crate::attribution::Attribution;
use crate::recent_connections::{RecentConnections, RecentKey, recent_key};
use crate::secret_hash::SecretHash;
use crate::socket_index::SocketIndex;
use record::rows::tcp_flag::{ACK, SYN};
use record::rows::{CapturedPacket, CtTuple, PacketHeaders, PacketSocket, PktType, Socket, Transport, ip_proto};
use record::{Addr, Proto};
use std::collections::HashMap;

/// The sockets of one reading.
#[derive(Debug)]
struct SocketsAt {
    /// Start of the reading, ns since 1970.
    taken_ns: u64,
    index: SocketIndex,
    /// The sockets by inode.
    sockets: HashMap<u32, PacketSocket, SecretHash>,
}

/// The known sockets of the host.
#[derive(Debug)]
pub struct PacketSockets {
    now: SocketsAt,
    /// The previous reading, for packets that are older than the newest one.
    before: SocketsAt,
    /// A reading that has been received in part.
    next: Option<SocketsAt>,
    recent: RecentConnections,
}

/// The answers for both ends of a packet, the sender's first.
pub(crate) type PacketEnds<'s> = [Attribution<&'s PacketSocket>; 2];

/// One end of a packet.
struct End<'q> {
    netns_id: u64,
    /// The addresses as seen from this end: its own is the source.
    from: &'q CtTuple,
    is_sender: bool,
    /// The TCP flags.
    flags: u8,
    packet: &'q CapturedPacket<'q>,
}

impl SocketsAt {
    fn new(taken_ns: u64) -> SocketsAt {
        SocketsAt { taken_ns, index: SocketIndex::new(false), sockets: HashMap::default() }
    }

    fn connected(&self, end: &End<'_>) -> Option<&PacketSocket> {
        self.sockets.get(&self.index.connected_inode(end.netns_id, end.packet.ifindex, end.from)?)
    }

    fn bound(&self, end: &End<'_>) -> Option<&PacketSocket> {
        self.sockets.get(&self.index.bound_inode(end.netns_id, end.packet.ifindex, end.from)?)
    }

    fn any(&self, end: &End<'_>) -> Option<&PacketSocket> {
        self.connected(end).or_else(|| self.bound(end))
    }
}

impl Default for PacketSockets {
    fn default() -> PacketSockets {
        let none = || SocketsAt::new(0);
        PacketSockets { now: none(), before: none(), next: None, recent: RecentConnections::default() }
    }
}

impl PacketSockets {
    /// Starts a reading that began at `taken_ns` (since 1970): its addresses and sockets follow, then
    /// [`PacketSockets::end`]. Until then the previous reading is used.
    pub fn begin(&mut self, taken_ns: u64) {
        self.next = Some(SocketsAt::new(taken_ns));
    }

    /// Adds an address of a namespace.
    pub fn add_address(&mut self, netns_id: u64, addr: Addr) {
        self.next.iter_mut().for_each(|next| next.index.add_address(netns_id, addr));
    }

    /// Adds a socket with its namespace, addresses, ports and inode, and further data about it.
    pub fn add_socket(&mut self, ends: &Socket<'_>, known: PacketSocket) {
        let Some(next) = &mut self.next else { return };
        next.index.add_socket(ends);
        next.sockets.insert(ends.inode, known);
    }

    /// Completes the reading.
    pub fn end(&mut self) {
        if let Some(next) = self.next.take() {
            self.before = std::mem::replace(&mut self.now, next);
            self.recent.forget(self.now.taken_ns);
        }
    }

    /// Records a TCP connection that was established at `at_ns` (since 1970).
    pub fn opened(&mut self, ends: &Socket<'_>, known: PacketSocket, at_ns: u64) {
        self.recent.opened(connection(ends), known, at_ns);
    }

    /// Records a TCP connection that ended.
    pub fn closed(&mut self, ends: &Socket<'_>, known: PacketSocket, at_ns: u64) {
        self.recent.closed(connection(ends), known, at_ns);
        self.recent.forget(at_ns);
    }

    /// Records that a UDP socket has sent at `at_ns`. A dual-stack socket is reported once per family. No event reports
    /// the close of a UDP socket, so its entry expires after a while.
    pub fn sends(&mut self, ends: &Socket<'_>, known: PacketSocket, at_ns: u64) {
        let key = sender(ends.netns_id, ends.ifindex, ends.local.addr, ends.local.port);
        self.recent.closed(key, known, at_ns);
        self.recent.forget(at_ns);
    }

    /// Start of the newest reading, ns since 1970; 0 before the first one.
    pub fn taken_ns(&self) -> u64 {
        self.now.taken_ns
    }

    /// The results for both ends of a packet.
    #[inline]
    pub(crate) fn ends(&self, packet: &CapturedPacket<'_>) -> PacketEnds<'_> {
        let Some(headers) = packet.packet.as_ref().filter(|headers| has_socket(headers)) else {
            return [Attribution::NotHere; 2];
        };
        let Some((sport, dport)) = headers.transport.ports() else { return [Attribution::NotHere; 2] };
        let tuple = |src, dst, src_part, dst_part| CtTuple {
            src,
            dst,
            src_part,
            dst_part,
            proto: headers.proto,
            ..CtTuple::EMPTY
        };
        let (src, dst) = (headers.src, headers.dst);
        let flags = if let Transport::Tcp(tcp) = headers.transport { tcp.flags & (SYN | ACK) } else { 0 };
        let end =
            |from: &CtTuple, is_sender| self.end_of(&End { netns_id: packet.netns_id, from, is_sender, flags, packet });
        [end(&tuple(src, dst, sport, dport), true), end(&tuple(dst, src, dport, sport), false)]
    }

    /// The results if waiting is impossible: from the newest reading, regardless of its age.
    pub(crate) fn ends_now(&self, packet: &CapturedPacket<'_>) -> PacketEnds<'_> {
        // Treats the packet as older than the reading.
        let aged = CapturedPacket { time_ns: 0, ..*packet };
        self.ends(&aged)
    }

    fn end_of(&self, end: &End<'_>) -> Attribution<&PacketSocket> {
        let found = match (end.from.proto, end.flags, end.is_sender) {
            (ip_proto::TCP, SYN, true) => self.beginning(end),
            // The listener receives it; which process will accept the connection is not decided yet.
            (ip_proto::TCP, SYN, false) => self.now.bound(end).or_else(|| self.begun(end)),
            (ip_proto::TCP, ..) => self.connection(end),
            _ => self.now.any(end).or_else(|| self.of_group(end)),
        };
        match found {
            Some(socket) if socket.owners.is_empty() && socket.inode != 0 => self.ownerless(socket),
            Some(socket) => Attribution::Found(socket),
            None if !self.now.index.is_ours(end.netns_id, end.from.src.unmapped()) => Attribution::NotHere,
            None if !self.is_younger(end) => Attribution::NotYet,
            None => self.late(end).map_or(Attribution::Unknown, Attribution::Found),
        }
    }

    /// Handles a socket without an owner in one reading. A reading can miss a descriptor that is opened or moved while
    /// it is taken: only a socket without an owner in two readings really has no owner.
    #[cold]
    fn ownerless<'s>(&'s self, socket: &'s PacketSocket) -> Attribution<&'s PacketSocket> {
        match self.before.sockets.get(&socket.inode) {
            Some(before) if before.owners.is_empty() => Attribution::Found(socket),
            Some(before) => Attribution::Found(before),
            None => Attribution::NotYet,
        }
    }

    /// The socket that sends the first packet of a connection.
    fn beginning(&self, end: &End<'_>) -> Option<&PacketSocket> {
        self.begun(end).or_else(|| self.now.connected(end).filter(|_| self.is_younger(end)))
    }

    /// The socket of the connection that the packet began, if an event has reported it.
    fn begun(&self, end: &End<'_>) -> Option<&PacketSocket> {
        let (socket, opened_ns) = self.recent.get(&key(end))?;
        (opened_ns >= end.packet.time_ns).then_some(socket)
    }

    fn connection(&self, end: &End<'_>) -> Option<&PacketSocket> {
        if let Some((socket, _)) = self.recent.get(&key(end)) {
            return Some(socket);
        }
        // A listener replies with SYN and ACK.
        self.now
            .connected(end)
            .or_else(|| if end.flags == SYN | ACK && end.is_sender { self.now.bound(end) } else { None })
    }

    /// A socket that receives multicast or broadcast packets at this port.
    #[inline]
    fn of_group(&self, end: &End<'_>) -> Option<&PacketSocket> {
        let to_many = matches!(end.packet.packet_type, Some(PktType::Broadcast | PktType::Multicast));
        if !to_many || end.is_sender {
            return None;
        }
        let (netns_id, from) = (end.netns_id, end.from);
        let (port, ifindex) = (from.sport()?, end.packet.ifindex);
        self.now.sockets.get(&self.now.index.inode_of_group(netns_id, ifindex, from.proto, from.src, port)?)
    }

    /// A socket of an earlier reading that may own a packet older than the newest reading.
    fn late(&self, end: &End<'_>) -> Option<&PacketSocket> {
        if end.from.proto == ip_proto::TCP && end.flags == SYN {
            return None;
        }
        if end.from.proto == ip_proto::UDP {
            let (own, port) = (end.from.src, end.from.src_part);
            let key = |addr| sender(end.netns_id, end.packet.ifindex, addr, port);
            let at = |addr| self.recent.get(&key(addr)).map(|(socket, _)| socket);
            // A socket that existed only between two readings.
            let any = if matches!(own.unmapped(), Addr::V4(_)) { Addr::ANY4 } else { Addr::ANY6 };
            if let Some(socket) = at(own).or_else(|| at(any)) {
                return Some(socket);
            }
        }
        // Connections that have not been accepted, or have lost their last owner, belong to the listener.
        self.before.connected(end).or_else(|| self.now.bound(end)).or_else(|| self.before.bound(end))
    }

    /// True if the newest reading is later than the packet.
    fn is_younger(&self, end: &End<'_>) -> bool {
        self.now.taken_ns > end.packet.time_ns
    }
}

/// The key of a UDP socket that has sent, regardless of the peer. Without a local address, the key has the wildcard of
/// the family.
fn sender(netns_id: u64, ifindex: u32, own: Addr, port: u16) -> RecentKey {
    recent_key(netns_id, ifindex, (ip_proto::UDP, own.unmapped(), port, Addr::ANY4, 0))
}

/// True for the protocols whose sockets are looked up.
pub(crate) fn has_socket(headers: &PacketHeaders<'_>) -> bool {
    matches!(headers.proto, ip_proto::TCP | ip_proto::UDP)
}

fn key(end: &End<'_>) -> RecentKey {
    let from = end.from;
    let connection = (from.proto, from.src.unmapped(), from.src_part, from.dst.unmapped(), from.dst_part);
    recent_key(end.netns_id, end.packet.ifindex, connection)
}

fn connection(ends: &Socket<'_>) -> RecentKey {
    let proto = if ends.proto == Proto::Udp { ip_proto::UDP } else { ip_proto::TCP };
    let connection = (proto, ends.local.addr.unmapped(), ends.local.port, ends.peer.addr.unmapped(), ends.peer.port);
    recent_key(ends.netns_id, ends.ifindex, connection)
}

#[cfg(test)]
pub(crate) mod tests;
