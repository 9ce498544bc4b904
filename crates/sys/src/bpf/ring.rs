//! The reading end of a BPF ring buffer map.
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::mapped::{map, unmap};
use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::kernel::page_bytes;
use crate::syscall::call;

/// `BPF_RINGBUF_BUSY_BIT`: the program is still writing this record.
const BUSY: u32 = 1 << 31;
/// `BPF_RINGBUF_DISCARD_BIT`: the program discarded the record.
const DISCARD: u32 = 1 << 30;
/// `BPF_RINGBUF_HDR_SZ`: length and flags u32, page offset u32.
const HEADER_BYTES: u64 = 8;
/// Space is released in pieces of this many bytes, or of an eighth of a small ring.
const PIECE_MAX: u64 = 16 << 10;

/// A ring that BPF programs fill and this process empties (kernel/bpf/ringbuf.c).
///
/// Page 0 holds our position and is the only page that we write; page 1 holds theirs. The data pages follow, mapped
/// twice in a row, so that a record that wraps around the end is contiguous.
#[derive(Debug)]
pub struct Ring {
    fd: Fd,
    ours: NonNull<u8>,
    theirs: NonNull<u8>,
    page: usize,
    data_bytes: usize,
}

// SAFETY: mappings belong to the process; positions are atomics; records are handed out only under `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) fn new(map_fd: &Fd, data_bytes: usize) -> Result<Ring, Errno> {
        let fd = duplicate(map_fd)?;
        let page = page_bytes();
        let ours = map(&fd, page, 0, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
        let theirs = map(&fd, page + 2 * data_bytes, page, libc::PROT_READ, libc::MAP_SHARED).inspect_err(|_| {
            // SAFETY: `ours` was mapped with this length just above and is not used yet.
            unsafe { unmap(ours, page) }
        })?;
        Ok(Ring { fd, ours, theirs, page, data_bytes })
    }

    /// Waits until a program wakes us or `timeout_ms` expires (-1: no limit); true if there may be records to
    /// [`Ring::consume`]. A signal ends the wait with false. A program that writes with `BPF_RB_NO_WAKEUP` does not
    /// end the wait.
    pub fn wait(&self, timeout_ms: i32) -> Result<bool, SysError> {
        let mut poll = libc::pollfd { fd: self.fd.raw(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        match call("poll", || unsafe { libc::poll(&raw mut poll, 1, timeout_ms) }.into()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(SysError::new("poll", "BPF ring", errno)),
        }
    }

    /// Hands out all complete records, oldest first; returns their number. Makes no system call.
    ///
    /// Their space is released in pieces: programs read our position for every record that they write, and each change
    /// of it costs them a cache miss.
    pub fn consume(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<u64, SysError> {
        let mut ours = self.our_position().load(Ordering::Relaxed);
        let result = self.hand_out(&mut ours, each);
        self.release(ours);
        result
    }

    // Release: our reads of the records before `ours` happen before their space is released.
    fn release(&self, ours: u64) {
        self.our_position().store(ours, Ordering::Release);
    }

    fn hand_out(&self, at: &mut u64, each: &mut dyn FnMut(&[u8])) -> Result<u64, SysError> {
        let piece = (self.data_bytes as u64 / 8).min(PIECE_MAX);
        let (mut ours, mut given_back, mut records) = (*at, *at, 0);
        loop {
            // Acquire: everything that a program wrote before it advanced its position is visible after this.
            let theirs = self.their_position().load(Ordering::Acquire);
            if ours >= theirs {
                return Ok(records);
            }
            let head = self.head(ours).load(Ordering::Acquire);
            if head & BUSY != 0 {
                return Ok(records);
            }
            let bytes = (head & !(BUSY | DISCARD)) as usize;
            let next = ours + (HEADER_BYTES + bytes as u64).next_multiple_of(8);
            // The kernel cannot have written this; trusting it would read beyond the mapping.
            if next > theirs || bytes > self.data_bytes {
                return Err(SysError::new("read", "BPF ring", Errno::IO));
            }
            if head & DISCARD == 0 {
                records += 1;
                each(self.data(ours + HEADER_BYTES, bytes));
            }
            ours = next;
            *at = ours;
            if ours - given_back >= piece {
                self.release(ours);
                given_back = ours;
            }
        }
    }

    /// Number of bytes waiting to be consumed.
    pub fn waiting_bytes(&self) -> u64 {
        self.their_position().load(Ordering::Acquire).saturating_sub(self.our_position().load(Ordering::Relaxed))
    }

    fn our_position(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped for reading and writing as long as `self`, aligned, and shared with the kernel
        // by atomic accesses only.
        unsafe { AtomicU64::from_ptr(self.ours.as_ptr().cast()) }
    }

    fn their_position(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped as long as `self` and aligned. It is only loaded from, because it is read-only.
        unsafe { AtomicU64::from_ptr(self.theirs.as_ptr().cast()) }
    }

    // Length and flags of the record at `position`.
    fn head(&self, position: u64) -> &AtomicU32 {
        // SAFETY: the address lies in the data pages (see `place`); records are aligned to 8. Only loaded from.
        unsafe { AtomicU32::from_ptr(self.pointer_to(position).cast()) }
    }

    fn data(&self, position: u64, bytes: usize) -> &[u8] {
        // SAFETY: `place` lies in the first copy of the data pages and `consume` has checked that `bytes` is at most
        // the size of one copy, so the second copy holds the rest. The record is complete (BUSY was clear, read with
        // acquire), and no program overwrites it before our position advances, which `release` does after the last
        // use.
        unsafe { std::slice::from_raw_parts(self.pointer_to(position), bytes) }
    }

    // Address of the ring's byte `position`, always in the first copy of the data.
    fn pointer_to(&self, position: u64) -> *mut u8 {
        let offset = self.page + (position as usize & (self.data_bytes - 1));
        // SAFETY: `data_bytes` is a power of two (checked by Map::ring), so `offset` is below page + data_bytes,
        // inside the mapping of page + 2 * data_bytes.
        unsafe { self.theirs.as_ptr().add(offset) }
    }
}

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.raw()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these lengths in `of`; no record outlives `consume`.
        unsafe {
            unmap(self.ours, self.page);
            unmap(self.theirs, self.page + 2 * self.data_bytes);
        }
    }
}

// The ring keeps a descriptor of its map for polling.
fn duplicate(fd: &Fd) -> Result<Fd, Errno> {
    // SAFETY: takes integers.
    let copy = call("fcntl", || unsafe { libc::fcntl(fd.raw(), libc::F_DUPFD_CLOEXEC, 3) }.into())?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(copy) })
}
