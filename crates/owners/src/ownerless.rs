//! Counts sockets that wait for peers and have no owner.

use record::rows::{Socket, Sockets};
use record::{Accounting, Annotate, Each, HoldingKind, Key, Lookup, Next, Proto, State};

/// Sockets that wait for peers and that no process has a descriptor or an io_uring of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerlessCount {
    /// Sockets without an owner.
    pub unknown: u64,
    /// Sockets whose owner will receive them.
    pub in_flight: u64,
}

/// Counts the sockets that wait for peers and have no owner.
pub struct OwnerlessSockets<'s> {
    /// Socket inode → owners.
    pub owners: &'s dyn Lookup,
    /// True for a row that passes the whole filter: sockets that are not shown are not counted.
    pub is_shown: &'s dyn Fn(&Socket<'_>) -> bool,
    /// Called with the numbers at the end of a run; adds notes about them to the row counts.
    pub report: &'s dyn Fn(OwnerlessCount, &mut Accounting),
    /// The numbers so far.
    pub count: OwnerlessCount,
}

impl Annotate<Sockets> for OwnerlessSockets<'_> {
    fn row(&mut self, row: &Socket<'_>, each: &mut Each<'_, Sockets>) -> Next {
        if waits_for_peers(row) && row.inode != 0 {
            let count = || u64::from((self.is_shown)(row));
            match self.owners.owners(Key::Id(row.inode.into())) {
                [] => self.count.unknown += count(),
                [first, ..] if first.holding() == HoldingKind::InFlight => self.count.in_flight += count(),
                _ => {}
            }
        }
        each(row)
    }

    fn close(&mut self, stats: &mut Accounting) {
        (self.report)(std::mem::take(&mut self.count), stats);
    }
}

/// True for a listener, and for a UDP socket that accepts datagrams from any peer.
fn waits_for_peers(row: &Socket<'_>) -> bool {
    let is_udp = matches!(row.proto, Proto::Udp | Proto::UdpLite);
    row.state == State::LISTEN || (is_udp && row.state == State::CLOSE && row.local.port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_and_open_udp_ports_wait_for_peers() {
        let of = |proto, state, port| {
            let local = record::rows::Endpoint { port, ..Socket::EMPTY.local };
            waits_for_peers(&Socket { proto, state, local, ..Socket::EMPTY })
        };
        assert!(of(Proto::Tcp, State::LISTEN, 80) && of(Proto::Unix, State::LISTEN, 0));
        assert!(of(Proto::Udp, State::CLOSE, 53));
        assert!(!of(Proto::Udp, State::CLOSE, 0) && !of(Proto::Udp, State::ESTABLISHED, 53));
        assert!(!of(Proto::Tcp, State::ESTABLISHED, 80) && !of(Proto::Tcp, State::CLOSE, 80));
    }
}
