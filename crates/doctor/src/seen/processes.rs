//! Processes for which something waits.

/// A process that owns a socket with a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSeen {
    /// Its process ID.
    pub pid: u32,
    /// The process: `nginx (812)`.
    pub name: String,
    /// The reason why it does not run; `None` if it runs, or sleeps as programs do.
    pub hold: Option<Hold>,
    /// The kernel function in which its first thread sleeps, from /proc/PID/wchan; empty if it is unknown.
    pub sleeps_in: String,
}

/// The reason why a process does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Stopped by a signal: state T.
    Stopped,
    /// Stopped by a debugger: state t.
    Traced,
    /// Its control group is frozen.
    Frozen,
    /// Its first thread is in uninterruptible sleep: state D.
    Uninterruptible,
}
