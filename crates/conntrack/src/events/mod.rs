//! Entries as they come, change and go.
//!
//! By netlink: the kernel's multicast groups, heard by a thread that only listens ([`CtEvents`] hands out messages). By
//! BPF, new entries only: a program sees the packet that makes the entry. [`NatEventStream`] makes rows of either. Start
//! reading there, or at [`CtEvents::next`].
mod births;
mod block;
#[cfg(feature = "bpf")]
mod by_bpf;
mod by_packet;
mod everywhere;
mod fuzz;
mod heard;
mod homes;
mod new_entry;
mod reader;
mod stream;
#[cfg(test)]
mod tests;
mod wanted;
mod whose;

pub(crate) use fuzz::fuzz;
pub use heard::{CtEvents, Listen, ROOM, Told, groups};
pub use homes::{FindNamespaces, Found};
pub use stream::{EventsVia, FollowNat, NatEventStream, probe_events};
pub use whose::{FindHolders, Holders};
