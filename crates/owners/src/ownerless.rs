//! Counts sockets that wait for peers and have no owner.

use crate::resolver::OwnerResolver;
use record::rows::{Socket, Sockets};
use record::{Accounting, Demand, Proto, Scan, Source, State, scan_through};

/// The sockets of another source; those that wait for peers and have no owner are counted.
pub struct OwnerlessCounted<'s> {
    /// The sockets.
    pub source: &'s dyn Source<Sockets>,
    /// Finds their owners.
    pub resolver: OwnerResolver<'s>,
    /// True for a row that passes the whole filter: sockets that are not shown are not counted.
    pub is_shown: &'s dyn Fn(&Socket<'_>) -> bool,
    /// Called with the number at the end of a run; adds a note about it to the row counts.
    pub report: &'s dyn Fn(u64, &mut Accounting),
}

impl Source<Sockets> for OwnerlessCounted<'_> {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        scan_through(self.source.prepare(demand), |inner, cache, each| {
            let mut count = 0;
            let mut stats = inner.run_with(cache, &mut |row| {
                count += u64::from(self.is_missed(row));
                each(row)
            })?;
            (self.report)(count, &mut stats);
            Ok(stats)
        })
    }
}

impl OwnerlessCounted<'_> {
    fn is_missed(&self, row: &Socket<'_>) -> bool {
        waits_for_peers(row) && row.inode != 0 && self.resolver.of_socket(row).is_empty() && (self.is_shown)(row)
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
