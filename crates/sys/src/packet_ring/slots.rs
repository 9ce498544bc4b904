//! Version 2 of packet rings (TPACKET_V2): one slot per packet, delivered as soon as the packet is copied.
use std::sync::atomic::Ordering;

use super::frame::{Frame, FrameStatus, PacketType, StrippedTag, TAG_BYTES};
use super::mapping::{Mapping, read_u16, word};
use super::whole::WholePackets;
use crate::fd::Fd;

/// Offset of `struct sockaddr_ll` after `struct tpacket2_hdr`, and size of both.
const ADDRESS: usize = 32;
const HEADER: usize = ADDRESS + 20;

/// After this many packets in a row, more are expected to follow.
const MANY_IN_A_ROW: u32 = 3;
/// Number of slots to prefetch ahead, and bytes of each: the header and a short packet.
const PREFETCH_SLOTS: usize = 3;
const AHEAD_BYTES: usize = 192;

/// The position of the reader.
#[derive(Debug)]
pub(super) struct Slots {
    slot_bytes: usize,
    block_bytes: usize,
    slots: usize,
    /// The next slot.
    next: usize,
    /// True if it was handed out but not returned yet.
    is_out: bool,
    /// Packets taken since a slot was last found empty.
    in_a_row: u32,
    /// Reads packets that are longer than a slot; without it (`None`) they stay truncated.
    whole: Option<WholePackets>,
}

impl Slots {
    pub(super) fn new(slot_bytes: usize, block_bytes: usize, blocks: usize, whole: Option<WholePackets>) -> Slots {
        let slots = block_bytes / slot_bytes * blocks;
        Slots { slot_bytes, block_bytes, slots, next: 0, is_out: false, in_a_row: 0, whole }
    }

    /// Offset of the next slot. A slot does not extend beyond its block.
    fn offset(&self) -> usize {
        self.offset_of(self.next)
    }

    fn offset_of(&self, slot: usize) -> usize {
        let per_block = self.block_bytes / self.slot_bytes;
        slot / per_block * self.block_bytes + slot % per_block * self.slot_bytes
    }

    /// The time stamp of the next packet; `None` without a packet.
    #[inline]
    pub(super) fn next_ns(&self, map: &Mapping) -> Option<u64> {
        let at = self.offset();
        let status = map.status(at)?.load(Ordering::Acquire);
        let header = if status & FrameStatus::USER == 0 { None } else { map.bytes(at, HEADER) }?;
        Some(stamp(header))
    }

    /// Returns the previous packet to the kernel and hands out the next one.
    #[inline]
    pub(super) fn take<'m>(&'m mut self, map: &'m mut Mapping, fd: &Fd) -> Option<Frame<'m>> {
        self.release_slot(map);
        let at = self.offset();
        // Acquire: everything that the kernel wrote before it handed the slot over is visible after this.
        let status = map.status(at)?.load(Ordering::Acquire);
        if status & FrameStatus::USER == 0 {
            self.in_a_row = 0;
            return None;
        }
        self.is_out = true;
        // When packets are rare, prefetching slots that the kernel has not written yet would slow down its writes.
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row > MANY_IN_A_ROW {
            map.fetch_ahead(self.offset_of((self.next + PREFETCH_SLOTS) % self.slots.max(1)), AHEAD_BYTES);
        }
        let slot = SlotHeader::read(map, at, self.slot_bytes)?;
        match &mut self.whole {
            Some(whole) if status & FrameStatus::WAITS_WHOLE != 0 => slot.whole_frame(status, map, whole, fd),
            _ => slot.frame(status, map),
        }
    }

    /// Saves packets that wait on the socket although their slots have not arrived yet.
    pub(super) fn keep_early(&mut self, fd: &Fd) {
        if let Some(whole) = &mut self.whole {
            whole.keep_early(fd);
        }
    }

    /// Returns the packet that is handed out to the kernel.
    #[inline]
    pub(super) fn release_slot(&mut self, map: &Mapping) {
        if !std::mem::take(&mut self.is_out) {
            return;
        }
        // Release: our reads of the slot happen before the kernel writes to it again.
        if let Some(status) = map.status(self.offset()) {
            status.store(0, Ordering::Release);
        }
        self.next = (self.next + 1) % self.slots.max(1);
    }
}

fn stamp(header: &[u8]) -> u64 {
    u64::from(word(header, 16)) * 1_000_000_000 + u64::from(word(header, 20))
}

/// `struct tpacket2_hdr`: status, length, captured, u16 offset of the packet, u16 offset of its network header,
/// seconds, nanoseconds, u16 VLAN tag, u16 tag type, padding; then `struct sockaddr_ll`.
struct SlotHeader {
    len: u32,
    time_ns: u64,
    ifindex: u32,
    hardware: u16,
    packet_type: PacketType,
    tci: u16,
    tpid: u16,
    /// Position and number of the packet's bytes in the ring; empty for an invalid slot, which kernels never write.
    start: usize,
    captured: usize,
}

impl SlotHeader {
    #[inline]
    fn read(map: &Mapping, at: usize, slot_bytes: usize) -> Option<SlotHeader> {
        let header = map.bytes(at, HEADER)?;
        let (captured, mac) = (word(header, 8) as usize, usize::from(read_u16(header, 12)));
        let is_sound = mac >= HEADER + TAG_BYTES && mac.saturating_add(captured) <= slot_bytes;
        Some(SlotHeader {
            len: word(header, 4),
            time_ns: stamp(header),
            ifindex: word(header, ADDRESS + 4),
            hardware: read_u16(header, ADDRESS + 8),
            packet_type: PacketType(header.get(ADDRESS + 10).copied().unwrap_or(0)),
            tci: read_u16(header, 24),
            tpid: read_u16(header, 26),
            start: if is_sound { at + mac } else { at + HEADER + TAG_BYTES },
            captured: if is_sound { captured } else { 0 },
        })
    }

    #[inline]
    fn plain_frame(&self, status: u32) -> Frame<'static> {
        Frame {
            bytes: &[],
            len: self.len,
            time_ns: self.time_ns,
            ifindex: self.ifindex,
            hardware: self.hardware,
            packet_type: self.packet_type,
            status: FrameStatus(status),
        }
    }

    /// The packet as it is in the slot.
    #[inline]
    fn frame<'m>(&self, status: u32, map: &'m mut Mapping) -> Option<Frame<'m>> {
        let bare = self.plain_frame(status);
        if self.captured == 0 {
            return Some(bare);
        }
        let tag = StrippedTag::from_status(status, self.tci, self.tpid);
        let begin = self.start - TAG_BYTES;
        let memory = map.bytes_mut(begin, TAG_BYTES + self.captured)?;
        Some(with_bytes(bare, memory, TAG_BYTES, self.captured, tag))
    }

    /// The packet from the socket's queue; the packet in the slot if it is not in the queue.
    #[cold]
    fn whole_frame<'m>(
        &self,
        status: u32,
        map: &'m mut Mapping,
        whole: &'m mut WholePackets,
        fd: &Fd,
    ) -> Option<Frame<'m>> {
        let beginning = map.bytes(self.start, self.captured)?;
        let Some(place) = whole.take(fd, self.len as usize, beginning) else { return self.frame(status, map) };
        let mut frame: Frame<'m> = self.plain_frame(status);
        let tag = StrippedTag::from_status(status, self.tci, self.tpid);
        let has_tag = tag.is_some_and(|tag| tag.put_back(place));
        frame.len = frame.len.saturating_add(if has_tag { TAG_BYTES as u32 } else { 0 });
        frame.bytes = place.get(if has_tag { 0 } else { TAG_BYTES }..).unwrap_or_default();
        Some(frame)
    }
}

/// The packet with its `captured` bytes at `at`, after at least [`TAG_BYTES`] of free space, and its tag.
#[inline]
pub(super) fn with_bytes<'m>(
    frame: Frame<'static>,
    memory: &'m mut [u8],
    at: usize,
    captured: usize,
    tag: Option<StrippedTag>,
) -> Frame<'m> {
    let (mut start, mut len) = (at, frame.len);
    if let Some(tag) = tag {
        let place = memory.get_mut(at.saturating_sub(TAG_BYTES)..at.saturating_add(captured));
        if place.is_some_and(|place| tag.put_back(place)) {
            start = at.saturating_sub(TAG_BYTES);
            len = len.saturating_add(TAG_BYTES as u32);
        }
    }
    Frame { bytes: memory.get(start..at.saturating_add(captured)).unwrap_or_default(), len, ..frame }
}
