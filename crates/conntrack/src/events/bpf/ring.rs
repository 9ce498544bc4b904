//! The BPF program that reports new entries, and the ring that it fills.
use bpf::conntrack_new::NewEntries;
use bpf::{BpfError, EventProgram, RingBlocks};
use sys::{Host, SysError, clock};

use crate::events::bpf::blocks::{RING_HEADER, RingHeader};

/// After a loss, so many looks without an event mean that the burst is over (100 ms).
const QUIET_LOOKS: u32 = 10;
/// Room for events that wait: 16 MiB, 260,000 of IPv4.
pub(crate) const RING_MIN: u32 = 16 << 20;
/// The kernel takes no larger ring, and no run needs one.
const RING_MAX: u32 = 1 << 30;

/// The program at work.
pub(crate) struct EventRing {
    program: NewEntries,
    lost: u64,
    /// Looks left until an empty block says that nothing comes for now; only after a loss.
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
        // The counter costs a call: a block that cannot read it has that of the block before.
        let lost = self.program.lost().unwrap_or(self.lost);
        if lost != self.lost {
            (self.lost, self.owed) = (lost, Some(QUIET_LOOKS));
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
