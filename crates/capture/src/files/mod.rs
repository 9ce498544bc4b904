//! Packet files: pcap and pcapng of any byte order and resolution, compressed or not.
//!
//! [`PacketFile`] hands out one packet after the other, in constant memory; [`FilePackets`] turns them into rows. This
//! module knows nothing of the host's interfaces, filter text or output. Every byte is treated as hostile: lengths are
//! compared with the available data and with [`RECORD_MAX`] before anything is read, and every error contains its
//! offset.

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
pub use reader::{FileFormat, PacketFile, SkippedRecords, UnreadFile};
pub use records::{FileRecord, FileStatistics, IfaceCounts, OtherBlock};
pub use stream::{FilePackets, NextFile, PassesInFile, ReadPackets, UnreadFiles};
pub use summary::{FileSummary, IFACES_MAX, IfaceSummary, LENGTH_CLASSES};

/// Maximum size of a packet or block. libpcap accepts packets of 256 KiB, and blocks of 16 MiB.
///
/// Bound: bytes of a packet or block in a file of packets. Beyond: the file counts as broken there: earlier packets are
/// shown, the position is reported (exit code 3). By: the author of the file.
pub(crate) const RECORD_MAX: usize = 16 << 20;
