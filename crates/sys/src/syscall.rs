//! The single gate for every system call of this crate: calls are counted, and tests can inject faults.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::errno::Errno;
use crate::fault;

// Relaxed: no other memory depends on these numbers, they are only displayed. One locked add takes about 5 ns,
// compared with 100 ns or more for a system call.
static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES_READ: AtomicU64 = AtomicU64::new(0);

/// Makes a system call; `-1` becomes the errno.
pub(crate) fn call(name: &'static str, make: impl FnOnce() -> i64) -> Result<i64, Errno> {
    count();
    if let Some(result) = fault::take_result(name)? {
        return Ok(result);
    }
    let result = make();
    if result < 0 {
        return Err(Errno::last_error());
    }
    Ok(result)
}

/// Counts a system call that does not go through [`call`].
pub(crate) fn count() {
    CALLS.fetch_add(1, Relaxed);
}

/// Counts bytes read from the kernel or from a file.
pub(crate) fn count_read(bytes: usize) {
    BYTES_READ.fetch_add(bytes as u64, Relaxed);
}

/// System calls counted so far.
pub(crate) fn call_count() -> u64 {
    CALLS.load(Relaxed)
}

/// Bytes counted so far.
pub(crate) fn bytes_read() -> u64 {
    BYTES_READ.load(Relaxed)
}

/// Makes a system call and repeats it as long as a signal interrupts it. For calls that end soon on their own.
pub(crate) fn retry(name: &'static str, mut make: impl FnMut() -> i64) -> Result<i64, Errno> {
    loop {
        match call(name, &mut make) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// A byte count that the kernel returned, limited to the size that it was allowed to fill.
pub(crate) fn length(result: i64, limit: usize) -> usize {
    usize::try_from(result).unwrap_or(0).min(limit)
}
