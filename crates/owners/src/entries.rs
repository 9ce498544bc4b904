//! The owners of conntrack entries.

use crate::checksum::OwnerChecksum;
use crate::socket_index::SocketIndex;
use record::rows::{Conntrack, Nat};
use record::{Accounting, Annotate, Each, Key, Lookup, Next, Owner, RowBytes, RowCache};
use std::hash::RandomState;

/// The note for backends that are elsewhere when only one namespace is read.
const AWAY: &str = "some entries are between other hosts or network namespaces and have no owner here: --all-netns \
                    shows processes of backends and clients in the other namespaces of this host";

/// The note for an address that several namespaces have.
const SHARED: &str = "several network namespaces have the address of a backend: it is unknown which one answers, and \
                      no owner is shown";

/// The owners of entries.
pub struct EntryOwners<'o, P> {
    /// The sockets at the ends of the entries.
    sockets: &'o SocketIndex,
    /// Socket inode → owners.
    owners: &'o dyn Lookup,
    /// The secret of the checksums that show whether owners are unchanged since the previous round.
    secret: &'o RandomState,
    /// The source ports of both directions of an undecoded row.
    own_ports: P,
    is_away: bool,
    is_shared: bool,
}

impl<'o, P> EntryOwners<'o, P> {
    /// Adds the owners of `sockets`; `owners` finds them by a socket's inode. `secret` is the same in all rounds;
    /// `own_ports` gives the source ports of both directions of an undecoded row.
    pub fn new(
        sockets: &'o SocketIndex,
        owners: &'o dyn Lookup,
        secret: &'o RandomState,
        own_ports: P,
    ) -> EntryOwners<'o, P> {
        EntryOwners { sockets, owners, secret, own_ports, is_away: false, is_shared: false }
    }

    fn owners_of(&self, inode: u32) -> &'o [Owner] {
        self.owners.owners(Key::Id(inode.into()))
    }
}

impl<P: Fn(&RowBytes<'_>) -> Option<[u16; 2]> + Copy> Annotate<Nat> for EntryOwners<'_, P> {
    fn row(&mut self, row: &Conntrack<'_>, each: &mut Each<'_, Nat>) -> Next {
        match self.sockets.inode(row, 0).map(|inode| self.owners_of(inode)) {
            Some(owners) if !owners.is_empty() => each(&Conntrack { owners, ..*row }),
            Some(_) => each(row),
            None => {
                self.is_away = self.is_away || self.sockets.is_away(row);
                self.is_shared = self.is_shared || self.sockets.is_shared(row);
                each(row)
            }
        }
    }

    fn close(&mut self, stats: &mut Accounting) {
        if std::mem::take(&mut self.is_away) {
            stats.add_reason(0, AWAY);
        }
        if std::mem::take(&mut self.is_shared) {
            stats.add_reason(0, SHARED);
        }
    }

    fn cache<'c>(&self, cache: &'c dyn RowCache) -> Option<Box<dyn RowCache + 'c>>
    where
        Self: 'c,
    {
        let sums = self.sockets.sums(|inode| self.owners_of(inode), self.secret);
        Some(Box::new(OwnerChecksum { cache, sums, own_ports: self.own_ports }))
    }
}
