//! Options of a subscription, and a subscribed socket.
use sys::{Errno, NetlinkSocket, ReceivedMessage, SysError};

use crate::events::netlink::nsid::OtherNetnsOptions;
use crate::uapi::NETLINK_NETFILTER;

/// Multicast groups of ctnetlink as bits: events of entries and of expectations
/// (`enum nfnetlink_groups`, include/uapi/linux/netfilter/nfnetlink_compat.h).
pub mod groups {
    /// New entries.
    pub const NEW: u32 = 1 << 0;
    /// Changes of entries.
    pub const UPDATE: u32 = 1 << 1;
    /// Entries that end.
    pub const DESTROY: u32 = 1 << 2;
    /// The three event types of entries.
    pub const ALL: u32 = NEW | UPDATE | DESTROY;
    /// New expectations.
    pub const EXPECT_NEW: u32 = 1 << 3;
    /// Changes of expectations.
    pub const EXPECT_UPDATE: u32 = 1 << 4;
    /// Expectations that end.
    pub const EXPECT_DESTROY: u32 = 1 << 5;
}

/// Default of [`SubscribeOptions::buffer_bytes`]: 8 MiB hold some 20,000 events.
///
/// Bound: bytes of receive buffer for events (`--buffer`). Beyond: events are lost and counted (exit code 3). This also
/// affects other users. By: clients who make connections faster than events are read.
pub const BUFFER_BYTES: u32 = 8 << 20;

/// Options of a subscription.
pub struct SubscribeOptions<'h> {
    /// Bits of [`groups`].
    pub groups: u32,
    /// Receive buffer in bytes; CAP_NET_ADMIN allows more than the system's limit. The kernel reserves twice as much
    /// and counts some 800 bytes for each event.
    pub buffer_bytes: u32,
    /// Inode of the calling thread's namespace.
    pub netns_id: u64,
    /// Finds the other namespaces, if all are subscribed to.
    pub find: Option<OtherNetnsOptions>,
    /// Returns true to end the run. Called some twenty times per second.
    pub stop: &'h dyn Fn() -> bool,
}

/// The namespaces whose events a socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Only the namespace with this inode.
    Netns(u64),
    /// The socket's own namespace (with this inode) and every namespace that has an nsid there.
    AllWithNsid(u64),
}

/// One subscribed socket.
pub(crate) struct EventSocket {
    pub(crate) netlink: NetlinkSocket,
    pub(crate) scope: Scope,
    /// The kernel's drop counter when it was last read.
    drops: u32,
    enobufs: Enobufs,
}

/// Whether an ENOBUFS error was seen whose drops are not in the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Enobufs {
    None,
    /// An error was seen; the counter has not been read since.
    Seen,
    /// An error was seen and the counter did not change. It may still change, because the kernel reports the error a
    /// moment before it counts.
    Unexplained,
}

/// Messages that a socket missed since the last check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MissedMessages {
    /// Messages that the kernel dropped because the receive buffer was full.
    pub(crate) dropped: u32,
    /// True if the kernel had no memory to build a message; its drop counter does not include that message.
    pub(crate) alloc_failed: bool,
}

impl EventSocket {
    /// Opens a socket in the calling thread's namespace and joins `groups`. Needs CAP_NET_ADMIN.
    pub(crate) fn open(groups: u32, buffer_bytes: u32, scope: Scope) -> Result<EventSocket, SysError> {
        let netlink = NetlinkSocket::open(NETLINK_NETFILTER)?;
        netlink.make_room(i32::try_from(buffer_bytes).unwrap_or(i32::MAX));
        netlink.join(groups)?;
        let drops = netlink.drops()?;
        Ok(EventSocket { netlink, scope, drops, enobufs: Enobufs::None })
    }

    /// Receives the next waiting datagram into `place`; `None` if none waits. One system call, plus one for each
    /// ENOBUFS error, which reports that messages were lost but not which.
    pub(crate) fn receive(&mut self, place: &mut [u8]) -> Result<Option<ReceivedMessage>, SysError> {
        loop {
            match self.netlink.try_recv(place) {
                Err(error) if error.errno == Errno::NOBUFS => {
                    if self.enobufs == Enobufs::None {
                        self.enobufs = Enobufs::Seen;
                    }
                }
                received => return received,
            }
        }
    }

    /// Reads the kernel's drop counter. One system call.
    pub(crate) fn update_drop_count(&mut self) -> Result<MissedMessages, SysError> {
        let drops = self.netlink.drops()?;
        let dropped = drops.wrapping_sub(self.drops);
        self.drops = drops;
        let before = self.enobufs;
        self.enobufs = match (dropped, before) {
            (0, Enobufs::Seen) => Enobufs::Unexplained,
            _ => Enobufs::None,
        };
        Ok(MissedMessages { dropped, alloc_failed: dropped == 0 && before == Enobufs::Unexplained })
    }
}
