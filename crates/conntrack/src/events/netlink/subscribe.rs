//! What is subscribed to, and one subscribed socket.
use sys::{NetlinkSocket, SysError};

use crate::backends::netlink::uapi::NETLINK_NETFILTER;
use crate::events::netlink::nsid::FindNamespaces;

/// Multicast groups of ctnetlink as bits: events of entries and of expectations
/// (`enum nfnetlink_groups`, include/uapi/linux/netfilter/nfnetlink_compat.h).
pub mod groups {
    /// New entries.
    pub const NEW: u32 = 1 << 0;
    /// Changes of entries.
    pub const UPDATE: u32 = 1 << 1;
    /// Entries that end.
    pub const DESTROY: u32 = 1 << 2;
    /// All of these.
    pub const ALL: u32 = NEW | UPDATE | DESTROY;
    /// New expectations.
    pub const EXPECT_NEW: u32 = 1 << 3;
    /// Changes of expectations.
    pub const EXPECT_UPDATE: u32 = 1 << 4;
    /// Expectations that end.
    pub const EXPECT_DESTROY: u32 = 1 << 5;
}

/// Default of [`SubscribeOptions::buffer_bytes`]: 8 MiB hold some 20,000 events.
pub const BUFFER_BYTES: u32 = 8 << 20;

/// What is subscribed to, and how.
pub struct SubscribeOptions<'h> {
    /// Bits of [`groups`].
    pub groups: u32,
    /// Receive buffer in bytes; CAP_NET_ADMIN allows more than the system's limit. The kernel reserves twice as much and
    /// counts some 800 bytes for each event.
    pub buffer_bytes: u32,
    /// Inode of the calling thread's namespace.
    pub netns_id: u64,
    /// How the other namespaces are found, if all of them are subscribed to.
    pub find: Option<FindNamespaces>,
    /// Returns true once the run shall end. Called some twenty times a second.
    pub stop: &'h dyn Fn() -> bool,
}

/// The namespaces whose events a socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Only the namespace with this inode.
    Netns(u64),
    /// The socket's own namespace (with this inode) and every one that has an nsid there.
    AllWithNsid(u64),
}

/// One subscribed socket.
pub(crate) struct EventSocket {
    pub(crate) socket: NetlinkSocket,
    pub(crate) scope: Scope,
    /// The kernel's drop counter when it was last read.
    pub(crate) drops: u32,
    /// ENOBUFS errors in a row without a change of the drop counter.
    pub(crate) enobufs_without_drops: u32,
}

impl EventSocket {
    /// Opens a socket in the calling thread's namespace and joins `groups`. Needs CAP_NET_ADMIN.
    pub(crate) fn open(groups: u32, buffer_bytes: u32, scope: Scope) -> Result<EventSocket, SysError> {
        let socket = NetlinkSocket::open(NETLINK_NETFILTER)?;
        socket.make_room(i32::try_from(buffer_bytes).unwrap_or(i32::MAX));
        socket.join(groups)?;
        let drops = socket.drops()?;
        Ok(EventSocket { socket, scope, drops, enobufs_without_drops: 0 })
    }
}
