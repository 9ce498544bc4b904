//! Neighbours: those that do not answer, and those that the kernel never checks.

use record::Addr;

/// A neighbour that did not answer requests for its hardware address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighbourSeen {
    /// Its address.
    pub addr: Addr,
    /// Index of the interface that it should be on.
    pub ifindex: u32,
}

/// A neighbour whose hardware address was set by hand or by a program: the kernel sends frames to it without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermanentSeen {
    /// Its address.
    pub addr: Addr,
    /// Index of its interface.
    pub ifindex: u32,
    /// The hardware address that frames to it are sent to.
    pub hardware: [u8; 6],
}

/// A macvlan in another network namespace, on top of an interface of this one, that has the address of a neighbour that
/// does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnMacvlan {
    /// The address.
    pub addr: Addr,
    /// Index of the interface below it.
    pub ifindex: u32,
    /// Its name in its namespace.
    pub name: String,
    /// Name of its namespace, or a process in it, as text; empty if neither is known.
    pub netns: String,
}
