//! The scheduling priority of this process.
use crate::errno::{Errno, SysError};

/// Sets nice value 10 (setpriority(2)), which leaves this process a tenth of the CPU time of others. One system call.
pub fn lower() -> Result<(), SysError> {
    set(10)
}

/// Sets the lowest priority: nice value 19. One system call.
pub fn lowest() -> Result<(), SysError> {
    set(19)
}

fn set(nice: libc::c_int) -> Result<(), SysError> {
    // SAFETY: takes integers only.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if done == 0 {
        return Ok(());
    }
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Err(SysError::new("setpriority", "own nice value", Errno(errno)))
}
