//! Reports entries of connection tracking as they appear, change and end.
//!
//! There are two backends: the kernel's multicast groups, received on a dedicated thread ([`NetlinkEvents`] hands out
//! the messages), and a BPF program that sees the packet which creates an entry (new entries only). [`NatEventStream`]
//! turns both into rows. Start reading there, or at [`NetlinkEvents::next`].
mod backend;
mod bpf;
mod fuzz;
mod netlink;
mod options;
mod pushdown;
mod start_times;
mod stream;
#[cfg(test)]
mod tests;

pub use backend::try_events;
pub(crate) use fuzz::fuzz;
pub use netlink::messages::{EventMessage, NetlinkEvents};
pub use netlink::nsid::{FindNamespaces, OtherNetnsOptions};
pub use netlink::subscribe::{BUFFER_BYTES, SubscribeOptions, groups};
pub use options::{EventsVia, FollowNat};
pub use stream::NatEventStream;
