//! Counts packets as they are handed out: latency, truncated packets, clocks.
use record::rows::FramePlace;
use sys::clock;
use sys::packet_ring::{Frame, FrameStatus, RingKind};

use crate::report::CaptureReport;

/// The clock is read once per this number of packets in a batch, a power of two.
const STAMPED: u64 = 16;
/// The clock is read once per this number of packets in a block, which arrive a thousand at a time: latency is measured
/// only for these packets, because reading the clock costs as much as a packet.
const STAMPED_IN_BLOCKS: u64 = 64;

/// Counts of the packets that were handed out.
pub(super) struct PacketCounts {
    /// The part of the report that is counted here; the rings and interfaces have the rest.
    pub(super) report: CaptureReport,
    /// True if the latency of every packet is measured.
    measures_all: bool,
    snaplen: u32,
}

/// The latest reading of the clock in a batch.
#[derive(Default)]
pub(super) struct BatchClock {
    now_ns: u64,
    /// Number of packets of the batch so far.
    packets: u64,
}

impl PacketCounts {
    pub(super) fn new(kind: RingKind, snaplen: u32) -> PacketCounts {
        let measures_all = matches!(kind, RingKind::Slots { .. });
        PacketCounts { report: CaptureReport::default(), measures_all, snaplen }
    }

    /// Counts the next packets of a batch, all with the clock of the first.
    #[inline]
    pub(super) fn add(&mut self, first: &Frame<'_>, frames: &[FramePlace], clock: &mut BatchClock) {
        let stamped = if self.measures_all { STAMPED } else { STAMPED_IN_BLOCKS };
        let count = frames.len() as u64;
        // Index of the packet for which the clock is read, if it is among them.
        let due = clock.packets.wrapping_neg() & (stamped - 1);
        let is_stamped = due < count;
        clock.packets += count;
        if is_stamped {
            clock.now_ns = clock::wall_ns();
        }
        let looked_at = frames.get(if is_stamped { due as usize } else { 0 });
        if first.status.has_any(FrameStatus::STAMPED_BY_ADAPTER) {
            // Its clock differs from the host's.
            self.report.adapter_stamps += count;
        } else if let Some(frame) = looked_at.filter(|_| is_stamped || self.measures_all) {
            self.report.latency.add(clock.now_ns.saturating_sub(frame.time_ns));
        }
        let is_cut = |frame: &&FramePlace| frame.captured < frame.len.min(self.snaplen) as usize;
        self.report.truncated += frames.iter().filter(is_cut).count() as u64;
    }
}
