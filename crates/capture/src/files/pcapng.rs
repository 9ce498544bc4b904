//! pcapng: blocks, in sections that may differ in byte order (draft-ietf-opsawg-pcapng).

use super::RECORD_MAX;
use super::blocks::{INTERFACE, OBSOLETE_PACKET, PACKET, SECTION, SIMPLE_PACKET};
use super::error::FileFault;
use super::input::Input;
use super::interface::FileIface;
use super::options::{BlockOptions, FileOptions, Order};
use super::packet::{FilePacket, FoundPacket};
use super::records::FoundRecord;
use record::rows::{PktType, UnusualTime};

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Sizes of the type and length before a block's body, and of the repeated length after it.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// `epb_flags`
const PACKET_FLAGS: u16 = 2;
/// Maximum number of interfaces in a section.
///
/// Bound: interfaces of a section of a pcapng file. Beyond: the file counts as broken there (exit code 3). By: the
/// author of the file.
const IFACES_MAX: usize = 1 << 16;
/// Bound: bytes that netwren searches for the first interface of a file. Beyond: the link type counts as Ethernet until
/// the first packet. By: the author of the file.
const AHEAD_MAX: usize = 1 << 20;

/// The current section, as far as it was read.
#[derive(Debug)]
pub(super) struct PcapngSection {
    pub(super) read: Order,
    pub(super) ifaces: Vec<FileIface>,
    /// Number of interfaces in earlier sections.
    before: u32,
    /// The first interface of the file, until its block is read.
    ahead: Vec<FileIface>,
}

impl PcapngSection {
    pub(super) fn new() -> PcapngSection {
        PcapngSection { read: Order::LITTLE, ifaces: Vec::new(), before: 0, ahead: Vec::new() }
    }

    /// Looks ahead for the first interface description; an error in front of it is reported with the first packet.
    pub(super) fn begin(&mut self, input: &mut Input) -> Result<(), FileFault> {
        // A complete section header is a valid file, an incomplete one is not.
        self.whole(input, 0)?;
        let mut at = 0;
        while at < AHEAD_MAX {
            let Ok(Some((kind, length))) = self.whole(input, at) else { break };
            let body = input.peek(at + length).get(at + HEAD..at + length - TAIL).unwrap_or_default();
            if [PACKET, SIMPLE_PACKET, OBSOLETE_PACKET].contains(&kind) {
                break;
            }
            at += length;
            if kind == INTERFACE {
                self.ahead.extend(FileIface::of_block(body, self.read));
                break;
            }
        }
        // The first block sets it again.
        self.read = Order::LITTLE;
        self.head(input, 0).map(|_| ())
    }

    /// The interfaces described so far; before the first record, the first interface if there is one.
    pub(super) fn described(&self) -> &[FileIface] {
        if self.ifaces.is_empty() && self.before == 0 { &self.ahead } else { &self.ifaces }
    }

    /// The next record; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&mut self, input: &mut Input) -> Result<Option<FoundRecord>, FileFault> {
        let Some((kind, length)) = self.whole(input, 0)? else { return Ok(None) };
        Ok(Some(match self.block(kind, length, input)? {
            Some(found) => FoundRecord::Packet(found),
            None => FoundRecord::Block { kind, length },
        }))
    }

    /// Type and length of the block `at` bytes ahead, once it is complete in the input.
    #[inline]
    fn whole(&mut self, input: &mut Input, at: usize) -> Result<Option<(u32, usize)>, FileFault> {
        let Some((kind, length)) = self.head(input, at)? else { return Ok(None) };
        if length > RECORD_MAX {
            return Err(FileFault::BlockLength(length as u32));
        }
        let got = input.fill(at + length).map_err(FileFault::Io)?;
        if got < at + length {
            let got = got.saturating_sub(at) as u64;
            return Err(FileFault::Truncated { what: "a block", needed: length as u64, got });
        }
        let last = self.read.u32(input.peek(at + length), at + length - TAIL).unwrap_or(0);
        match last as usize == length {
            true => Ok(Some((kind, length))),
            false => Err(FileFault::LengthsDiffer(length as u32, last)),
        }
    }

    /// Type and length of a block; a section header sets the byte order.
    #[inline]
    fn head(&mut self, input: &mut Input, at: usize) -> Result<Option<(u32, usize)>, FileFault> {
        let got = input.fill(at + HEAD).map_err(FileFault::Io)?.saturating_sub(at);
        let truncated = |needed: usize, got: usize| {
            Err(FileFault::Truncated { what: "the header of a block", needed: needed as u64, got: got as u64 })
        };
        let Some(kind) = self.read.u32(input.peek(at + got), at).filter(|_| got == HEAD) else {
            return if got == 0 { Ok(None) } else { truncated(HEAD, got) };
        };
        if kind == SECTION {
            let got = input.fill(at + HEAD + 4).map_err(FileFault::Io)?;
            let Some(magic) = input.peek(got).get(at + HEAD..at + HEAD + 4) else {
                return truncated(HEAD + 4, got.saturating_sub(at));
            };
            let magic: [u8; 4] = magic.try_into().unwrap_or_default();
            self.read = Order::of_magic(magic, BYTE_ORDER_MAGIC).ok_or(FileFault::UnknownFormat { magic })?;
        }
        let length = self.read.u32(input.peek(at + HEAD), at + 4).unwrap_or(0);
        if length < (HEAD + TAIL) as u32 || length % 4 != 0 {
            return Err(FileFault::BlockLength(length));
        }
        Ok(Some((kind, length as usize)))
    }

    /// Returns the block's packet, if it has one.
    fn block(&mut self, kind: u32, length: usize, input: &Input) -> Result<Option<FoundPacket>, FileFault> {
        let body = input.peek(length).get(HEAD..length - TAIL).unwrap_or_default();
        let read = match kind {
            SECTION => {
                self.before = self.before.saturating_add(self.ifaces.len() as u32);
                self.ifaces.clear();
                return Ok(None);
            }
            INTERFACE if self.ifaces.len() >= IFACES_MAX => return Err(FileFault::ManyIfaces),
            INTERFACE => {
                let iface = FileIface::of_block(body, self.read);
                self.ifaces.push(iface.ok_or(FileFault::BlockTooShort { kind })?);
                return Ok(None);
            }
            PACKET => self.packet(body),
            SIMPLE_PACKET => self.simple(body),
            OBSOLETE_PACKET => self.obsolete(body),
            // Names, statistics, secrets, and custom blocks.
            _ => return Ok(None),
        };
        read.unwrap_or(Err(FileFault::BlockTooShort { kind })).map(Some)
    }

    /// Decodes an enhanced packet block; `None` if it is incomplete.
    fn packet(&self, body: &[u8]) -> Option<Result<FoundPacket, FileFault>> {
        let read = |at| self.read.u32(body, at);
        let (number, stamp) = (read(0)?, u64::from(read(4)?) << 32 | u64::from(read(8)?));
        self.found(body, number, Some(stamp), [read(12)?, read(16)?], 20)
    }

    /// Decodes a packet block, the predecessor of the enhanced packet block.
    fn obsolete(&self, body: &[u8]) -> Option<Result<FoundPacket, FileFault>> {
        let read = |at| self.read.u32(body, at);
        let (number, stamp) = (self.read.u16(body, 0)?.into(), u64::from(read(4)?) << 32 | u64::from(read(8)?));
        self.found(body, number, Some(stamp), [read(12)?, read(16)?], 20)
    }

    /// Decodes a packet without a time stamp: it belongs to the first interface and fills the block.
    fn simple(&self, body: &[u8]) -> Option<Result<FoundPacket, FileFault>> {
        let len = self.read.u32(body, 0)?;
        let snaplen = self.ifaces.first().map_or(0, |iface| iface.snaplen);
        let bytes = if snaplen == 0 { len } else { len.min(snaplen) };
        self.found(body, 0, None, [bytes, len], 4)
    }

    #[inline]
    fn found(
        &self,
        body: &[u8],
        number: u32,
        stamp: Option<u64>,
        [caplen, len]: [u32; 2],
        at: usize,
    ) -> Option<Result<FoundPacket, FileFault>> {
        let Some(iface) = self.ifaces.get(number as usize) else { return Some(Err(FileFault::UnknownIface(number))) };
        let bytes = caplen as usize;
        let behind = body.len().checked_sub(at)?.checked_sub(bytes)?;
        let options_at = at + bytes + behind.min(bytes.wrapping_neg() % 4);
        let options = body.get(options_at..).unwrap_or_default();
        let (time_ns, unusual_time) = match stamp.map(|stamp| iface.resolution.ns(stamp)) {
            Some(Ok(ns)) => (ns, None),
            Some(Err(far)) => (far.nearest_ns(), Some(UnusualTime::Far(far))),
            None => (0, Some(UnusualTime::Missing)),
        };
        let packet = FilePacket {
            time_ns,
            unusual_time,
            stamp: stamp.unwrap_or(0),
            iface: number,
            iface_name: b"",
            number: self.before.saturating_add(number).saturating_add(1),
            link_type: iface.link_type,
            len,
            bytes: &[],
            packet_type: if options.is_empty() { None } else { self.packet_type(options) },
            options: FileOptions::NONE,
        };
        let (record, options_at) = (HEAD + body.len() + TAIL, HEAD + options_at);
        Some(Ok(FoundPacket { packet, record, at: HEAD + at, bytes, options_at, behind: TAIL, read: self.read }))
    }

    /// Direction and packet type.
    fn packet_type(&self, options: &[u8]) -> Option<PktType> {
        let mut options = BlockOptions::new(options, self.read);
        let flags = self.read.u32(options.find(|(code, _)| *code == PACKET_FLAGS)?.1, 0)?;
        match (flags & 3, flags >> 2 & 7) {
            (2, _) => Some(PktType::Outgoing),
            (_, 2) => Some(PktType::Multicast),
            (_, 3) => Some(PktType::Broadcast),
            (_, 4) => Some(PktType::OtherHost),
            (1, _) | (_, 1) => Some(PktType::Host),
            _ => None,
        }
    }
}
