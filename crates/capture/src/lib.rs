//! Live packets of interfaces as rows, and packets of files.
//!
//! One AF_PACKET ring per interface, or one for all interfaces of a network namespace, read on the thread that makes
//! rows: the ring itself is the queue, and the kernel counts packets without room in it. [`PacketFile`] reads packet
//! files. This crate knows nothing of filter text, processes or output. Start reading at [`PacketStream`]; [`Pacing`]
//! decides how it waits (docs/adr/0023).
#![forbid(unsafe_code)]

mod files;
mod latency;
mod live;
mod pace;
mod report;
mod row;
mod trial;

pub use files::{
    FileError, FileFault, FileFormat, FileIface, FileOptions, FilePacket, FilePackets, FileRecord, FileStatistics,
    FileSummary, IFACES_MAX, IfaceCounts, IfaceSummary, LENGTH_CLASSES, NextFile, OtherBlock, PacketFile, PassesInFile,
    ReadPackets, SkippedRecords, UnreadFile, UnreadFiles, blocks, fuzz_packet_file, put_gzip, unpacked,
};
pub use latency::LatencyCounts;
pub use live::place::{CapturePlace, ReadLinks};
pub use live::stream::{CaptureControl, FollowPackets, PacketStream, SNAPLEN, SNAPLEN_MAX, WakeUp};
pub use pace::{Delivery, Pacing, Wait};
pub use report::{CaptureReport, IfaceDrops};
pub use row::{Passes, complete, is_of_interface};
pub use trial::try_capturing;
