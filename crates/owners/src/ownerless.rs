//! Counts sockets that wait for peers and have no owner.

use crate::resolver::OwnerResolver;
use record::rows::{Socket, Sockets};
use record::{Accounting, Demand, Holding, Proto, Scan, Source, State, scan_through};

/// Sockets that wait for peers and that no process has a descriptor or an io_uring of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerlessCount {
    /// Sockets without an owner.
    pub unknown: u64,
    /// Sockets whose owner will receive them.
    pub in_flight: u64,
}

/// The sockets of another source; those that wait for peers and have no owner are counted.
pub struct OwnerlessCounted<'s> {
    /// The sockets.
    pub source: &'s dyn Source<Sockets>,
    /// Finds their owners.
    pub resolver: OwnerResolver<'s>,
    /// True for a row that passes the whole filter: sockets that are not shown are not counted.
    pub is_shown: &'s dyn Fn(&Socket<'_>) -> bool,
    /// Called with the numbers at the end of a run; adds notes about them to the row counts.
    pub report: &'s dyn Fn(OwnerlessCount, &mut Accounting),
}

impl Source<Sockets> for OwnerlessCounted<'_> {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        scan_through(self.source.prepare(demand), |inner, cache, each| {
            let mut count = OwnerlessCount::default();
            let mut stats = inner.run_with(cache, &mut |row| {
                self.add(row, &mut count);
                each(row)
            })?;
            (self.report)(count, &mut stats);
            Ok(stats)
        })
    }
}

impl OwnerlessCounted<'_> {
    fn add(&self, row: &Socket<'_>, count: &mut OwnerlessCount) {
        if !waits_for_peers(row) || row.inode == 0 {
            return;
        }
        match self.resolver.of_socket(row) {
            [] => count.unknown += u64::from((self.is_shown)(row)),
            [first, ..] if first.holding() == Holding::InFlight => count.in_flight += u64::from((self.is_shown)(row)),
            _ => {}
        }
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
