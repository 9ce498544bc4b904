//! State that one reader of a group leaves to the next: the bound socket, and the number of the next record.
//!
//! The kernel binds a group to a socket, not to a process: as long as any process holds the socket open, records
//! accumulate in it. A successor that takes it over continues where its predecessor stopped.
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A socket that an earlier process has bound to a group.
#[derive(Debug)]
pub struct InheritedGroup {
    /// The group.
    pub group: u16,
    /// The socket. It is checked before use, because the process that handed it over may be wrong.
    pub file: OwnedFd,
    /// The number of the first record that the earlier process has not received. If it is `None`, it is also unknown
    /// how many records are missing before the first one that arrives.
    pub next: Option<u32>,
}

/// The number of the next record of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextNumber {
    /// Inode of the group's network namespace.
    pub netns_id: u64,
    /// The group.
    pub group: u16,
    /// Number of its next record.
    pub next: u32,
}

/// Stores the state that a successor needs.
pub trait StoreNumbers {
    /// Called for each batch, when the consumer has the rows of the previous one: all records up to there are done.
    fn store_numbers(&mut self, numbers: &[NextNumber]);

    /// Called after the last read, with the bound sockets and the last numbers.
    fn end(&mut self, sockets: &[(u16, BorrowedFd<'_>)], numbers: &[NextNumber]);
}

/// State that a stream takes over, and leaves.
#[derive(Default)]
pub struct Succession<'h> {
    /// Sockets from an earlier process.
    pub inherited: Vec<InheritedGroup>,
    /// True to keep sockets bound at the end and to leave the records in them to a successor.
    pub keep_bound: Arc<AtomicBool>,
    /// Counts the turns of the receiving thread, which then makes several per second even without records.
    pub turns: Option<Arc<AtomicU64>>,
    /// Stores the state for a successor.
    pub hand_over: Option<Box<dyn StoreNumbers + 'h>>,
}
