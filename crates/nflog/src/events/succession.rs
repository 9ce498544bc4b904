//! What one reader of a group leaves to the next: the bound socket, and the number that its next record will have.
//!
//! The kernel binds a group to a socket, not to a process: as long as somebody holds the socket open, records gather
//! in it. A successor that takes it over goes on where its predecessor stopped.
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A socket that an earlier process has bound to a group.
#[derive(Debug)]
pub struct InheritedGroup {
    /// The group.
    pub group: u16,
    /// The socket. It is looked at before it is used: whoever handed it over may be wrong.
    pub file: OwnedFd,
    /// The number of the first record that the earlier process has not received; `None` if it is not known: then what
    /// is missing before the first record that comes is not known, either.
    pub next: Option<u32>,
}

/// The number that the next record of a group will have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextNumber {
    /// Inode of the group's network namespace.
    pub netns_id: u64,
    /// The group.
    pub group: u16,
    /// Its next record's number.
    pub next: u32,
}

/// Keeps what a successor needs.
pub trait HandOver {
    /// Called for each batch, when the rows of the one before it are with their receivers: so far everything is done.
    fn note(&mut self, numbers: &[NextNumber]);

    /// Called once no more is read, with the bound sockets and the last numbers.
    fn end(&mut self, sockets: &[(u16, BorrowedFd<'_>)], numbers: &[NextNumber]);
}

/// What a stream takes over, and leaves.
#[derive(Default)]
pub struct Succession<'h> {
    /// Sockets of an earlier process.
    pub inherited: Vec<InheritedGroup>,
    /// True at the end: sockets stay bound, and what they hold is left to a successor.
    pub keep_bound: Arc<AtomicBool>,
    /// Counts the turns of the thread that receives, which then makes several in a second though nothing comes.
    pub turns: Option<Arc<AtomicU64>>,
    /// What a successor needs.
    pub hand_over: Option<Box<dyn HandOver + 'h>>,
}
