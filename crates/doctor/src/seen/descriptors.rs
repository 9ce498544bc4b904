//! File descriptors of processes.

/// The number of open file descriptors of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptors {
    /// The process, whose own files these are: `nginx (812)`.
    pub process: String,
    /// Its process ID.
    pub pid: u32,
    /// Open descriptors.
    pub used: u64,
    /// Limit of open descriptors.
    pub limit: u64,
    /// The limit up to which the process may raise it.
    pub hard_limit: u64,
}
