//! The one system call that the bench needs and nobody else has: wait4.
//!
//! Here and not in `sys`: weighing other programs is no part of the product.
#![allow(unsafe_code)]

use std::io::{Error, ErrorKind, Result};

/// What a finished process has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// As waitpid gives it: 0 is success.
    pub(super) status: i32,
    pub(super) user_us: u64,
    pub(super) system_us: u64,
    /// Largest resident set.
    pub(super) rss_kib: u64,
}

/// Waits for the child `pid` and takes stock of it.
pub(super) fn wait(pid: u32) -> Result<Usage> {
    // SAFETY: rusage is a plain struct of integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: both pointers are to live locals of the types that wait4 fills.
    while unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) } < 0 {
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let (user_us, system_us) = (micros(usage.ru_utime), micros(usage.ru_stime));
    Ok(Usage { status, user_us, system_us, rss_kib: usage.ru_maxrss as u64 })
}
