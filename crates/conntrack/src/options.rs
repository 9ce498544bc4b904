//! Options of a reading: backend, namespace and table.
use crate::choose::Via;
use crate::table::CtTable;

/// Options of a [`crate::ConntrackSource`].
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The backend; with `None` the source chooses.
    pub via: Option<Via>,
    /// Inode of the network namespace. Every row carries it, and stream names of a recording contain it.
    pub netns_id: u64,
    /// Entries or expectations.
    pub table: CtTable,
}

impl Options {
    /// Options that read the table of entries through any backend.
    pub fn new(netns_id: u64) -> Options {
        Options { via: None, netns_id, table: CtTable::Conntrack }
    }
}
