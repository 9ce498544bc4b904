//! Keys that identify rows, to leave out those that come twice.

use record::Proto;
use record::hash::{mix_addr, mix_into};
use record::rows::Socket;

/// The keys by which a row is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Identifies one socket of the kernel: the same number means the same socket. 0 if the interface does not provide
    /// it.
    pub(crate) identity: u64,
    /// A hash of both endpoints. Several sockets may have the same.
    pub(crate) ends: u64,
}

/// A key that identifies a row of /proc, which has no cookie: the inode, which the kernel gives to one socket only, and
/// everything else that identifies the socket. 0 if nothing does; such rows are never treated as duplicates. Sockets
/// without an inode (time-wait, half-open, those without an owner) only differ in their endpoints, and lines of unix
/// sockets end with a path, a text chosen by the owner that can look like any line.
pub(crate) fn key_of(row: &Socket<'_>) -> u64 {
    match row.extras.and_then(|extras| extras.netlink) {
        // The kernel's own netlink sockets only have inodes since 6.18.
        Some(part) => return mix_into(u64::from(row.inode) << 8 | u64::from(part.protocol.0), part.portid.into()) | 1,
        None if row.proto == Proto::Unix || row.inode == 0 => return 0,
        None if row.proto == Proto::Packet => return row.inode.into(),
        None => {}
    }
    let ports = u64::from(row.local.port) << 16 | u64::from(row.peer.port);
    let mut key = mix_into(u64::from(row.inode) << 32 | ports, u64::from(row.family));
    for addr in [row.local.addr, row.peer.addr] {
        key = mix_addr(key, &addr);
    }
    key | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Addr;
    use record::rows::{Endpoint, Socket};

    #[test]
    fn keys_differ_where_sockets_do() {
        let local = Endpoint { addr: Addr::V4([10, 0, 0, 1]), port: 80 };
        let row = Socket { proto: Proto::Tcp, local, inode: 4, ..Socket::EMPTY };
        let swapped = Socket { local: row.peer, peer: row.local, ..row };
        let other = Socket { inode: 5, ..row };
        let keys = [key_of(&row), key_of(&swapped), key_of(&other)];
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        assert_eq!(key_of(&row), key_of(&row.clone()));
        // Such rows have no identity, even if they agree in everything.
        for proto in [Proto::Tcp, Proto::Udp, Proto::Packet] {
            assert_eq!(key_of(&Socket { proto, inode: 0, ..row }), 0);
        }
        assert_eq!(key_of(&Socket { proto: Proto::Unix, ..row }), 0, "the inode may be somebody's text");
    }
}
