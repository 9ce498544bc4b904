//! The one gate through which every system call of this crate goes: counted, and open to faults in tests.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::errno::Errno;
use crate::fault;

// Relaxed: no other memory depends on these numbers, they are only shown. One locked add is about 5 ns beside a system
// call of 100 ns and more.
static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES_READ: AtomicU64 = AtomicU64::new(0);

/// Makes one call; `-1` becomes the errno.
pub(crate) fn call(name: &'static str, make: impl FnOnce() -> i64) -> Result<i64, Errno> {
    count();
    if let Some(result) = fault::before(name)? {
        return Ok(result);
    }
    let result = make();
    if result < 0 {
        return Err(Errno::last());
    }
    Ok(result)
}

/// Counts a system call that does not go through [`call`].
pub(crate) fn count() {
    CALLS.fetch_add(1, Relaxed);
}

/// Counts bytes that came from the kernel or from a file.
pub(crate) fn count_read(bytes: usize) {
    BYTES_READ.fetch_add(bytes as u64, Relaxed);
}

/// System calls counted so far.
pub(crate) fn calls() -> u64 {
    CALLS.load(Relaxed)
}

/// Bytes counted so far.
pub(crate) fn bytes_read() -> u64 {
    BYTES_READ.load(Relaxed)
}

/// The same, made again as long as a signal interrupts it. For calls that end soon by themselves.
pub(crate) fn retried(name: &'static str, mut make: impl FnMut() -> i64) -> Result<i64, Errno> {
    loop {
        match call(name, &mut make) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// A byte count that the kernel gave, never more than it was allowed to fill.
pub(crate) fn length(result: i64, limit: usize) -> usize {
    usize::try_from(result).unwrap_or(0).min(limit)
}
