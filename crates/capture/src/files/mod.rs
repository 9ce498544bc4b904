//! Files of packets: pcap and pcapng of any byte order and resolution, packed or not.
//!
//! [`PacketFile`] hands out one packet after the other, in constant memory; [`FilePackets`] makes rows of them. Knows
//! no interface of this host, no filter text, no output. Every byte is hostile: lengths are compared with what is
//! there and with [`RECORD_MAX`] before anything is read; what breaks is an error with its place.

pub mod blocks;
mod error;
mod fuzz;
mod input;
mod interface;
mod options;
mod packed;
mod packet;
mod pcap;
mod pcapng;
mod pipe;
mod reader;
mod records;
mod resolution;
mod stream;
mod summary;
#[cfg(test)]
mod tests;

pub use error::{FileError, FileFault};
pub use fuzz::fuzz_packet_file;
pub use interface::FileIface;
pub use options::FileOptions;
pub use packed::{put_gzip, unpacked};
pub use packet::FilePacket;
pub use reader::{FileFormat, PacketFile, UnreadFile};
pub use records::{FileRecord, FileStatistics, IfaceCounts, OtherBlock};
pub use stream::{FilePackets, PassesInFile, ReadPackets};
pub use summary::{FileSummary, IFACES_MAX, IfaceSummary, LENGTH_CLASSES};

/// Most bytes of a packet or block. libpcap takes packets of 256 KiB, and blocks of 16 MiB.
pub(crate) const RECORD_MAX: usize = 16 << 20;
