//! Connections that ended with a reset within the window.

use record::Addr;
use std::collections::BTreeMap;

use super::ends::Holder;

/// Most groups of resets that are recorded for a namespace.
///
/// Bound: groups of resets (kind, program, service, peer) that `doctor` remembers for a namespace. Beyond: further
/// groups are not checked, counted (exit code 3). By: peers with as many addresses.
pub const RESETS_MAX: usize = 4096;

/// Why a connection was reset, as far as this host can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResetKind {
    /// A program of this host closed it with data that it had not read.
    Unread,
    /// A program of this host closed it with SO_LINGER 0, or closed a listener with waiting connections.
    Aborted,
    /// The peer sent data after a program of this host had closed it.
    AfterClose,
    /// The kernel of this host gave it up: the peer did not answer keepalives, or memory ran out.
    OfKernel,
    /// The peer.
    ByPeer,
    /// The peer, at the first data after a silence.
    ByPeerAfterIdle,
    /// A segment that belongs to no connection reached a listener, which answered with a reset.
    Unknown,
}

/// The connections that a group of resets is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResetGroup {
    /// Why they were reset.
    pub kind: ResetKind,
    /// True if this host serves the port; false if the peer does.
    pub is_service: bool,
    /// The port of the service.
    pub port: u16,
    /// The peer.
    pub peer: Addr,
    /// The program of this host; by default unknown.
    pub owner: Holder,
}

/// Resets of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResetCount {
    /// Number of connections.
    pub count: u64,
    /// Those on which neither end had sent data.
    pub empty: u64,
    /// Those with sent data that the peer had not acknowledged.
    pub unacked: u64,
    /// Those on which nothing was received.
    pub unanswered: u64,
    /// Those that the peer had closed before.
    pub closed: u64,
    /// Bytes that were received and not read, of all connections.
    pub unread_bytes: u64,
    /// Longest time since the last segment from the peer, in milliseconds.
    pub silent_ms: u64,
}

/// Resets within the window, by group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResetCensus {
    /// The groups.
    pub groups: BTreeMap<ResetGroup, ResetCount>,
    /// Resets of groups beyond [`RESETS_MAX`], which are not recorded.
    pub over: u64,
}

impl ResetCount {
    /// True if the peer had closed most of the connections before it reset them.
    pub(crate) fn is_after_close(&self) -> bool {
        self.closed.saturating_mul(2) > self.count
    }

    /// Adds the numbers of `other`.
    pub fn add(&mut self, other: &ResetCount) {
        self.count += other.count;
        self.empty += other.empty;
        self.unacked += other.unacked;
        self.unanswered += other.unanswered;
        self.closed += other.closed;
        self.unread_bytes += other.unread_bytes;
        self.silent_ms = self.silent_ms.max(other.silent_ms);
    }
}

impl ResetCensus {
    /// Adds one reset: `one` has the count 1.
    pub fn add(&mut self, group: ResetGroup, one: &ResetCount) {
        if self.groups.len() >= RESETS_MAX && !self.groups.contains_key(&group) {
            self.over += one.count;
            return;
        }
        self.groups.entry(group).or_default().add(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_resets_are_bounded() {
        let mut census = ResetCensus::default();
        for n in 0..RESETS_MAX as u32 + 2 {
            let peer = Addr::V4(n.to_be_bytes());
            let owner = Holder::default();
            let group = ResetGroup { kind: ResetKind::ByPeer, is_service: true, port: 80, peer, owner };
            census.add(group, &ResetCount { count: 1, ..ResetCount::default() });
        }
        assert_eq!((census.groups.len(), census.over), (RESETS_MAX, 2));
    }
}
