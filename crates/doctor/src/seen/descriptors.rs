//! File descriptors of processes.

use super::sockets::Holder;

/// The number of open file descriptors of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptors {
    /// The process.
    pub owner: Holder,
    /// Its process ID.
    pub pid: u32,
    /// Open descriptors.
    pub used: u64,
    /// Limit of open descriptors.
    pub limit: u64,
}
