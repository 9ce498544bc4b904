//! A ring buffer of kernel events as a stream of blocks, for the tape and for the decoder.
//!
//! It needs no thread of its own: the ring is the buffer, and taking waiting events from it costs 20 to 60 ns per
//! event.
use crate::blocks::Blocks;
use crate::errno::SysError;

/// Interval at which the ring is checked even without a wake-up: programs wake the reader only when 64 KiB wait.
const CHECK_INTERVAL_MS: i32 = 10;
/// Number of blocks handed out after a stop request: pending events still arrive, but a flood does not delay the end.
const BLOCKS_AFTER_STOP: u32 = 64;

/// A program that writes events into a ring buffer.
pub trait EventProgram {
    /// Size of the header before the events of a block, in bytes.
    const HEADER: usize;

    /// Appends every waiting event to `block`; true if there was one.
    fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError>;

    /// Fills in the header of a complete block: clock, loss counters.
    fn write_header(&mut self, header: &mut [u8]);

    /// Called whenever no event waits: true if a block without events must be handed out now.
    fn wants_empty_block(&mut self) -> bool {
        false
    }

    /// Waits at most `timeout_ms` for events.
    fn wait(&self, timeout_ms: i32) -> Result<(), SysError>;
}

/// The blocks of a program, until `stop` returns true.
pub struct RingBlocks<'h, P> {
    program: P,
    block: Vec<u8>,
    stop: &'h dyn Fn() -> bool,
    blocks_after_stop: u32,
}

impl<'h, P: EventProgram> RingBlocks<'h, P> {
    /// Calls `stop` before every block and after every wait.
    pub fn new(program: P, stop: &'h dyn Fn() -> bool) -> RingBlocks<'h, P> {
        RingBlocks { program, block: Vec::new(), stop, blocks_after_stop: 0 }
    }

    fn complete(&mut self) -> Option<&[u8]> {
        self.program.write_header(self.block.get_mut(..P::HEADER)?);
        Some(&self.block)
    }
}

impl<P: EventProgram> Blocks for RingBlocks<'_, P> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        loop {
            let stopped = (self.stop)();
            self.blocks_after_stop += u32::from(stopped);
            if self.blocks_after_stop > BLOCKS_AFTER_STOP {
                return Ok(None);
            }
            self.block.clear();
            self.block.resize(P::HEADER, 0);
            if self.program.take(&mut self.block)? {
                return Ok(self.complete());
            }
            if stopped {
                // One more block, without events, carries the last counters.
                self.blocks_after_stop = BLOCKS_AFTER_STOP;
                return Ok(self.complete());
            }
            if self.program.wants_empty_block() {
                return Ok(self.complete());
            }
            self.program.wait(CHECK_INTERVAL_MS)?;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::cell::Cell;

    /// Events that arrive one per check, as long as there are any.
    struct Given {
        left: u32,
        waits: Cell<u32>,
    }

    impl EventProgram for Given {
        const HEADER: usize = 1;

        fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError> {
            let some = self.left > 0;
            self.left -= u32::from(some);
            block.extend(some.then_some(9));
            Ok(some)
        }

        fn write_header(&mut self, header: &mut [u8]) {
            header.fill(7);
        }

        fn wait(&self, _: i32) -> Result<(), SysError> {
            self.waits.set(self.waits.get() + 1);
            Ok(())
        }
    }

    fn read(events: u32, stop: &dyn Fn() -> bool) -> Vec<Vec<u8>> {
        let mut blocks = RingBlocks::new(Given { left: events, waits: Cell::new(0) }, stop);
        let mut found = Vec::new();
        while let Some(block) = blocks.next().unwrap() {
            found.push(block.to_vec());
        }
        found
    }

    #[test]
    fn the_last_block_has_the_counters_and_no_event() {
        let looks = Cell::new(0);
        let stop = || looks.replace(looks.get() + 1) >= 5;
        assert_eq!(read(2, &stop), [vec![7, 9], vec![7, 9], vec![7]]);
    }

    #[test]
    fn a_flood_does_not_delay_the_end() {
        assert_eq!(read(u32::MAX, &|| true).len(), BLOCKS_AFTER_STOP as usize);
    }
}
