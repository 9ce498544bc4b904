//! Who owns what a row is about: the one join of owners to sockets, entries of connection tracking, and events.
//!
//! Sources hand out rows and know no owners. [`OwnerResolver`] finds the owners of a socket by its inode, and those of
//! an entry by the sockets at its ends ([`SocketIndex`]). [`OwnedEntries`] and [`OwnedEvents`] put them into rows.
//! Pure: the owners are a [`record::Lookup`], sockets and addresses are added by the caller; this crate knows no kernel
//! interface and no output. Start reading at [`OwnerResolver`].
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
mod waiting;

pub use drops::OwnedDrops;
pub use entries::OwnedEntries;
pub use events::OwnedEvents;
pub use ownerless::OwnerlessCounted;
pub use packet_sockets::PacketSockets;
pub use packets::{Complete, OwnedPackets, SocketNews};
pub use readings::{ReadOwners, Reading};
pub use records::OwnedRecords;
pub use resolver::OwnerResolver;
pub use rounds::RoundOwners;
pub use socket_index::SocketIndex;
pub use waiting::{WaitingPacket, WaitingPackets};
