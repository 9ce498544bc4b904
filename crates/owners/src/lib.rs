//! The join of owners to sockets, conntrack entries and events.
//!
//! Sources deliver rows without owners. [`SocketIndex`] finds the socket at an end of a row, and a [`record::Lookup`]
//! the owners of a socket by its inode. Two types combine them over time, and answer that an end is not here, unknown,
//! found, or not known yet: `Readings` waits for a reading that is later than the row, and [`PacketSockets`] also has
//! connections from events, and lets packets wait. Annotators such as [`EntryOwners`], [`EventOwners`],
//! [`SocketOwners`] and [`PacketOwners`] add owners to rows. Pure: the caller reads sockets, addresses and owners; this
//! crate knows no kernel interface and no output. Start reading at [`SocketIndex`].
#![forbid(unsafe_code)]

mod attribution;
mod checksum;
mod drops;
mod entries;
mod events;
#[cfg(test)]
mod fake_readings;
mod ownerless;
mod packet_sockets;
mod packets;
mod port_set;
mod readings;
mod recent_connections;
mod records;
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
pub use rounds::RoundOwners;
pub use socket_index::SocketIndex;
pub use socket_owners::SocketOwners;
pub use waiting::{WaitingPacket, WaitingPackets};
