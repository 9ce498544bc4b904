//! All records of a file, one after the other, for callers that copy files or count their contents.

use super::blocks;
use super::interface::FileIface;
use super::options::{FileOptions, Order};
use super::packet::{FilePacket, FoundPacket};

/// One record of a file. A pcap file has one interface without a name, then packets.
#[derive(Debug)]
pub enum FileRecord<'f> {
    /// A section starts: its interfaces are numbered separately.
    Section(FileOptions<'f>),
    /// The description of an interface of the section.
    Iface {
        /// Its index in [`crate::PacketFile::ifaces`].
        number: u32,
        /// The interface.
        iface: &'f FileIface,
        /// All options of the description, including the ones in `iface`.
        options: FileOptions<'f>,
    },
    /// A packet.
    Packet(FilePacket<'f>),
    /// Counters of an interface.
    Statistics(FileStatistics<'f>),
    /// Names, secrets, and custom blocks.
    Other(OtherBlock<'f>),
}

/// A record that is complete in the input and has not been taken from it yet.
pub(super) enum FoundRecord {
    Packet(FoundPacket),
    /// A block other than a packet.
    Block {
        kind: u32,
        length: usize,
    },
}

/// Counters of an interface since its capture started; `None` if the file does not contain the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IfaceCounts {
    /// Packets that the interface received (`isb_ifrecv`).
    pub received: Option<u64>,
    /// Packets that the interface dropped (`isb_ifdrop`).
    pub dropped_by_iface: Option<u64>,
    /// Packets that passed the filter (`isb_filteraccept`).
    pub accepted: Option<u64>,
    /// Packets that the system dropped because the ring was full (`isb_osdrop`).
    pub dropped_by_system: Option<u64>,
    /// Packets delivered to the capturing program (`isb_usrdeliv`).
    pub delivered: Option<u64>,
}

impl IfaceCounts {
    /// Adds the counters of another capture.
    pub fn add(&mut self, other: &IfaceCounts) {
        let sum = |mine: &mut Option<u64>, other: Option<u64>| {
            *mine = match (*mine, other) {
                (Some(mine), Some(other)) => Some(mine.saturating_add(other)),
                (mine, other) => mine.or(other),
            }
        };
        sum(&mut self.received, other.received);
        sum(&mut self.dropped_by_iface, other.dropped_by_iface);
        sum(&mut self.accepted, other.accepted);
        sum(&mut self.dropped_by_system, other.dropped_by_system);
        sum(&mut self.delivered, other.delivered);
    }
}

/// An interface statistics block.
#[derive(Clone, Copy, Debug)]
pub struct FileStatistics<'f> {
    /// Index of the interface in [`crate::PacketFile::ifaces`].
    pub iface: u32,
    /// Time of the counters, in units of the interface.
    pub stamp: u64,
    /// The counters.
    pub counts: IfaceCounts,
    /// All options, including the counters.
    pub options: FileOptions<'f>,
}

impl<'f> FileStatistics<'f> {
    /// Decodes the body of a block; `None` if it is incomplete.
    pub(super) fn of_block(body: &'f [u8], read: Order) -> Option<FileStatistics<'f>> {
        let stamp = u64::from(read.u32(body, 4)?) << 32 | u64::from(read.u32(body, 8)?);
        let options = FileOptions::new(body.get(12..)?, read);
        let mut counts = IfaceCounts::default();
        for (code, value) in options.each() {
            let count = match code {
                4 => &mut counts.received,
                5 => &mut counts.dropped_by_iface,
                6 => &mut counts.accepted,
                7 => &mut counts.dropped_by_system,
                8 => &mut counts.delivered,
                _ => continue,
            };
            *count = read.u64(value, 0);
        }
        Some(FileStatistics { iface: read.u32(body, 0)?, stamp, counts, options })
    }
}

/// A block of any other type.
#[derive(Clone, Copy, Debug)]
pub struct OtherBlock<'f> {
    /// Its type.
    pub kind: u32,
    body: &'f [u8],
    read: Order,
}

impl<'f> OtherBlock<'f> {
    pub(super) fn new(kind: u32, body: &'f [u8], read: Order) -> OtherBlock<'f> {
        OtherBlock { kind, body, read }
    }

    /// Appends the content of the block with numbers in little-endian order. Returns false, and appends nothing, for a
    /// block that must not be copied, and for a block of the other byte order with an unknown layout.
    pub fn put_little_endian(&self, out: &mut Vec<u8>) -> bool {
        if self.kind == blocks::CUSTOM_NOT_COPIED {
            return false;
        }
        if !self.read.is_big_endian() {
            out.extend_from_slice(self.body);
            return true;
        }
        let begin = out.len();
        let put = match self.kind {
            blocks::NAMES => self.put_names(out),
            blocks::SECRETS => self.put_secrets(out),
            blocks::CUSTOM => self.put_custom(out),
            _ => None,
        };
        if put.is_none() {
            out.truncate(begin);
        }
        put.is_some()
    }

    /// A private enterprise number, then data in that enterprise's format.
    fn put_custom(&self, out: &mut Vec<u8>) -> Option<()> {
        self.put_numbers(0..1, out)?;
        out.extend_from_slice(self.body.get(4..)?);
        Some(())
    }

    /// Copies 32-bit numbers, by index.
    fn put_numbers(&self, places: std::ops::Range<usize>, out: &mut Vec<u8>) -> Option<()> {
        for place in places {
            out.extend_from_slice(&self.read.u32(self.body, place * 4)?.to_le_bytes());
        }
        Some(())
    }

    /// Copies records of type and length up to one of type 0, then options.
    fn put_names(&self, out: &mut Vec<u8>) -> Option<()> {
        let mut at = 0;
        loop {
            let (kind, length) = (self.read.u16(self.body, at)?, self.read.u16(self.body, at + 2)?);
            out.extend_from_slice(&kind.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
            let end = at + 4 + usize::from(length).next_multiple_of(4);
            out.extend_from_slice(self.body.get(at + 4..end)?);
            at = end;
            if kind == 0 {
                break;
            }
        }
        self.put_options(at, out)
    }

    /// Copies type and length of the secrets, the secrets themselves, then options.
    fn put_secrets(&self, out: &mut Vec<u8>) -> Option<()> {
        self.put_numbers(0..2, out)?;
        let end = 8 + usize::try_from(self.read.u32(self.body, 4)?).ok()?.checked_next_multiple_of(4)?;
        out.extend_from_slice(self.body.get(8..end)?);
        self.put_options(end, out)
    }

    fn put_options(&self, at: usize, out: &mut Vec<u8>) -> Option<()> {
        let options = FileOptions::new(self.body.get(at..)?, self.read);
        if !options.is_empty() {
            options.put_little_endian(self.kind, out);
            out.extend_from_slice(&[0; 4]);
        }
        Some(())
    }
}
