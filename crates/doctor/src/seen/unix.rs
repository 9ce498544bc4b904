//! Unix sockets with a queue.

use super::ends::Holder;

/// Most sockets with a queue that are recorded per network namespace.
///
/// Bound: unix sockets with a queue that `doctor` remembers for a namespace. Beyond: further ones are not checked,
/// counted (exit code 3). By: anyone who may make sockets there.
pub const UNIX_MAX: usize = 4096;

/// The content of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixKind {
    /// Connections for accept().
    Listener,
    /// Datagrams.
    Datagrams,
    /// Data of accepted connections that have one path.
    Streams,
}

/// A unix socket whose queue is not empty at both readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixQueue {
    /// Its path, or `@name` in the abstract namespace; empty without a name.
    pub name: String,
    /// Its owner.
    pub owner: Holder,
    /// The content of the queue.
    pub kind: UnixKind,
    /// At both readings: connections that wait for accept(), bytes of the first datagram, or connections with as many
    /// unread bytes at both.
    pub queue: (u32, u32),
    /// The most connections that may wait for accept().
    pub limit: Option<u32>,
    /// True if a connection still has its place in the queue, so that none was accepted.
    pub is_same_first: bool,
    /// Processes that waited during the whole window to send a datagram.
    pub senders: Vec<Holder>,
    /// True if a process that waits to send has sent something within the window, so that datagrams are read.
    pub is_read: bool,
    /// Bytes of memory that unread datagrams of senders use at both readings.
    pub memory: (u64, u64),
}
