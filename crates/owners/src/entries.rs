//! Conntrack entries with their owners.

use crate::checksum::OwnerChecksum;
use crate::resolver::OwnerResolver;
use crate::socket_index::SocketIndex;
use record::rows::{Conntrack, Nat};
use record::{Accounting, Demand, Each, RowBytes, RowCache, Scan, Source, SourceError, scan_through};
use std::hash::RandomState;

/// The note for backends that are elsewhere when only one namespace is read.
const AWAY: &str = "some entries are between other hosts or network namespaces and have no owner here: --all-netns \
                    names the processes of backends and of clients in the other namespaces of this host";

/// The note for an address that several namespaces have.
const SHARED: &str = "several network namespaces have the address of a backend: which one answers is not known, and \
                      its owner is not named";

/// The entries of another source, with owners in each row.
pub struct OwnedEntries<'o, P> {
    /// The entries.
    pub source: &'o dyn Source<Nat>,
    /// The sockets at their ends.
    pub sockets: &'o SocketIndex,
    /// Finds the owners of these sockets.
    pub resolver: OwnerResolver<'o>,
    /// The secret of the checksums that show whether owners are unchanged since the previous round: the same in all
    /// rounds.
    pub secret: &'o RandomState,
    /// The source ports of both directions of an undecoded row.
    pub own_ports: P,
}

impl<P: Fn(&RowBytes<'_>) -> Option<[u16; 2]>> Source<Nat> for OwnedEntries<'_, P> {
    fn prepare(&self, demand: &Demand<Nat>) -> Box<dyn Scan<Nat> + '_> {
        scan_through(self.source.prepare(demand), |inner, cache, each| match cache {
            None => self.run(inner, None, each),
            Some(cache) => {
                let sums = self.sockets.sums(|inode| self.resolver.of_inode(inode), self.secret);
                let cache = OwnerChecksum { cache, sums, own_ports: &self.own_ports };
                self.run(inner, Some(&cache), each)
            }
        })
    }
}

impl<P> OwnedEntries<'_, P> {
    fn run(
        &self,
        inner: &mut dyn Scan<Nat>,
        cache: Option<&dyn RowCache>,
        each: &mut Each<'_, Nat>,
    ) -> Result<Accounting, SourceError> {
        let (mut is_away, mut is_shared) = (false, false);
        let mut stats = inner.run_with(cache, &mut |row| match self.resolver.of_entry(self.sockets, row) {
            Some(owners) if !owners.is_empty() => each(&Conntrack { owners, ..*row }),
            Some(_) => each(row),
            None => {
                is_away = is_away || self.sockets.is_away(row);
                is_shared = is_shared || self.sockets.is_shared(row);
                each(row)
            }
        })?;
        if is_away {
            stats.add_reason(0, AWAY);
        }
        if is_shared {
            stats.add_reason(0, SHARED);
        }
        Ok(stats)
    }
}
