//! Version 3 of packet rings (TPACKET_V3): blocks of packets, delivered when they are full or their timeout expires.
use std::sync::atomic::Ordering;

use super::frame::{Frame, FrameStatus, PacketType, SimilarFrames, StrippedTag, TAG_BYTES};
use super::mapping::{LINE, Mapping, fetch, read_u16, word};
use super::slots::with_bytes;

/// Offsets in `struct tpacket_block_desc`: version, offset of private bytes, then status, packets, offset of the
/// first, …
const STATUS: usize = 8;
const DESCRIPTION: usize = 48;
/// Offset of `struct sockaddr_ll` after `struct tpacket3_hdr`, and size of both.
const ADDRESS: usize = 48;
const HEADER: usize = ADDRESS + 20;
/// Number of bytes after a packet that are prefetched: with short packets this covers the time in which a batch is
/// processed.
const AHEAD_BYTES: usize = 8 << 10;
/// Maximum total size of packets that are handed out together, not counting the last one, so that they fit into the
/// processor's first-level cache.
const ALIKE_BYTES: usize = 16 << 10;

/// The position of the reader.
#[derive(Debug)]
pub(super) struct BlockReader {
    block_bytes: usize,
    blocks: usize,
    /// The current block.
    block: usize,
    /// True if the kernel has handed it to us.
    is_open: bool,
    /// Number of packets left in it.
    left: u32,
    /// Offset of the next packet in the block.
    next: usize,
    /// End of the prefetched part of the block: each cache line is prefetched once, however few packets are requested
    /// at a time.
    fetched: usize,
}

impl BlockReader {
    pub(super) fn new(block_bytes: usize, blocks: usize) -> BlockReader {
        BlockReader { block_bytes, blocks, block: 0, is_open: false, left: 0, next: 0, fetched: 0 }
    }

    /// Opens the next block that has packets, if there is one.
    fn open(&mut self, map: &Mapping) -> bool {
        for _ in 0..self.blocks {
            if self.left > 0 {
                return true;
            }
            self.close(map);
            let start = self.block * self.block_bytes;
            // Acquire: everything that the kernel wrote before it handed the block over is visible after this.
            let status = map.status(start + STATUS).map_or(0, |status| status.load(Ordering::Acquire));
            let description = map.bytes(start, DESCRIPTION).unwrap_or_default();
            if status & FrameStatus::USER == 0 {
                return false;
            }
            (self.is_open, self.fetched) = (true, 0);
            (self.left, self.next) = (word(description, 12), word(description, 16) as usize);
        }
        self.left > 0
    }

    /// Returns the block to the kernel.
    fn close(&mut self, map: &Mapping) {
        if std::mem::take(&mut self.is_open) {
            // Release: our reads of the block happen before the kernel writes to it again.
            if let Some(status) = map.status(self.block * self.block_bytes + STATUS) {
                status.store(0, Ordering::Release);
            }
            self.block = (self.block + 1) % self.blocks.max(1);
        }
    }

    /// Returns a block to the kernel once all its packets have been read.
    pub(super) fn release_block(&mut self, map: &Mapping) {
        if self.left == 0 {
            self.close(map);
        }
    }

    /// The time stamp of the next packet.
    #[inline]
    pub(super) fn next_ns(&mut self, map: &Mapping) -> Option<u64> {
        if !self.open(map) {
            return None;
        }
        let header = self.header(map)?;
        Some(stamp(header))
    }

    fn header<'m>(&self, map: &'m Mapping) -> Option<&'m [u8]> {
        let is_inside = self.next.checked_add(HEADER).is_some_and(|end| end <= self.block_bytes);
        if is_inside { map.bytes(self.block * self.block_bytes + self.next, HEADER) } else { None }
    }

    /// Passes the next packets of one block to `take`, at most `most` of them, until it returns false; returns their
    /// number. Earlier blocks are returned to the kernel.
    #[inline]
    pub(super) fn take_many(&mut self, map: &mut Mapping, most: u64, mut take: impl FnMut(&Frame<'_>) -> bool) -> u64 {
        if !self.open(map) {
            return 0;
        }
        let Some(block) = map.bytes_mut(self.block * self.block_bytes, self.block_bytes) else { return 0 };
        let (mut left, mut next, mut taken, mut fetched) = (self.left, self.next, 0, self.fetched);
        while left > 0 && taken < most {
            let Some(packet) = Packet::read(block, next) else {
                left = 0;
                break;
            };
            fetched = packet.fetch_ahead(next, block, fetched);
            (left, next, taken) = (left - 1, packet.next, taken + 1);
            if !take(&packet.frame(block)) {
                break;
            }
        }
        (self.left, self.next, self.fetched) = (left, next, fetched);
        taken
    }

    /// Works like `take_many`, but for a run of similar packets, and also passes the offset of each. `None` if there
    /// is no packet, or if the next one must be changed first because its VLAN tag was removed, or has no bytes.
    #[inline]
    pub(super) fn take_similar<'m>(
        &mut self,
        map: &'m Mapping,
        most: u64,
        mut each: impl FnMut(usize, &Frame<'_>),
    ) -> Option<SimilarFrames<'m>> {
        if !self.open(map) {
            return None;
        }
        let block = map.bytes(self.block * self.block_bytes, self.block_bytes)?;
        let mut packet = Packet::read(block, self.next).filter(Packet::is_unmodified)?;
        let first = packet.plain_frame(block);
        let (mut left, mut next, mut taken, mut bytes) = (self.left, self.next, 0, 0);
        let mut fetched = self.fetched;
        loop {
            fetched = packet.fetch_ahead(next, block, fetched);
            each(packet.start, &packet.plain_frame(block));
            (left, next, taken, bytes) = (left - 1, packet.next, taken + 1, bytes + packet.captured);
            if left == 0 || taken >= most || bytes >= ALIKE_BYTES {
                break;
            }
            match Packet::read(block, next).filter(|other| other.is_unmodified() && other.frame.is_like(&first)) {
                Some(other) => packet = other,
                None => break,
            }
        }
        (self.left, self.next, self.fetched) = (left, next, fetched);
        Some(SimilarFrames { first, memory: block })
    }
}

/// `struct tpacket3_hdr` of a packet, and the position of its bytes in the block.
struct Packet {
    /// Offset of the next packet.
    next: usize,
    start: usize,
    captured: usize,
    tag: Option<StrippedTag>,
    frame: Frame<'static>,
}

impl Packet {
    /// Reads the header at `at`; `None` beyond the end. Kernels never write such an offset; the rest of the block
    /// cannot be found then.
    #[inline]
    fn read(block: &[u8], at: usize) -> Option<Packet> {
        let header = block.get(at..at.checked_add(HEADER)?)?;
        let (captured, mac, status) = (word(header, 12) as usize, usize::from(read_u16(header, 24)), word(header, 20));
        let end = at.saturating_add(mac).saturating_add(captured);
        let is_sound = mac >= HEADER + TAG_BYTES && end <= block.len();
        Some(Packet {
            next: at.saturating_add(word(header, 0) as usize),
            start: at + mac,
            captured: if is_sound { captured } else { 0 },
            tag: StrippedTag::from_status(status, word(header, 32) as u16, read_u16(header, 36)),
            frame: Frame {
                bytes: &[],
                len: word(header, 16),
                time_ns: stamp(header),
                ifindex: word(header, ADDRESS + 4),
                hardware: read_u16(header, ADDRESS + 8),
                packet_type: PacketType(header.get(ADDRESS + 10).copied().unwrap_or(0)),
                status: FrameStatus(status),
            },
        })
    }

    /// Prefetches the memory after this packet, whose header is at `at`, as far as it was not prefetched before;
    /// returns the end of the prefetched part. Another processor has written the packets, so without this each cache
    /// line of them would have to be waited for.
    #[inline]
    fn fetch_ahead(&self, at: usize, block: &[u8], fetched: usize) -> usize {
        let ahead = self.next.saturating_add(AHEAD_BYTES.max(self.next.saturating_sub(at))) / LINE * LINE;
        fetch(block, fetched.max(self.next / LINE * LINE)..ahead);
        fetched.max(ahead)
    }

    /// True if it can be handed out unmodified.
    #[inline]
    fn is_unmodified(&self) -> bool {
        self.captured > 0 && self.tag.is_none()
    }

    /// The packet with its bytes, unmodified.
    #[inline]
    fn plain_frame<'m>(&self, block: &'m [u8]) -> Frame<'m> {
        let bytes = block.get(self.start..).and_then(|rest| rest.get(..self.captured)).unwrap_or_default();
        Frame { bytes, ..self.frame }
    }

    /// The packet with its bytes, and its VLAN tag back in place.
    #[inline]
    fn frame(self, block: &mut [u8]) -> Frame<'_> {
        let Packet { start, captured, tag, .. } = self;
        if captured > 0 {
            return with_bytes(self.frame, block, start, captured, tag);
        }
        self.frame
    }
}

/// `struct tpacket3_hdr`: offset of the next, seconds, nanoseconds, captured, length, status, u16 offset of the
/// packet, u16 offset of its network header, hash, u32 VLAN tag, u16 tag type, padding; then `struct sockaddr_ll`.
fn stamp(header: &[u8]) -> u64 {
    u64::from(word(header, 4)) * 1_000_000_000 + u64::from(word(header, 8))
}
