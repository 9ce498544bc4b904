//! How much of a busy processor this process gets.
use crate::errno::{Errno, SysError};

/// A tenth of what others get: nice value 10 (setpriority(2)). One system call.
pub fn lower() -> Result<(), SysError> {
    set(10)
}

/// The last priority: nice value 19. One system call.
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
