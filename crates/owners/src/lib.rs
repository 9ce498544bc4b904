//! The join of owners to sockets, conntrack entries and events.
//!
//! Sources deliver rows without owners. [`OwnerResolver`] finds the owners of a socket by its inode, and the owners of
//! an entry by the sockets at its ends ([`SocketIndex`]). Annotators such as
//! [`EntryOwners`] and [`EventOwners`] add them to rows. Pure: the owners are a [`record::Lookup`], the caller adds
//! sockets and addresses; this crate knows no kernel interface and no output. Start reading at [`OwnerResolver`].
#![forbid(unsafe_code)]

mod checksum;
mod drops;
mod entries;
mod events;
#[cfg(test)]
mod fake_readings;
mod ownerless;
mod packet_sockets;
mod packets;
mod readings;
mod recent_connections;
mod records;
mod resolver;
mod rounds;
mod secret_hash;
mod socket_index;
mod socket_owners;
mod waiting;

pub use entries::EntryOwners;
pub use events::EventOwners;
pub use ownerless::{OwnerlessCount, OwnerlessSockets};
pub use packet_sockets::PacketSockets;
pub use packets::{Complete, PacketOwners, SocketNews};
pub use readings::{ReadOwners, Reading};
pub use resolver::OwnerResolver;
pub use rounds::RoundOwners;
pub use socket_index::SocketIndex;
pub use socket_owners::SocketOwners;
pub use waiting::{WaitingPacket, WaitingPackets};
