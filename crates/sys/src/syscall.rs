//! The one gate through which every system call of this crate goes: counted, and open to faults in tests.
use crate::cost;
use crate::errno::Errno;
use crate::fault;

/// Makes one call; `-1` becomes the errno.
pub(crate) fn call(name: &'static str, make: impl FnOnce() -> i64) -> Result<i64, Errno> {
    cost::count_syscall();
    if let Some(result) = fault::before(name)? {
        return Ok(result);
    }
    let result = make();
    if result < 0 {
        return Err(Errno::last());
    }
    Ok(result)
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
