//! The pid namespace of this process.
use std::path::Path;

use crate::errno::SysError;
use crate::fs;

/// `PID_NS_INIT_INO` (include/uapi/linux/nsfs.h, before 6.18 `PROC_PID_INIT_INO` in include/linux/proc_ns.h).
const FIRST: u64 = 0xEFFF_FFFC;

/// Inode of our pid namespace; `None` if it is the initial one, whose pids are the kernel's own. Fails if /proc is not
/// mounted.
pub fn below_the_first() -> Result<Option<u32>, SysError> {
    let inode = fs::stat(Path::new("/proc/self/ns/pid"))?.inode;
    // The kernel uses 32 bits for it.
    Ok(u32::try_from(inode).ok().filter(|_| inode != FIRST))
}
