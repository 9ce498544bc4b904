//! Neighbours that do not answer.

use record::Addr;

/// A neighbour that did not answer requests for its hardware address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighbourSeen {
    /// Its address.
    pub addr: Addr,
    /// Index of the interface that it should be on.
    pub ifindex: u32,
}
