//! Read-only mappings of kernel memory.
use std::path::Path;
use std::ptr::NonNull;

use crate::errno::{Errno, SysError, escape_bytes};
use crate::fd::Fd;
use crate::fs;
use crate::syscall::call;

/// A read-only mapping. It stays valid after the descriptor that it was created from is closed.
///
/// A program may write to the mapped memory while it runs. Read only memory that no running program writes: wait for
/// `run` to return first. Every byte pattern is a valid `u8`, so a mistake can at worst produce torn values, and the
/// contents are treated like any outside bytes.
#[derive(Debug)]
pub struct MappedMemory {
    start: NonNull<u8>,
    /// Number of bytes that may be read; the mapping itself extends to the end of the page.
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and this one is only read, through `&self`.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    pub(super) fn new(fd: &Fd, bytes: usize, offset: usize) -> Result<MappedMemory, Errno> {
        Ok(MappedMemory { start: map(fd, bytes, offset, libc::PROT_READ, libc::MAP_SHARED)?, bytes })
    }

    /// The mapped memory.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is the start of a readable mapping of at least `bytes` bytes, made in `of` and unmapped only
        // in `drop`. The type's comment explains which writers are possible.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: made by `map` with this length; no slice outlives `self`.
        unsafe { unmap(self.start, self.bytes) }
    }
}

/// Maps a whole file that does not change (the kernel's types, since 6.16). ENODEV if it cannot be mapped.
pub fn map_file(path: &Path) -> Result<MappedMemory, SysError> {
    let name = path.as_os_str().as_encoded_bytes();
    let fd = fs::open(path)?;
    let stat = fs::stat_fd(&fd).map_err(|errno| SysError::on_bytes("fstat", name, errno))?;
    let failed = |errno| SysError::new("mmap", escape_bytes(name), errno);
    let bytes = usize::try_from(stat.size).map_err(|_| failed(Errno::FBIG))?;
    // Any other file could be truncated while it is mapped, and reading it would then raise SIGBUS: these are created
    // at boot.
    if bytes == 0 || bytes > fs::FILE_BYTES_MAX || !path.starts_with("/sys/kernel/btf") {
        return Err(failed(Errno::NODEV));
    }
    // MAP_PRIVATE: the kernel refuses a shared mapping (kernel/bpf/sysfs_btf.c), and no process writes to it anyway.
    let start = map(&fd, bytes, 0, libc::PROT_READ, libc::MAP_PRIVATE).map_err(failed)?;
    crate::syscall::count_read(bytes);
    Ok(MappedMemory { start, bytes })
}

/// A mapping of `bytes` bytes, rounded up to pages.
pub(crate) fn map(
    fd: &Fd,
    bytes: usize,
    offset: usize,
    rights: libc::c_int,
    flags: libc::c_int,
) -> Result<NonNull<u8>, Errno> {
    let offset = libc::off_t::try_from(offset).map_err(|_| Errno::INVAL)?;
    // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory of ours.
    let start =
        call("mmap", || unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, fd.raw(), offset) as i64 })?;
    NonNull::new(start as *mut u8).ok_or(Errno::NOMEM)
}

/// # Safety
/// `start` was returned by [`map`] for the same `bytes`, and nothing refers to the memory any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller guarantees it. It cannot fail for an existing mapping.
    let _ = call("munmap", || unsafe { libc::munmap(start.as_ptr().cast(), bytes) }.into());
}
