//! Comparison of sockets between rounds.

use super::diff::{Change, Counters, DiffTable, Identity, Rate, RowDiff};
use super::{Endpoint, Socket, Sockets, TcpInfo, UnixPart, UnixType, need};
use crate::hash::{mix_addr, mix_into};
use crate::table::fields;
use crate::{Field, Proto, State};

type F = Field<Sockets>;

/// The fields that compare a round with the previous one.
pub(super) const ROUNDS: &[F] = fields! { F:
    /// With --watch: new, kept or gone since the previous round; null in the first round. Rows that are gone are shown
    /// only if this column is.
    change: Name(Change::NAMES) = own(|row| RowDiff::change(row.diff)), needs need::INODE;
    /// With --watch: bytes received per second since the previous round; null for a new row.
    bytes_in_per_s: Bytes = own(|row| RowDiff::rate(row.diff, Rate::bytes_in_per_s)),
        needs need::COUNTERS | need::INODE;
    /// With --watch: bytes sent per second since the previous round, retransmitted bytes included.
    bytes_out_per_s: Bytes = own(|row| RowDiff::rate(row.diff, Rate::bytes_out_per_s)),
        needs need::COUNTERS | need::INODE;
    /// With --watch: bytes received and sent per second; the table is sorted by it.
    bytes_per_s: Bytes = own(|row| RowDiff::rate(row.diff, Rate::bytes_per_s)),
        needs need::COUNTERS | need::INODE;
    /// With --watch: segments received per second since the previous round.
    segs_in_per_s: Count = own(|row| RowDiff::rate(row.diff, Rate::segs_in_per_s)), needs need::COUNTERS | need::INODE;
    /// With --watch: segments sent per second since the previous round.
    segs_out_per_s: Count = own(|row| RowDiff::rate(row.diff, Rate::segs_out_per_s)),
        needs need::COUNTERS | need::INODE;
    /// With --watch: segments retransmitted per second since the previous round.
    retrans_per_s: Count = own(|row| RowDiff::rate(row.diff, Rate::retrans_per_s)),
        needs need::COUNTERS | need::INODE | need::RESENT;
};

/// The data saved from a socket, to show it after it has disappeared. Its owner is found by the inode, as long as a
/// lookup remembers it.
#[derive(Clone, Copy, Debug)]
pub struct SavedSocket {
    local: Endpoint,
    peer: Endpoint,
    ifindex: u32,
    uid: Option<u32>,
    inode: u32,
    proto: Proto,
    family: u8,
    state: State,
    unix: Option<UnixType>,
    /// 0 if the backend did not report it.
    cookie: u64,
}

impl DiffTable for Sockets {
    type Saved = SavedSocket;

    /// The identity does not depend on the backend, because the next round may use a different one, possibly without
    /// cookies. A TCP connection is identified by its two ends, which outlive its inode in TIME_WAIT; any other socket
    /// by its inode.
    #[inline]
    fn identity(row: &Socket<'_>, secret: u64) -> Identity {
        let connection = matches!(row.proto, Proto::Tcp | Proto::Mptcp) && row.peer.port != 0;
        let kind = u64::from(row.proto as u8) << 40 | u64::from(row.family) << 32 | u64::from(row.ifindex);
        let id = match row.inode {
            inode if inode != 0 && !connection => mix_into(secret ^ u64::from(inode), kind),
            _ if connection => mix_into(end(end(secret, &row.local), &row.peer), kind),
            // The kernel's own netlink sockets are equal in everything else.
            _ => mix_into(end(mix_into(secret, row.cookie), &row.local), kind),
        };
        Identity { netns_id: row.netns_id, id }
    }

    /// Ports are reused, cookies never are. If a cookie is unknown, the inode decides.
    #[inline]
    fn is_same(kept: &SavedSocket, row: &Socket<'_>) -> bool {
        if kept.cookie != 0 && row.cookie != 0 {
            return kept.cookie == row.cookie;
        }
        kept.inode == row.inode || kept.inode == 0 || row.inode == 0
    }

    /// Reads the counters; no other function knows where they are stored.
    #[inline]
    fn counters(row: &Socket<'_>) -> Option<Counters> {
        let info: &TcpInfo<'_> = row.tcp_info.as_ref().filter(|_| !row.is_listener())?;
        Some(Counters {
            bytes_in: info.bytes_received()?,
            // Kernels before 4.19 count only acknowledged bytes.
            bytes_out: info.bytes_sent().or_else(|| info.bytes_acked())?,
            segs_in: info.segs_in()?,
            segs_out: info.segs_out()?,
            retrans: info.total_retrans()?,
        })
    }

    #[inline]
    fn save(row: &Socket<'_>) -> SavedSocket {
        let Socket { local, peer, ifindex, uid, inode, proto, family, state, cookie, .. } = *row;
        SavedSocket { local, peer, ifindex, uid, inode, proto, family, state, unix: row.unix.map(|u| u.kind), cookie }
    }

    #[inline]
    fn with_diff<'w>(row: &'w Socket<'_>, diff: &'w RowDiff) -> Socket<'w> {
        Socket { diff: Some(diff), ..*row }
    }

    fn vanished_row<'w>(identity: Identity, kept: &'w SavedSocket, diff: &'w RowDiff) -> Socket<'w> {
        let SavedSocket { local, peer, ifindex, uid, inode, proto, family, state, cookie, .. } = *kept;
        let unix =
            |kind| UnixPart { kind, path: None, peer_inode: None, vfs: None, refs: None, flags: None, icons: None };
        Socket {
            local,
            peer,
            ifindex,
            uid,
            inode,
            proto,
            family,
            state,
            cookie,
            netns_id: identity.netns_id,
            unix: kept.unix.map(unix),
            diff: Some(diff),
            ..Socket::EMPTY
        }
    }
}

fn end(key: u64, end: &Endpoint) -> u64 {
    mix_addr(mix_into(key, end.port.into()), &end.addr)
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
        let diff = RowDiff::default();
        let gone = Sockets::save(&there);
        let gone = Sockets::vanished_row(Sockets::identity(&there, 1), &gone, &diff);
        assert_eq!(gone, Sockets::with_diff(&there, &diff));
    }

    #[test]
    fn a_connection_is_the_same_by_every_door_until_its_ports_are_used_again() {
        let ends = |port| Endpoint { addr: Addr::V4([192, 0, 2, 1]), port };
        let open = Socket { local: ends(1), peer: ends(2), inode: 5, cookie: 6, ..Socket::EMPTY };
        let id = |row: &Socket<'_>| Sockets::identity(row, 3);
        let time_wait = Socket { inode: 0, state: State::TIME_WAIT, ..open };
        let other_door = Socket { cookie: 0, ..open };
        for same in [time_wait, other_door] {
            assert_eq!(id(&open), id(&same));
            assert!(Sockets::is_same(&Sockets::save(&open), &same) && Sockets::is_same(&Sockets::save(&same), &open));
        }
        for again in [Socket { cookie: 7, ..open }, Socket { cookie: 0, inode: 8, ..open }] {
            assert!(!Sockets::is_same(&Sockets::save(&open), &again));
        }
        for other in [
            Socket { peer: ends(3), ..open },
            Socket { netns_id: 1, ..open },
            Socket { proto: Proto::Mptcp, ..open },
            Socket { local: ends(2), peer: ends(1), ..open },
        ] {
            assert_ne!(id(&open), id(&other));
        }
        // Listeners may share an address.
        let listener = Socket { peer: Endpoint::NONE, state: State::LISTEN, ..open };
        assert_ne!(id(&listener), id(&Socket { inode: 9, ..listener }));
        assert_ne!(id(&listener), Sockets::identity(&listener, 4));
        let nobodys = Socket { proto: Proto::Netlink, inode: 0, ..listener };
        assert_ne!(id(&nobodys), id(&Socket { cookie: 77, ..nobodys }));
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
