//! The memory shared by the kernel and the reader.
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::errno::Errno;
use crate::fd::Fd;
use crate::syscall::call;

/// A ring's memory. Every access is bounds-checked; the contents are treated like any outside bytes.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; it is read and changed only through its single owner.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of the socket's ring.
    pub(super) fn new(fd: &Fd, bytes: usize) -> Result<Mapping, Errno> {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory of ours.
        let start =
            call("mmap", || unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, fd.raw(), 0) as i64 })?;
        Ok(Mapping { start: NonNull::new(start as *mut u8).ok_or(Errno::NOMEM)?, bytes })
    }

    /// The word at offset `at` that records who owns a frame or a block; `None` beyond the end, or if not aligned.
    #[inline]
    pub(super) fn status(&self, at: usize) -> Option<&AtomicU32> {
        if at % 4 != 0 || at.checked_add(4)? > self.bytes {
            return None;
        }
        // SAFETY: the four bytes lie in the mapping (checked above), which begins at a page and is readable and
        // writable as long as `self`; `at` is aligned. The kernel and we access this word atomically only.
        Some(unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) })
    }

    /// `len` bytes at offset `at`; `None` unless all of them are in the mapping.
    ///
    /// Call it only for memory that the kernel has handed over (its status word was read with acquire) and that was
    /// not returned since then: the kernel does not write there during that time.
    #[inline]
    pub(super) fn bytes(&self, at: usize, len: usize) -> Option<&[u8]> {
        if at.checked_add(len)? > self.bytes {
            return None;
        }
        // SAFETY: in the mapping, as just checked. The caller reads only memory that the kernel has handed over; every
        // byte pattern is a `u8`, so a kernel that wrote there nevertheless would only cause torn values.
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), len) })
    }

    /// Prefetches `len` bytes from `at`, which another processor wrote. Ignores bytes beyond the end.
    #[inline]
    pub(super) fn fetch_ahead(&self, at: usize, len: usize) {
        if at.checked_add(len).is_none_or(|end| end > self.bytes) {
            return;
        }
        (at..at + len).step_by(LINE).for_each(|line| fetch_line(self.start.as_ptr().wrapping_add(line)));
    }

    /// Does what [`Mapping::bytes`] does, for writing.
    #[inline]
    pub(super) fn bytes_mut(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        if at.checked_add(len)? > self.bytes {
            return None;
        }
        // SAFETY: as in `bytes`; `self` is borrowed exclusively, so no other slice of ours exists.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), len) })
    }
}

/// Size of a cache line in bytes.
pub(super) const LINE: usize = 64;

/// Prefetches these bytes of `memory`, which another processor wrote. Ignores bytes beyond the end.
#[inline]
pub(super) fn fetch(memory: &[u8], bytes: Range<usize>) {
    let lines = (bytes.start..bytes.end.min(memory.len())).step_by(LINE);
    lines.for_each(|line| fetch_line(memory.as_ptr().wrapping_add(line)));
}

#[inline]
fn fetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch loads nothing into the program, and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `of` with this length; no slice outlives `self`. It cannot fail for an existing mapping.
        let _ = call("munmap", || unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) }.into());
    }
}

/// The four bytes at `at`; 0 beyond the end.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The two bytes at `at`; 0 beyond the end.
#[inline]
pub(super) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|half| half.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets come from packet headers, so they may be beyond the end.
    #[test]
    fn nothing_beyond_the_end_is_fetched() {
        let memory = [0; 200];
        for bytes in [0..200, 190..usize::MAX, 200..300, 500..600, usize::MAX..usize::MAX, Range { start: 9, end: 3 }] {
            fetch(&memory, bytes);
        }
    }
}
