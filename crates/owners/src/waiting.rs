//! Captured packets that wait, in order, until more is known about them.

use record::rows::{CapturedPacket, PacketEntry};
use std::collections::VecDeque;

/// Bytes of packets that wait, their frames and what is kept beside them. Beyond these the oldest go on.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Bytes that are kept of each packet beside its frame.
const EACH_BYTES: usize = 200;
/// Buffers that are kept while nothing waits, 2 KiB each as a rule.
const SPARE_MAX: usize = 1024;

/// Packets that wait, in order.
#[derive(Default)]
pub struct WaitingPackets {
    packets: VecDeque<WaitingPacket>,
    bytes: usize,
    /// Memory of those that have gone on.
    spare: Vec<Vec<u8>>,
}

/// A packet as its row had it before its headers were read.
pub struct WaitingPacket {
    /// Without what it borrows.
    row: CapturedPacket<'static>,
    /// Its frame, then the name of its interface.
    bytes: Vec<u8>,
    frame_bytes: usize,
    entry: Option<Box<PacketEntry<'static>>>,
    /// Since when it waits, on the clock of [`WaitingPackets::push`].
    pub since_ns: u64,
}

impl WaitingPacket {
    /// Its row, without what was read of its headers.
    pub fn row(&self) -> CapturedPacket<'_> {
        let (frame, iface) = self.bytes.split_at_checked(self.frame_bytes).unwrap_or_default();
        CapturedPacket { frame, iface, entry: self.entry.as_deref(), ..self.row }
    }
}

impl WaitingPackets {
    /// True if none waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// True if there are as many as may wait.
    pub fn is_full(&self) -> bool {
        self.bytes > WAITING_BYTES_MAX
    }

    /// The oldest.
    pub fn first(&self) -> Option<&WaitingPacket> {
        self.packets.front()
    }

    /// Keeps a copy of `row`, with its entry of connection tracking, not with its sockets.
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

    /// Drops the oldest.
    pub fn remove_first(&mut self) {
        if let Some(first) = self.packets.pop_front() {
            self.bytes = self.bytes.saturating_sub(first.bytes.len() + EACH_BYTES);
            self.spare.push(first.bytes);
        }
        if self.packets.is_empty() {
            self.spare.truncate(SPARE_MAX);
        }
    }

    /// Drops all; returns how many there were.
    pub fn clear(&mut self) -> u64 {
        let count = self.packets.len() as u64;
        self.packets.clear();
        self.bytes = 0;
        count
    }
}
