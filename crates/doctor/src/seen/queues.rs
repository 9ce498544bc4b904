//! Queues of packets for programs.

use super::moved::Moved;

/// A queue of packets that rules pass to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfQueue {
    /// Its number.
    pub number: u16,
    /// Packets that wait for a verdict.
    pub waiting: u32,
    /// Packets dropped because the queue was full.
    pub dropped: Moved,
    /// Packets dropped because the program's socket was full.
    pub user_dropped: Moved,
}
