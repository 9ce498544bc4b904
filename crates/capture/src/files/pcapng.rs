//! pcapng: blocks, in sections that may differ in byte order (draft-ietf-opsawg-pcapng).

use super::RECORD_MAX;
use super::error::FileFault;
use super::input::Input;
use super::interface::FileIface;
use super::options::{BlockOptions, Order};
use super::packet::{FilePacket, FoundPacket};
use record::rows::PacketAim;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;
/// Type and length before what is in a block, the length again behind it.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// `epb_flags`
const PACKET_FLAGS: u16 = 2;
/// Interfaces of a section that are remembered.
const IFACES_MAX: usize = 1 << 16;

/// What was read of the current section.
#[derive(Debug)]
pub(super) struct PcapngSection {
    pub(super) read: Order,
    pub(super) ifaces: Vec<FileIface>,
    /// Interfaces of sections before.
    before: u32,
}

impl PcapngSection {
    pub(super) fn new() -> PcapngSection {
        PcapngSection { read: Order::LITTLE, ifaces: Vec::new(), before: 0 }
    }

    /// Reads up to the first description of an interface; what is broken before it is an error of the first packet.
    pub(super) fn begin(&mut self, input: &mut Input) -> Result<(), FileFault> {
        // A section's header alone is a file, half of one is none.
        self.whole(input)?;
        while self.ifaces.is_empty() {
            let Ok(Some((kind, length))) = self.whole(input) else { break };
            let is_packet = [PACKET, SIMPLE_PACKET, OBSOLETE_PACKET].contains(&kind);
            if is_packet || self.block(kind, length, input).is_err() {
                break;
            }
            input.take(length);
        }
        Ok(())
    }

    /// The next packet; `None` at the end of the file.
    pub(super) fn next(&mut self, input: &mut Input) -> Result<Option<FoundPacket>, FileFault> {
        while let Some((kind, length)) = self.whole(input)? {
            if let Some(found) = self.block(kind, length, input)? {
                return Ok(Some(found));
            }
            input.take(length);
        }
        Ok(None)
    }

    /// Type and length of the next block, which is there.
    fn whole(&mut self, input: &mut Input) -> Result<Option<(u32, usize)>, FileFault> {
        let Some((kind, length)) = self.head(input)? else { return Ok(None) };
        if length > RECORD_MAX {
            return Err(FileFault::BlockLength(length as u32));
        }
        let got = input.fill(length).map_err(FileFault::Io)?;
        if got < length {
            return Err(FileFault::Truncated { what: "a block", needed: length as u64, got: got as u64 });
        }
        let last = self.read.u32(input.peek(length), length - TAIL).unwrap_or(0);
        match last as usize == length {
            true => Ok(Some((kind, length))),
            false => Err(FileFault::LengthsDiffer(length as u32, last)),
        }
    }

    /// Type and length of the next block; a section header sets the byte order.
    fn head(&mut self, input: &mut Input) -> Result<Option<(u32, usize)>, FileFault> {
        let got = input.fill(HEAD).map_err(FileFault::Io)?;
        let truncated = |needed: usize, got: usize| {
            Err(FileFault::Truncated { what: "the header of a block", needed: needed as u64, got: got as u64 })
        };
        let Some(kind) = self.read.u32(input.peek(got), 0).filter(|_| got == HEAD) else {
            return if got == 0 { Ok(None) } else { truncated(HEAD, got) };
        };
        if kind == SECTION_HEADER {
            let got = input.fill(HEAD + 4).map_err(FileFault::Io)?;
            let Some(magic) = input.peek(got).get(HEAD..HEAD + 4) else { return truncated(HEAD + 4, got) };
            let magic: [u8; 4] = magic.try_into().unwrap_or_default();
            self.read = Order::of_magic(magic, BYTE_ORDER_MAGIC).ok_or(FileFault::UnknownFormat { magic })?;
        }
        let length = self.read.u32(input.peek(HEAD), 4).unwrap_or(0);
        if length < (HEAD + TAIL) as u32 || length % 4 != 0 {
            return Err(FileFault::BlockLength(length));
        }
        Ok(Some((kind, length as usize)))
    }

    /// A packet, if the block has one.
    fn block(&mut self, kind: u32, length: usize, input: &Input) -> Result<Option<FoundPacket>, FileFault> {
        let body = input.peek(length).get(HEAD..length - TAIL).unwrap_or_default();
        let read = match kind {
            SECTION_HEADER => {
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
            // Names, statistics, secrets, and what others have made up.
            _ => return Ok(None),
        };
        read.unwrap_or(Err(FileFault::BlockTooShort { kind })).map(Some)
    }

    /// An enhanced packet block; `None` if it is not whole.
    fn packet(&self, body: &[u8]) -> Option<Result<FoundPacket, FileFault>> {
        let read = |at| self.read.u32(body, at);
        let (number, stamp) = (read(0)?, u64::from(read(4)?) << 32 | u64::from(read(8)?));
        self.found(body, number, stamp, [read(12)?, read(16)?], 20)
    }

    /// What was written before there were enhanced ones.
    fn obsolete(&self, body: &[u8]) -> Option<Result<FoundPacket, FileFault>> {
        let read = |at| self.read.u32(body, at);
        let (number, stamp) = (self.read.u16(body, 0)?.into(), u64::from(read(4)?) << 32 | u64::from(read(8)?));
        self.found(body, number, stamp, [read(12)?, read(16)?], 20)
    }

    /// A packet without a stamp: of the first interface, as long as the block.
    fn simple(&self, body: &[u8]) -> Option<Result<FoundPacket, FileFault>> {
        let len = self.read.u32(body, 0)?;
        let snaplen = self.ifaces.first().map_or(0, |iface| iface.snaplen);
        let bytes = if snaplen == 0 { len } else { len.min(snaplen) };
        self.found(body, 0, 0, [bytes, len], 4)
    }

    #[inline]
    fn found(
        &self,
        body: &[u8],
        number: u32,
        stamp: u64,
        [caplen, len]: [u32; 2],
        at: usize,
    ) -> Option<Result<FoundPacket, FileFault>> {
        let Some(iface) = self.ifaces.get(number as usize) else { return Some(Err(FileFault::UnknownIface(number))) };
        let bytes = caplen as usize;
        let options = body.get(at..)?.get(bytes..)?;
        let options = options.get(bytes.wrapping_neg() % 4..).unwrap_or_default();
        let packet = FilePacket {
            time_ns: iface.resolution.ns(stamp),
            iface: number,
            iface_name: b"",
            number: self.before.saturating_add(number).saturating_add(1),
            link_type: iface.link_type,
            len,
            bytes: &[],
            aim: if options.is_empty() { None } else { self.aim(options) },
        };
        Some(Ok(FoundPacket { packet, record: HEAD + body.len() + TAIL, at: HEAD + at, bytes }))
    }

    /// Direction, and whom it is for.
    fn aim(&self, options: &[u8]) -> Option<PacketAim> {
        let mut options = BlockOptions::new(options, self.read);
        let flags = self.read.u32(options.find(|(code, _)| *code == PACKET_FLAGS)?.1, 0)?;
        match (flags & 3, flags >> 2 & 7) {
            (2, _) => Some(PacketAim::Outgoing),
            (_, 2) => Some(PacketAim::Multicast),
            (_, 3) => Some(PacketAim::Broadcast),
            (_, 4) => Some(PacketAim::OtherHost),
            (1, _) | (_, 1) => Some(PacketAim::Host),
            _ => None,
        }
    }
}
