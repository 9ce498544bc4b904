//! The BPF program that reports new entries, and the ring that it fills.
use bpf::conntrack_new::NewEntries;
use bpf::{BpfError, EventProgram, RingBlocks};
use sys::{Host, SysError, clock};

use crate::events::bpf::blocks::{RING_HEADER, RingHeader};

/// Number of reads without an event after which a burst that lost events counts as over (100 ms).
const QUIET_READS: u32 = 10;
/// Minimum size of the ring: 16 MiB hold 260,000 events of IPv4.
///
/// Bound: bytes of ring buffer for events. Beyond: events are lost and counted (exit code 3). This also affects other
/// users. By: clients who make connections faster than events are read.
pub(crate) const RING_MIN: u32 = 16 << 20;
/// Maximum size of the ring: the kernel accepts no larger one, and no run needs it.
const RING_MAX: u32 = 1 << 30;

/// The loaded and attached program.
pub(crate) struct EventRing {
    program: NewEntries,
    lost: u64,
    /// Reads left until an empty block reports that the burst is over; only set after a loss.
    owed: Option<u32>,
    ring_bytes: u32,
}

impl EventRing {
    /// Loads and attaches the program in the calling thread's namespace, with a ring of at least `buffer_bytes` bytes.
    pub(crate) fn open<'h>(
        host: &Host,
        buffer_bytes: u32,
        stop: &'h dyn Fn() -> bool,
    ) -> Result<RingBlocks<'h, EventRing>, BpfError> {
        let ring_bytes = buffer_bytes.clamp(RING_MIN, RING_MAX).next_power_of_two();
        let program = NewEntries::open(host, ring_bytes)?;
        Ok(RingBlocks::new(EventRing { program, lost: 0, owed: None, ring_bytes }, stop))
    }
}

impl EventProgram for EventRing {
    const HEADER: usize = RING_HEADER;

    fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError> {
        self.program.take(block)
    }

    fn write_header(&mut self, header: &mut [u8]) {
        // Reading the counter costs a system call. If it fails, the block keeps the previous number.
        let lost = self.program.lost_events().unwrap_or(self.lost);
        if lost != self.lost {
            (self.lost, self.owed) = (lost, Some(QUIET_READS));
        }
        let epoch_ns = clock::wall_ns().wrapping_sub(clock::monotonic_ns());
        let head = RingHeader { epoch_ns, lost: self.lost, ring: self.ring_bytes.into() };
        header.copy_from_slice(&head.bytes());
    }

    fn wants_empty_block(&mut self) -> bool {
        let Some(looks) = self.owed else { return false };
        self.owed = looks.checked_sub(1).filter(|left| *left > 0);
        self.owed.is_none()
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.program.wait(timeout_ms)
    }
}
