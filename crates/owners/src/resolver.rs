//! Finds the owners of rows.

use crate::socket_index::SocketIndex;
use record::rows::{Conntrack, Socket};
use record::{Key, Lookup, LookupId, Lookups, Owner};

/// Finds the owners of rows. Cheap to copy: two pointers.
#[derive(Clone, Copy)]
pub struct OwnerResolver<'o> {
    /// Socket inode → owners.
    owners: &'o dyn Lookup,
}

impl<'o> OwnerResolver<'o> {
    /// A resolver for the owners among `lookups`; `None` if they were not read.
    pub fn new(lookups: &Lookups<'o>) -> Option<OwnerResolver<'o>> {
        Some(OwnerResolver::over(lookups.get(LookupId::Owners)?))
    }

    /// A resolver for `owners`: socket inode → owners.
    pub fn over(owners: &'o dyn Lookup) -> OwnerResolver<'o> {
        OwnerResolver { owners }
    }

    /// The owners of a socket; empty if it has none or if they are unknown.
    #[inline]
    pub fn of_socket(&self, socket: &Socket<'_>) -> &'o [Owner] {
        self.of_inode(socket.inode)
    }

    /// The owners of the socket at the local end of an entry, otherwise of its backend's. `None` if no socket was
    /// found.
    #[inline]
    pub fn of_entry(&self, sockets: &SocketIndex, entry: &Conntrack<'_>) -> Option<&'o [Owner]> {
        Some(self.of_inode(sockets.inode(entry, 0)?))
    }

    /// The owners of the socket with this inode.
    #[inline]
    pub(crate) fn of_inode(&self, inode: u32) -> &'o [Owner] {
        if inode == 0 { &[] } else { self.owners.owners(Key::Id(inode.into())) }
    }
}
