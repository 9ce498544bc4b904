//! The cost of the run itself: system calls made through this crate, bytes read, CPU time, memory.
//!
//! Calls made by the standard library (startup, `std::fs`) are not counted; all calls on the path from the kernel to a
//! row are.
use std::path::Path;

use crate::clock;
use crate::errno::{Errno, SysError};
use crate::fs;
use crate::syscall::{self, call};

/// The resources that this process has used so far.
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
    /// Peak resident memory so far in KiB, from getrusage: a process starts with the memory that its parent had when
    /// it called exec. [`peak_kib`] returns the peak of this program alone.
    pub rss_max_kib: u64,
    /// Monotonic clock when this was measured, in ns; after [`Cost::since`] the time between the two measurements.
    pub at_ns: u64,
}

impl Cost {
    /// The resources used between `earlier` and `self`; the peak memory is that of `self`.
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

/// Measures the cost so far: one getrusage call, one clock reading.
pub fn measure() -> Cost {
    // SAFETY: rusage is a plain struct of integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a live, exclusively borrowed rusage for the kernel to fill. If it does not, it stays zero.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let mut cost = of_usage(&usage);
    (cost.syscalls, cost.bytes_read) = (syscalls(), syscall::bytes_read());
    cost
}

/// Peak resident memory of this program since its exec, KiB (`VmHWM`); `None` if /proc does not report it. Reads one
/// file.
pub fn peak_kib() -> Option<u64> {
    let mut text = Vec::new();
    fs::read_file(Path::new("/proc/self/status"), &mut text).ok()?;
    let line = text.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"VmHWM:"))?;
    std::str::from_utf8(line).ok()?.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Waits for the child `pid` to end and returns its status as wait(2) reports it, with its CPU time and memory. For
/// benches; the system calls and bytes of another process are unknown.
pub fn reap(pid: u32) -> Result<(i32, Cost), SysError> {
    // SAFETY: as in `so_far`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    let waited = loop {
        // SAFETY: both pointers are to live locals of the types that wait4 fills.
        let wait = || unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) }.into();
        match call("wait4", wait) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    waited.map_err(|errno| SysError::new("wait4", format!("process {pid}"), errno))?;
    Ok((status, of_usage(&usage)))
}

fn of_usage(usage: &libc::rusage) -> Cost {
    Cost {
        user_us: microseconds(usage.ru_utime),
        system_us: microseconds(usage.ru_stime),
        rss_max_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
        at_ns: clock::monotonic_ns(),
        ..Cost::default()
    }
}

/// System calls made through this crate so far. No cost.
pub fn syscalls() -> u64 {
    syscall::call_count()
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
        let before = measure();
        let mut into = Vec::new();
        crate::fs::read_file(std::path::Path::new("/proc/self/stat"), &mut into).unwrap();
        let used = measure().since(&before);
        assert!(used.syscalls >= 3, "open, read, close: {used:?}");
        assert!(used.bytes_read >= into.len() as u64);
        assert!(used.rss_max_kib > 0);
    }

    #[test]
    fn the_own_peak_is_that_of_proc() {
        let heap = vec![1u8; 64 << 20];
        assert!(peak_kib().unwrap() >= (heap.len() >> 10) as u64);
    }

    #[test]
    fn a_child_is_reaped_with_its_cost() {
        // `reap` performs the wait that the lint misses here.
        #[allow(clippy::zombie_processes)]
        let child = std::process::Command::new("true").spawn().unwrap();
        let (status, cost) = reap(child.id()).unwrap();
        assert_eq!(status, 0);
        assert!(cost.rss_max_kib > 0);
        assert_eq!(reap(child.id()).unwrap_err().errno, Errno(libc::ECHILD));
    }
}
