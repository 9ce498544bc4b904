//! Captured packets that wait, in order, until more is known about them.

use record::rows::{CapturedPacket, PacketEntry};
use std::collections::VecDeque;

/// Maximum memory of waiting packets in bytes: their frames and their other data. Beyond this the oldest are released.
///
/// Bound: bytes of packets that wait for their owners (`packets::memory_is_bounded`). Beyond: the oldest packets
/// continue with the owners that are known; counted (exit code 3). This also affects other users. By: any sender of
/// packets of unknown connections.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Bytes stored for each packet in addition to its frame.
const EACH_BYTES: usize = 200;
/// Maximum number of buffers kept for reuse while no packets wait, usually 2 KiB each.
const SPARE_MAX: usize = 1024;

/// Packets that wait, in order.
#[derive(Default)]
pub struct WaitingPackets {
    packets: VecDeque<WaitingPacket>,
    bytes: usize,
    /// Buffers of released packets, for reuse.
    spare: Vec<Vec<u8>>,
}

/// A packet as its row was before its headers were decoded.
pub struct WaitingPacket {
    /// The row without borrowed data.
    row: CapturedPacket<'static>,
    /// Its frame, followed by the name of its interface.
    bytes: Vec<u8>,
    frame_bytes: usize,
    entry: Option<Box<PacketEntry<'static>>>,
    /// Since when it has been waiting, on the clock of [`WaitingPackets::push`].
    pub since_ns: u64,
}

impl WaitingPacket {
    /// Its row, without decoded headers.
    pub fn row(&self) -> CapturedPacket<'_> {
        let (frame, iface) = self.bytes.split_at_checked(self.frame_bytes).unwrap_or_default();
        CapturedPacket { frame, iface, entry: self.entry.as_deref(), ..self.row }
    }
}

impl WaitingPackets {
    /// True if no packets are waiting.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// True if the maximum amount is waiting.
    pub fn is_full(&self) -> bool {
        self.bytes > WAITING_BYTES_MAX
    }

    /// The oldest packet.
    pub fn first(&self) -> Option<&WaitingPacket> {
        self.packets.front()
    }

    /// Stores a copy of `row` with its conntrack entry, but without its sockets.
    pub fn push(&mut self, row: &CapturedPacket<'_>, since_ns: u64) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(row.frame);
        bytes.extend_from_slice(row.iface);
        self.bytes += bytes.len() + EACH_BYTES;
        let kept = CapturedPacket {
            time_ns: row.time_ns,
            netns_id: row.netns_id,
            ifindex: row.ifindex,
            link_type: row.link_type,
            packet_type: row.packet_type,
            checksum_not_ready: row.checksum_not_ready,
            is_super_packet: row.is_super_packet,
            stamp: row.stamp,
            len: row.len,
            ..CapturedPacket::default()
        };
        let entry = row.entry.map(|entry| Box::new(entry.without_borrowed()));
        self.packets.push_back(WaitingPacket { row: kept, bytes, frame_bytes: row.frame.len(), entry, since_ns });
    }

    /// Drops the oldest packet.
    pub fn remove_first(&mut self) {
        if let Some(first) = self.packets.pop_front() {
            self.bytes = self.bytes.saturating_sub(first.bytes.len() + EACH_BYTES);
            self.spare.push(first.bytes);
        }
        if self.packets.is_empty() {
            self.spare.truncate(SPARE_MAX);
        }
    }

    /// Drops all packets; returns their number.
    pub fn clear(&mut self) -> u64 {
        let count = self.packets.len() as u64;
        self.packets.clear();
        self.bytes = 0;
        count
    }
}
