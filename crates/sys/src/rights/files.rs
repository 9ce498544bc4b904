//! Restricts the files that may be opened: Landlock (since Linux 5.13; Documentation/userspace-api/landlock.rst).
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::is_missing;
use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::syscall::call;

/// System call numbers, the same on every architecture.
const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;

// include/uapi/linux/landlock.h
const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_REGULAR: u64 = 1 << 8;
const MAKE_BLOCK: u64 = 1 << 11;
/// Since version 3 of the interface.
const TRUNCATE: u64 = 1 << 14;
/// Pairs of an interface version and the number of access types that it knows: those for files; newer ones follow at
/// the end.
const KINDS: [(u32, u32); 4] = [(1, 13), (2, 14), (3, 15), (5, 16)];
/// Size of `struct landlock_ruleset_attr` in version 1: the access types that are denied without a rule.
const RULESET_BYTES: usize = 8;

/// Directories that may still be accessed, with everything below them.
#[derive(Debug, Default, Clone, Copy)]
pub struct FileRules<'r> {
    /// Directories whose contents may be read.
    pub readable: &'r [&'r Path],
    /// Directories whose contents may be read, written, created and removed.
    pub writable: &'r [&'r Path],
    /// Directories in which regular files may be created, written and removed, but not read.
    pub makeable: &'r [&'r Path],
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// From now on the calling thread can open only files that the rules allow; open files stay open. Returns the version
/// of the kernel's interface, or `None` if the kernel lacks it. Needs [`super::forbid_new`].
pub fn restrict_files(rules: &FileRules<'_>) -> Result<Option<u32>, SysError> {
    let failed = |errno| SysError::new("landlock_restrict_self", "file access", errno);
    let version = match version() {
        Ok(version) => version,
        Err(errno) if is_missing(errno) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    };
    let known = KINDS.iter().rev().find(|(since, _)| *since <= version).map_or(13, |(_, kinds)| *kinds);
    let handled = (1u64 << known) - 1;
    let ruleset = ruleset(handled).map_err(failed)?;
    let writes = handled & !(EXECUTE | MAKE_CHAR | MAKE_BLOCK);
    let readable = rules.readable.iter().map(|path| (path, READ_FILE | READ_DIR));
    let makes = handled & (WRITE_FILE | MAKE_REGULAR | REMOVE_FILE | TRUNCATE);
    let writable = rules.writable.iter().map(|path| (path, writes));
    let makeable = rules.makeable.iter().map(|path| (path, makes));
    for (path, allowed) in readable.chain(writable).chain(makeable) {
        let failed = |errno| SysError::on_bytes("landlock_add_rule", path.as_os_str().as_bytes(), errno);
        let place = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path);
        let place = place.map_err(|error| failed(Errno(error.raw_os_error().unwrap_or(libc::EIO))))?;
        add(&ruleset, &place, allowed).map_err(failed)?;
    }
    // SAFETY: takes a descriptor and flags.
    call("landlock_restrict_self", || unsafe { libc::syscall(RESTRICT_SELF, ruleset.raw(), 0) } as i64)
        .map_err(failed)?;
    Ok(Some(version))
}

fn version() -> Result<u32, Errno> {
    let none = std::ptr::null::<u8>();
    // SAFETY: with this flag the kernel reads nothing and returns the version of its interface.
    let version = call("landlock_create_ruleset", || unsafe {
        libc::syscall(CREATE_RULESET, none, 0usize, CREATE_RULESET_VERSION)
    })?;
    Ok(u32::try_from(version).unwrap_or(0))
}

fn ruleset(handled: u64) -> Result<Fd, Errno> {
    // SAFETY: the pointer is to 8 live bytes, as the size says.
    let fd = call("landlock_create_ruleset", || unsafe {
        libc::syscall(CREATE_RULESET, &raw const handled, RULESET_BYTES, 0u32)
    })?;
    // SAFETY: the call just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

fn add(ruleset: &Fd, parent: &File, allowed: u64) -> Result<(), Errno> {
    let rule = PathBeneath { allowed, parent: parent.as_raw_fd() };
    // SAFETY: the pointer is to a live `struct landlock_path_beneath_attr`, which is packed.
    call("landlock_add_rule", || unsafe {
        libc::syscall(ADD_RULE, ruleset.raw(), RULE_PATH_BENEATH, &raw const rule, 0u32)
    })?;
    Ok(())
}
