//! What the run itself cost: system calls made through this crate, bytes read, CPU, memory.
//!
//! Calls made by the standard library (starting up, `std::fs`) are not seen here; everything on
//! the way from the kernel to a row is.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock;

// Relaxed: nothing is ordered by these numbers, they are only shown. One locked add is about
// 5 ns beside a system call of 100 ns and more.
static SYSCALLS: AtomicU64 = AtomicU64::new(0);
static BYTES_READ: AtomicU64 = AtomicU64::new(0);

/// What this process has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// System calls made through this crate.
    pub syscalls: u64,
    /// Bytes read from the kernel or from files through this crate.
    pub bytes_read: u64,
    /// CPU time in user mode, µs.
    pub user_us: u64,
    /// CPU time in the kernel, µs.
    pub system_us: u64,
    /// Largest resident memory so far, KiB.
    pub rss_max_kib: u64,
    /// Monotonic clock when this was taken, ns; the time between the two after [`Cost::since`].
    pub at_ns: u64,
}

impl Cost {
    /// What was used between `earlier` and `self`; the peak memory stays that of `self`.
    pub fn since(&self, earlier: &Cost) -> Cost {
        Cost {
            syscalls: self.syscalls.saturating_sub(earlier.syscalls),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
            rss_max_kib: self.rss_max_kib,
            at_ns: self.at_ns.saturating_sub(earlier.at_ns),
        }
    }
}

/// Takes stock: one getrusage, one clock read.
pub fn so_far() -> Cost {
    let mut cost = Cost { at_ns: clock::monotonic_ns(), ..Cost::default() };
    // SAFETY: rusage is a plain struct of integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a live, exclusively borrowed rusage for the kernel to fill.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } == 0 {
        cost.user_us = microseconds(usage.ru_utime);
        cost.system_us = microseconds(usage.ru_stime);
        cost.rss_max_kib = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    }
    cost.syscalls = syscalls();
    cost.bytes_read = BYTES_READ.load(Relaxed);
    cost
}

/// System calls made through this crate so far. Free.
pub fn syscalls() -> u64 {
    SYSCALLS.load(Relaxed)
}

pub(crate) fn count_syscall() {
    SYSCALLS.fetch_add(1, Relaxed);
}

pub(crate) fn count_read(bytes: usize) {
    BYTES_READ.fetch_add(bytes as u64, Relaxed);
}

fn microseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(u64::try_from(time.tv_usec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_file_read_is_counted() {
        let before = so_far();
        let mut into = Vec::new();
        crate::fs::read_file(std::path::Path::new("/proc/self/stat"), &mut into).unwrap();
        let used = so_far().since(&before);
        assert!(used.syscalls >= 3, "open, read, close: {used:?}");
        assert!(used.bytes_read >= into.len() as u64);
        assert!(used.rss_max_kib > 0);
    }
}
