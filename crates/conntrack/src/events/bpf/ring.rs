//! The BPF program's ring, emptied into blocks.
//!
//! No thread of its own: the ring is the buffer, and taking what waits in it costs 20 to 60 ns an event.
use bpf::BpfError;
use bpf::conntrack_new::NewEntries;
use sys::{Blocks, Host, SysError, clock};

use crate::events::bpf::blocks::{RING_HEADER, RingHeader};
use crate::events::netlink::reader::wall_ns;

/// The ring is looked at so often even if nobody woke us: programs wake only when 64 KiB wait.
const LOOK_MS: i32 = 10;
/// After a loss, so many looks without an event mean that the burst is over (100 ms).
const QUIET_LOOKS: u32 = 10;
/// Room for events that wait: 16 MiB, 260,000 of IPv4.
pub(crate) const RING_MIN: u32 = 16 << 20;
/// What the kernel takes as a ring at most, and more than anybody needs.
const RING_MAX: u32 = 1 << 30;
/// Blocks after the end was asked for: what was on its way still comes, but a flood does not keep us for ever.
const BLOCKS_AFTER_STOP: u32 = 64;

/// The program at work.
pub(crate) struct EventRing<'h> {
    program: NewEntries,
    block: Vec<u8>,
    stop: &'h dyn Fn() -> bool,
    after_stop: u32,
    lost: u64,
    /// Looks left until an empty block says that nothing comes for now; only after a loss.
    owed: Option<u32>,
    ring: u32,
}

impl<'h> EventRing<'h> {
    /// Loads and attaches the program in the calling thread's namespace, with a ring of at least `buffer_bytes` bytes.
    pub(crate) fn open(host: &Host, buffer_bytes: u32, stop: &'h dyn Fn() -> bool) -> Result<EventRing<'h>, BpfError> {
        let ring = buffer_bytes.clamp(RING_MIN, RING_MAX).next_power_of_two();
        let program = NewEntries::open(host, ring)?;
        Ok(EventRing { program, block: Vec::new(), stop, after_stop: 0, lost: 0, owed: None, ring })
    }

    fn finished(&mut self) -> Option<&[u8]> {
        // The counter costs a call: a block that cannot read it takes the last one.
        let lost = self.program.lost().unwrap_or(self.lost);
        if lost != self.lost {
            (self.lost, self.owed) = (lost, Some(QUIET_LOOKS));
        }
        let epoch_ns = wall_ns().wrapping_sub(clock::monotonic_ns());
        let head = RingHeader { epoch_ns, lost: self.lost, ring: self.ring.into() };
        self.block.get_mut(..RING_HEADER)?.copy_from_slice(&head.bytes());
        Some(&self.block)
    }
}

impl Blocks for EventRing<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        loop {
            let stopped = (self.stop)();
            self.after_stop += u32::from(stopped);
            if self.after_stop > BLOCKS_AFTER_STOP {
                return Ok(None);
            }
            self.block.clear();
            self.block.resize(RING_HEADER, 0);
            if self.program.take(&mut self.block)? {
                return Ok(self.finished());
            }
            if stopped {
                // The last count, without events.
                self.after_stop = BLOCKS_AFTER_STOP;
                return Ok(self.finished());
            }
            if let Some(looks) = &mut self.owed {
                *looks = looks.saturating_sub(1);
                if *looks == 0 {
                    self.owed = None;
                    return Ok(self.finished());
                }
            }
            self.program.wait(LOOK_MS)?;
        }
    }
}
