//! Connections that events reported: those that are open, and those that ended a moment ago, with their owners.
//!
//! Bounded, and divided so that no user fills it for everybody (docs/adr/0015): the first [`FREE`] connections take
//! entries as they come; each further one is charged to its user, who may take a [`PART`]th of what is left. A
//! connection without an entry is found in the socket table as long as it exists.

use crate::port_set::PortSet;
use crate::secret_hash::SecretHash;
use crate::socket_index::Connection;
use record::rows::PacketSocket;
use std::collections::{HashMap, VecDeque};

/// Number of connections that take entries without being charged.
///
/// Bound: connections and UDP senders that a capture with owners remembers without shares. Beyond: a user then has a
/// share. By: a local user with as many connections.
const FREE: usize = 1 << 16;
/// Number of further connections, which users share.
///
/// Bound: further connections, shared out: each user gets an eighth of the rest
/// (`recent_connections::a_flood_by_one_user_costs_no_other_users_names`). Beyond: further connections of this user are
/// looked up in the socket table; short ones have no owner, counted. By: a local user, for that user's connections.
const SHARED: usize = 1 << 15;
/// A user may take one part in this number of what is left.
const PART: usize = 8;
/// How long an ended connection is remembered, for its last packets.
///
/// Bound: that a closed connection is remembered. Beyond: its later packets have no owner. By: the peer of the
/// connection.
const KEPT_NS: u64 = 3_000_000_000;

/// Namespace, interface, and the connection as its socket sees it.
pub(crate) type RecentKey = (u64, u32, Connection);

/// The key of a connection at an interface. The interface counts for link-local addresses alone: other packets may be
/// seen at a part of the interface that their socket is bound to.
pub(crate) fn recent_key(netns_id: u64, ifindex: u32, connection: Connection) -> RecentKey {
    let (_, own, _, peer, _) = connection;
    let is_of_link = own.is_link_local_v6() || peer.is_link_local_v6();
    (netns_id, if is_of_link { ifindex } else { 0 }, connection)
}

#[derive(Debug)]
struct Recent {
    socket: PacketSocket,
    /// When it was established, ns since 1970; 0 if before the first event.
    opened_ns: u64,
    is_charged: bool,
    /// When it ended; 0 while it is open.
    closed_ns: u64,
}

/// The remembered connections. Memory: [`FREE`] + [`SHARED`] entries of about 200 bytes.
#[derive(Debug, Default)]
pub(crate) struct RecentConnections {
    connections: HashMap<RecentKey, Recent, SecretHash>,
    /// Every port that is or was the local port of a connection.
    ports: PortSet,
    /// Number of charged entries per user.
    charged: HashMap<u32, usize>,
    /// The ended connections, in the order of their ends.
    ended: VecDeque<(u64, RecentKey)>,
}

impl RecentConnections {
    /// Records a connection that was established.
    pub(crate) fn opened(&mut self, key: RecentKey, socket: PacketSocket, at_ns: u64) {
        self.remove(&key);
        let Some(is_charged) = self.charge(socket.uid) else { return };
        self.put(key, Recent { socket, opened_ns: at_ns, is_charged, closed_ns: 0 });
    }

    /// Records a connection that ended, owned by `socket`; it may be older than the first event.
    pub(crate) fn closed(&mut self, key: RecentKey, socket: PacketSocket, at_ns: u64) {
        let opened_ns = match self.connections.get_mut(&key) {
            // The last owner may differ from the process that opened the connection, or there may be none.
            Some(recent) if socket.owners.is_empty() => {
                recent.closed_ns = at_ns;
                return self.ends(key, at_ns);
            }
            Some(recent) => recent.opened_ns,
            None => 0,
        };
        self.remove(&key);
        let Some(is_charged) = self.charge(socket.uid) else { return };
        self.put(key, Recent { socket, opened_ns, is_charged, closed_ns: at_ns });
        self.ends(key, at_ns);
    }

    fn put(&mut self, key: RecentKey, recent: Recent) {
        if self.connections.is_empty() {
            self.ports = PortSet::default();
        }
        let (_, _, (_, _, port, ..)) = key;
        self.ports.add(port);
        self.connections.insert(key, recent);
    }

    fn ends(&mut self, key: RecentKey, at_ns: u64) {
        self.ended.push_back((at_ns, key));
        // More ended connections than this within a few seconds means that the same ports are being reused repeatedly.
        if self.ended.len() > 2 * (FREE + SHARED) {
            self.forget(u64::MAX);
        }
    }

    /// Removes connections that ended some time before `now_ns`.
    pub(crate) fn forget(&mut self, now_ns: u64) {
        while let Some((ended_ns, key)) = self.ended.front().copied() {
            if ended_ns.saturating_add(KEPT_NS) > now_ns {
                return;
            }
            self.ended.pop_front();
            if self.connections.get(&key).is_some_and(|recent| recent.closed_ns == ended_ns) {
                self.remove(&key);
            }
        }
    }

    /// The socket of a connection, and when it was established.
    #[inline]
    pub(crate) fn get(&self, key: &RecentKey) -> Option<(&PacketSocket, u64)> {
        let (_, _, (_, _, port, ..)) = key;
        if !self.ports.has(*port) {
            return None;
        }
        // If the owner is unknown here, a reading may know it.
        let recent = self.connections.get(key).filter(|recent| !recent.socket.owners.is_empty())?;
        Some((&recent.socket, recent.opened_ns))
    }

    /// Charges a connection to this user: true if it takes an entry of the shared part, `None` if the user may take no
    /// more.
    fn charge(&mut self, uid: Option<u32>) -> Option<bool> {
        if self.connections.len() < FREE {
            return Some(false);
        }
        let of_user = self.charged.entry(account(uid)).or_default();
        let share = (FREE + SHARED).saturating_sub(self.connections.len()) / PART;
        if *of_user >= share {
            return None;
        }
        *of_user += 1;
        Some(true)
    }

    fn remove(&mut self, key: &RecentKey) {
        let Some(Recent { socket, is_charged: true, .. }) = self.connections.remove(key) else { return };
        if let Some(of_user) = self.charged.get_mut(&account(socket.uid)) {
            *of_user = of_user.saturating_sub(1);
            if *of_user == 0 {
                self.charged.remove(&account(socket.uid));
            }
        }
    }
}

/// All unknown users share one account.
fn account(uid: Option<u32>) -> u32 {
    uid.unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::ip_proto;
    use record::{Addr, Comm, Owner, Proto, State};
    use std::rc::Rc;

    fn key(number: u32) -> RecentKey {
        let [a, b, c, d] = number.to_be_bytes();
        (1, 0, (ip_proto::TCP, Addr::V4([10, 0, a, b]), u16::from_be_bytes([c, d]), Addr::V4([10, 9, 9, 9]), 80))
    }

    fn socket(pid: u32, uid: u32) -> PacketSocket {
        let owners = if pid == 0 { vec![] } else { vec![Owner { pid, fd: 3, process: Comm::new(b"x"), started: 0 }] };
        PacketSocket {
            inode: 0,
            proto: Proto::Tcp,
            state: State::ESTABLISHED,
            uid: Some(uid),
            owners: owners.into(),
            words: Rc::default(),
        }
    }

    fn pid(recent: &RecentConnections, number: u32) -> Option<u32> {
        recent.get(&key(number)).and_then(|(socket, _)| Some(socket.owners.first()?.pid))
    }

    #[test]
    fn a_connection_is_known_for_a_while_after_its_end() {
        let mut recent = RecentConnections::default();
        recent.opened(key(1), socket(7, 0), 100);
        recent.closed(key(1), socket(0, 0), 200);
        recent.closed(key(2), socket(8, 0), 300);
        recent.forget(200 + KEPT_NS - 1);
        assert_eq!([pid(&recent, 1), pid(&recent, 2)], [Some(7), Some(8)]);
        assert_eq!(recent.get(&key(1)).map(|(_, opened_ns)| opened_ns), Some(100));
        // The same ports are reused: the end of the earlier connection must not affect the new one.
        recent.opened(key(1), socket(9, 0), 250);
        recent.forget(200 + KEPT_NS);
        assert_eq!(pid(&recent, 1), Some(9));
        recent.forget(300 + KEPT_NS);
        assert_eq!((pid(&recent, 2), recent.connections.len(), recent.ended.len()), (None, 1, 0));
    }

    #[test]
    fn a_flood_by_one_user_costs_no_other_users_names() {
        let mut recent = RecentConnections::default();
        for number in 0..200_000 {
            recent.opened(key(number), socket(7, 1000), 1);
        }
        assert!(recent.connections.len() < FREE + SHARED / PART + PART, "{}", recent.connections.len());
        for number in 200_000..200_100 {
            recent.opened(key(number), socket(8, 1001), 1);
            assert_eq!(pid(&recent, number), Some(8));
        }
        (0..200_100).for_each(|number| recent.closed(key(number), socket(0, 1000), 2));
        recent.forget(2 + KEPT_NS);
        assert!(recent.connections.is_empty() && recent.charged.is_empty() && recent.ended.is_empty());
    }
}
