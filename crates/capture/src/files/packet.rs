//! A packet as a file has it.

use super::options::{FileOptions, Order};
use record::rows::PacketAim;

/// A packet of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePacket<'f> {
    /// Its stamp, in ns since 1970; 0 where it has none.
    pub time_ns: u64,
    /// The same in units of its interface, as the file has it; in ns in pcap.
    pub stamp: u64,
    /// Its interface, by the place in [`crate::PacketFile::ifaces`].
    pub iface: u32,
    /// That interface's name; empty where the file has none.
    pub iface_name: &'f [u8],
    /// That interface's number in the whole file, from 1.
    pub number: u32,
    /// `LINKTYPE_…`
    pub link_type: u32,
    /// Bytes that the packet had, as the file says.
    pub len: u32,
    /// Its captured bytes.
    pub bytes: &'f [u8],
    /// Direction, and whom it was for, where the file says so.
    pub aim: Option<PacketAim>,
    /// All options, the direction included.
    pub options: FileOptions<'f>,
}

/// A packet that is whole in the input, which has not taken it yet.
pub(super) struct FoundPacket {
    /// All but its bytes and options.
    pub(super) packet: FilePacket<'static>,
    /// Bytes of the record.
    pub(super) record: usize,
    /// Where in it the packet is.
    pub(super) at: usize,
    pub(super) bytes: usize,
    /// Where in it the options are, up to the last `behind` bytes.
    pub(super) options_at: usize,
    pub(super) behind: usize,
    pub(super) read: Order,
}
