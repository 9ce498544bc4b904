//! What is read.
use crate::backends::netlink::dump::CtTable;
use crate::choose::Via;

/// What a [`crate::ConntrackSource`] reads.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The backend; `None` lets the source choose.
    pub via: Option<Via>,
    /// Inode of the network namespace: a member of every row, and part of the names of streams in a recording.
    pub netns_id: u64,
    /// The table.
    pub table: CtTable,
}

impl Options {
    /// The table of entries, by any backend.
    pub fn new(netns_id: u64) -> Options {
        Options { via: None, netns_id, table: CtTable::Conntrack }
    }
}
