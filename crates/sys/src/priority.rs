//! How much of a busy processor this process gets.
use crate::errno::{Errno, SysError};

/// The least: nice value 19 (setpriority(2)). One system call.
pub fn lower_to_last() -> Result<(), SysError> {
    // SAFETY: takes integers only.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    if done == 0 {
        return Ok(());
    }
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    Err(SysError::new("setpriority", "own nice value", Errno(errno)))
}
