//! Options of the stream of events.
use crate::events::netlink::nsid::{FindNamespaces, OtherNetnsOptions};

/// The interface through which events are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsVia {
    /// Multicast messages of ctnetlink.
    Netlink,
    /// A BPF program that sees packets: new entries only.
    Bpf,
}

/// Options of a `NatEventStream`.
pub struct FollowNat<'h> {
    /// The backend; with `None` the stream chooses.
    pub via: Option<EventsVia>,
    /// Size of the buffer for unread events, in bytes.
    pub buffer_bytes: u32,
    /// Inode of the calling thread's namespace.
    pub netns_id: u64,
    /// Finds the other namespaces, if all are followed.
    pub find: Option<OtherNetnsOptions>,
    /// Finds the namespaces to dump after events were lost; the calling thread's namespace needs no handle.
    pub resync: Option<FindNamespaces>,
    /// Also hands out the new events of entries whose end is shown, for a caller that needs both. New events that the
    /// filter excludes (`NatEventStream::shows_kind`) count as not received, and the caller must leave them out.
    pub always_new: bool,
    /// Returns true to end the run. Called some twenty times per second.
    pub stop: &'h dyn Fn() -> bool,
}
