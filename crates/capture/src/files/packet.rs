//! A packet of a file.

use super::options::{FileOptions, Order};
use record::FarTime;
use record::rows::{PktType, UnusualTime};

/// A packet of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePacket<'f> {
    /// Its stamp, in ns since 1970; see `unusual_time`.
    pub time_ns: u64,
    /// Set if `time_ns` is only the nearest to its time, or if it has no time.
    pub unusual_time: Option<UnusualTime>,
    /// The same time stamp as in the file, in units of the interface; in ns for pcap.
    pub stamp: u64,
    /// Index of its interface in [`crate::PacketFile::ifaces`].
    pub iface: u32,
    /// That interface's name; empty if the file does not contain it.
    pub iface_name: &'f [u8],
    /// That interface's number in the whole file, starting at 1.
    pub number: u32,
    /// `LINKTYPE_…`
    pub link_type: u32,
    /// Original length of the packet in bytes, according to the file.
    pub len: u32,
    /// Its captured bytes.
    pub bytes: &'f [u8],
    /// Direction and packet type, if the file has them.
    pub packet_type: Option<PktType>,
    /// All options, including the direction.
    pub options: FileOptions<'f>,
}

impl FilePacket<'_> {
    /// The packet's time, in ns since 1970; `None` if the file does not contain it.
    pub fn time(&self) -> Option<i128> {
        match self.unusual_time {
            None => Some(self.time_ns.into()),
            Some(odd) => odd.to_far_time().map(FarTime::nanoseconds),
        }
    }
}

/// A packet that is complete in the input and has not been taken from it yet.
pub(super) struct FoundPacket {
    /// The packet without its bytes and options.
    pub(super) packet: FilePacket<'static>,
    /// Size of the record in bytes.
    pub(super) record: usize,
    /// Offset of the packet's bytes in the record.
    pub(super) at: usize,
    pub(super) bytes: usize,
    /// Offset of the options in the record; they end `behind` bytes before its end.
    pub(super) options_at: usize,
    pub(super) behind: usize,
    pub(super) read: Order,
}
