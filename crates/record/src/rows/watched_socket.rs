//! Sockets from round to round.

use super::watched::{Counters, Identity, Watchable, Watched};
use super::{Endpoint, Socket, Sockets, TcpInfo, UnixPart, UnixType};
use crate::{Proto, State};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What is left of a socket that is gone. Its owner is not: who holds what is read anew each round.
#[derive(Clone, Copy, Debug)]
pub struct SocketKept {
    local: Endpoint,
    peer: Endpoint,
    ifindex: u32,
    uid: Option<u32>,
    inode: u32,
    proto: Proto,
    family: u8,
    state: State,
    unix: Option<UnixType>,
    has_cookie: bool,
}

impl Watchable for Sockets {
    type Kept = SocketKept;

    #[inline]
    fn identity(row: &Socket<'_>) -> Identity {
        let id = if row.cookie == 0 { by_address(row) } else { row.cookie };
        Identity { netns_id: row.netns_id, id }
    }

    /// The one place that knows where a door keeps them.
    #[inline]
    fn counters(row: &Socket<'_>) -> Option<Counters> {
        let info: &TcpInfo<'_> = row.tcp_info.as_ref().filter(|_| !row.is_listener())?;
        Some(Counters {
            bytes_in: info.bytes_received()?,
            // Older kernels (before 4.19) count only what was acknowledged.
            bytes_out: info.bytes_sent().or_else(|| info.bytes_acked())?,
            segs_in: info.segs_in()?,
            segs_out: info.segs_out()?,
            retrans: info.total_retrans()?,
        })
    }

    #[inline]
    fn keep(row: &Socket<'_>) -> SocketKept {
        let Socket { local, peer, ifindex, uid, inode, proto, family, state, .. } = *row;
        let (unix, has_cookie) = (row.unix.map(|unix| unix.kind), row.cookie != 0);
        SocketKept { local, peer, ifindex, uid, inode, proto, family, state, unix, has_cookie }
    }

    #[inline]
    fn watched<'w>(row: &'w Socket<'_>, watched: &'w Watched) -> Socket<'w> {
        Socket { watched: Some(watched), ..*row }
    }

    fn gone<'w>(identity: Identity, kept: &'w SocketKept, watched: &'w Watched) -> Socket<'w> {
        let SocketKept { local, peer, ifindex, uid, inode, proto, family, state, .. } = *kept;
        let unix = |kind| UnixPart { kind, path: None, peer_inode: None, vfs: None, refs: None, flags: None };
        Socket {
            local,
            peer,
            ifindex,
            uid,
            inode,
            proto,
            family,
            state,
            cookie: if kept.has_cookie { identity.id } else { 0 },
            netns_id: identity.netns_id,
            unix: kept.unix.map(unix),
            watched: Some(watched),
            ..Socket::EMPTY
        }
    }
}

/// A door without cookies (/proc): whoever has the same addresses and inode is the same.
#[cold]
fn by_address(row: &Socket<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (row.proto, row.inode, row.local, row.peer).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Addr;

    #[test]
    fn gone_rows_tell_who_they_were() {
        let there = Socket {
            proto: Proto::Udp,
            family: 10,
            state: State::ESTABLISHED,
            local: Endpoint { addr: Addr::V6([1; 16]), port: 7 },
            peer: Endpoint { addr: Addr::V6([2; 16]), port: 8 },
            ifindex: 3,
            uid: Some(4),
            inode: 5,
            cookie: 6,
            netns_id: 9,
            ..Socket::EMPTY
        };
        let watched = Watched::default();
        let (identity, kept) = (Sockets::identity(&there), Sockets::keep(&there));
        let gone = Sockets::gone(identity, &kept, &watched);
        assert_eq!(gone, Sockets::watched(&there, &watched));
        let nameless = Socket { cookie: 0, ..there };
        assert_ne!(Sockets::identity(&nameless), Sockets::identity(&Socket { inode: 6, ..nameless }));
        assert_eq!(Sockets::gone(Sockets::identity(&nameless), &Sockets::keep(&nameless), &watched).cookie, 0);
    }

    #[test]
    fn counters_need_a_whole_tcp_info() {
        let mut bytes = [0u8; 208];
        bytes[200..208].copy_from_slice(&7u64.to_ne_bytes());
        let with = |bytes| Socket { tcp_info: Some(TcpInfo::new(bytes)), ..Socket::EMPTY };
        assert_eq!(Sockets::counters(&with(&bytes)).map(|c| c.bytes_out), Some(7));
        assert_eq!(Sockets::counters(&with(&bytes[..200])).map(|c| c.bytes_out), Some(0), "those acknowledged");
        assert_eq!(Sockets::counters(&with(&bytes[..104])), None);
        assert_eq!(Sockets::counters(&Socket::EMPTY), None);
        let listener = Socket { state: State::LISTEN, ..with(&bytes) };
        assert_eq!(Sockets::counters(&listener), None, "a listener transfers nothing");
    }
}
