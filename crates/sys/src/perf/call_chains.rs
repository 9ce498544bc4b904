//! Call chains of samples, in a ring that the kernel fills and this process empties (kernel/events/ring_buffer.c).
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cpu_clock::CpuClock;
use crate::bpf::mapped::{map, unmap};
use crate::errno::SysError;
use crate::fd::Fd;
use crate::kernel::page_bytes;

/// `PERF_SAMPLE_CALLCHAIN`
const WITH_CHAIN: u64 = 1 << 5;
/// Record types: `PERF_RECORD_LOST`, `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// Offsets in `struct perf_event_mmap_page`.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;
/// Number of data pages: a power of two.
const PAGES: usize = 64;
/// Addresses from here on are not code but markers between the parts of a chain (`PERF_CONTEXT_MAX`).
const MARKS: u64 = -4095_i64 as u64;

/// The timer of one CPU, with a ring of the call chains of its samples.
#[derive(Debug)]
pub struct CallChains {
    clock: CpuClock,
    start: NonNull<u8>,
    page: usize,
    /// The chain being handed out.
    chain: Vec<u64>,
}

/// Samples lost between the kernel and the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainLoss {
    /// Samples lost because the ring was full.
    pub full: u64,
    /// True if a malformed record ended the reading.
    pub is_broken: bool,
}

impl CallChains {
    /// Opens the timer and ring of `cpu`, not started; see [`CpuClock::open`]. Takes 260 KiB of memory, which count
    /// against kernel.perf_event_mlock_kb.
    pub fn open(cpu: u32, hz: u32, depth: u16) -> Result<CallChains, SysError> {
        let (clock, page) = (CpuClock::open_with(cpu, hz, WITH_CHAIN, depth)?, page_bytes());
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let start = map(clock.fd(), page * (1 + PAGES), 0, rights, flags);
        let start = start.map_err(|errno| SysError::new("mmap", format!("samples of CPU {cpu}"), errno))?;
        Ok(CallChains { clock, start, page, chain: Vec::new() })
    }

    /// The timer.
    pub fn clock(&self) -> &CpuClock {
        &self.clock
    }

    /// Passes the call chain of each waiting sample to `each`, innermost function first; the chain is empty for a
    /// sample in user space. Makes no system call.
    pub fn take(&mut self, each: &mut dyn FnMut(&[u64])) -> ChainLoss {
        let mut loss = ChainLoss::default();
        // Acquire: everything that the kernel wrote before it advanced its position is visible after this.
        let head = self.control(HEAD_AT).load(Ordering::Acquire);
        let mut at = self.control(TAIL_AT).load(Ordering::Relaxed);
        while at < head {
            let word = self.word(at);
            // struct perf_event_header: u32 type, u16 misc, u16 size.
            let (kind, bytes) = (word as u32, word >> 48);
            let next = at + bytes;
            if bytes < 8 || bytes % 8 != 0 || next > head {
                loss.is_broken = true;
                at = head;
                break;
            }
            match kind {
                SAMPLE => {
                    let frames = self.word(at + 8).min((bytes / 8).saturating_sub(2));
                    let mut chain = std::mem::take(&mut self.chain);
                    chain.clear();
                    chain.extend((0..frames).map(|n| self.word(at + 16 + n * 8)).filter(|frame| *frame < MARKS));
                    each(&chain);
                    self.chain = chain;
                }
                LOST if bytes >= 24 => loss.full += self.word(at + 16),
                _ => {}
            }
            at = next;
        }
        // Release: our reads happen before the space is released.
        self.control(TAIL_AT).store(at, Ordering::Release);
        loss
    }

    fn control(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is one of two aligned words of the first page, which is mapped for reading and writing as long
        // as `self` and shared with the kernel by atomic accesses only.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// The word at a position of the ring. Records consist of whole words, and one may wrap around the end.
    fn word(&self, at: u64) -> u64 {
        let offset = at as usize & (self.page * PAGES - 8);
        // SAFETY: `offset` is a multiple of 8 below the size of the data pages, which follow the first page; they are
        // mapped as long as `self`. The kernel may write there concurrently, hence an atomic load; any bits are a u64.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(self.page + offset).cast()) }.load(Ordering::Relaxed)
    }

    /// The descriptor, for polling.
    pub fn fd(&self) -> &Fd {
        self.clock.fd()
    }
}

impl Drop for CallChains {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `open`; nothing borrowed outlives `self`.
        unsafe { unmap(self.start, self.page * (1 + PAGES)) }
    }
}

// SAFETY: the mapping belongs to the process; it is read and changed only through its single owner.
unsafe impl Send for CallChains {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::errno::Errno;
    use crate::host::Host;
    use testkit::root::root_or_skip;

    #[test]
    fn root_a_busy_cpu_has_call_chains() {
        if !root_or_skip("samples of CPUs") {
            return;
        }
        let cpus = super::super::online_cpus(&Host::live()).unwrap();
        let mut rings: Vec<CallChains> = cpus.iter().map(|cpu| CallChains::open(*cpu, 999, 64).unwrap()).collect();
        rings.iter().for_each(|ring| ring.clock().start().unwrap());
        let (mut samples, mut frames) = (0, 0);
        while samples < 50 || frames == 0 {
            for ring in &mut rings {
                let loss = ring.take(&mut |chain| {
                    samples += 1;
                    frames += chain.len();
                    assert!(chain.len() <= 64 && chain.iter().all(|frame| frame >> 63 == 1), "{chain:x?}");
                });
                assert!(!loss.is_broken);
            }
        }
        assert_eq!(CpuClock::open(60_000, 99).unwrap_err().errno, Errno::INVAL);
    }
}
