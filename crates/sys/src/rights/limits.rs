//! Raises the limits of open files and of locked memory.
use crate::errno::{Errno, SysError};
use crate::syscall::call;

// glibc has its own enum type for it, musl an int.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// Raises this process's soft limit of open files to the hard limit, which needs no privilege; returns the limit.
pub fn use_open_files() -> u64 {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live rlimit64 that the call fills.
    let read = call("prlimit64", || unsafe { libc::getrlimit64(libc::RLIMIT_NOFILE, &raw mut limit) }.into());
    match read.and_then(|_| limit_resource(libc::RLIMIT_NOFILE, limit.rlim_max, limit.rlim_max)) {
        Ok(()) => limit.rlim_max,
        // The current limit, or 0 if it could not be read.
        Err(_) => limit.rlim_cur,
    }
}

/// Removes the limit of locked memory (RLIMIT_MEMLOCK), against which kernels before 5.11 count BPF maps. Needs
/// CAP_SYS_RESOURCE.
pub fn raise_locked_memory() -> Result<(), SysError> {
    limit_resource(libc::RLIMIT_MEMLOCK, libc::RLIM64_INFINITY, libc::RLIM64_INFINITY)
        .map_err(|errno| SysError::new("setrlimit", "limit of locked memory", errno))
}

fn limit_resource(resource: Resource, now: u64, most: u64) -> Result<(), Errno> {
    let limit = libc::rlimit64 { rlim_cur: now, rlim_max: most };
    // SAFETY: `limit` is a live rlimit64 to be read.
    call("prlimit64", || unsafe { libc::setrlimit64(resource, &raw const limit) }.into())?;
    Ok(())
}
