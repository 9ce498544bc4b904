//! An open directory of our own, and files in it by name: no other process can redirect a name between two calls.
//!
//! Links are not followed. Files are returned as the standard library's type, for reading and writing at offsets.
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::errno::{Errno, SysError};
use crate::fault;
use crate::fd::Fd;
use crate::fs::{Entries, FileKind, Stat, link_stat_at, stat_fd};
use crate::syscall::{call, retry};

/// An open directory.
#[derive(Debug)]
pub struct Folder(Fd);

impl Folder {
    /// Opens the directory at `path`; a link as its last component is refused (`ENOTDIR`).
    pub fn open(path: &Path) -> Result<Folder, SysError> {
        let name = path.as_os_str().as_bytes();
        let c_name = CString::new(name).map_err(|_| SysError::on_bytes("openat", name, Errno::INVAL))?;
        let fd = open_raw(libc::AT_FDCWD, &c_name, libc::O_RDONLY | libc::O_DIRECTORY, 0);
        fd.map(Folder).map_err(|errno| SysError::on_bytes("openat", name, errno))
    }

    /// Wraps the open directory `dir`.
    pub(crate) fn new(dir: Fd) -> Folder {
        Folder(dir)
    }

    /// Opens the directory `name` in it.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> Result<Folder, SysError> {
        self.open_as(name.as_ref(), libc::O_RDONLY | libc::O_DIRECTORY, 0).map(Folder)
    }

    /// Creates the directory `name` in it, accessible only to its owner; true if it did not exist.
    pub fn make_folder(&self, name: impl AsRef<OsStr>) -> Result<bool, SysError> {
        let name = name.as_ref();
        let c_name = c_name(name)?;
        // SAFETY: `c_name` is a NUL-terminated string that lives through the call.
        match call("mkdirat", || unsafe { libc::mkdirat(self.0.raw(), c_name.as_ptr(), 0o700) }.into()) {
            Ok(_) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(SysError::on_bytes("mkdirat", name.as_bytes(), errno)),
        }
    }

    /// Creates the file `name`, which must not exist, accessible only to its owner; it can be read and written.
    pub fn create(&self, name: &str) -> Result<File, SysError> {
        self.open_as(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 0o600).map(file)
    }

    /// Opens the file `name` for reading and writing; does not wait, whatever type of file it is.
    pub fn file(&self, name: &str) -> Result<File, SysError> {
        self.open_as(name, libc::O_RDWR | libc::O_NONBLOCK, 0).map(file)
    }

    /// Opens `name` itself: fails with `ELOOP` if it is a link.
    pub(crate) fn open_name(&self, name: &CStr, flags: libc::c_int, mode: libc::mode_t) -> Result<Fd, Errno> {
        open_raw(self.0.raw(), name, flags, mode)
    }

    fn open_as(&self, name: impl AsRef<OsStr>, flags: libc::c_int, mode: libc::mode_t) -> Result<Fd, SysError> {
        let name = name.as_ref();
        let failed = |errno| SysError::on_bytes("openat", name.as_bytes(), errno);
        open_raw(self.0.raw(), &c_name(name)?, flags, mode).map_err(failed)
    }

    /// Sets the mode of the file `name`, which must not be a link: chmod(2) would follow it.
    pub(crate) fn set_mode(&self, name: &OsStr, mode: u32) -> Result<(), Errno> {
        let dir = self.0.raw();
        let name = c_name(name).map_err(|error| error.errno)?;
        // SAFETY: `name` is a NUL-terminated string that lives through the call.
        call("fchmodat", || unsafe { libc::fchmodat(dir, name.as_ptr(), mode, 0) }.into()).map(drop)
    }

    /// Removes the file `name`.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Result<(), SysError> {
        let name = name.as_ref().as_bytes();
        let failed = |errno| SysError::on_bytes("unlinkat", name, errno);
        let c_name = CString::new(name).map_err(|_| failed(Errno::INVAL))?;
        // SAFETY: `c_name` is a NUL-terminated string that lives through the call.
        let removed = call("unlinkat", || unsafe { libc::unlinkat(self.0.raw(), c_name.as_ptr(), 0) }.into());
        removed.map(|_| ()).map_err(failed)
    }

    /// Renames the file `name` to `new_name` in one step; an existing file `new_name` is replaced.
    pub fn rename(&self, name: impl AsRef<OsStr>, new_name: impl AsRef<OsStr>) -> Result<(), SysError> {
        let name = name.as_ref();
        let (from, to) = (c_name(name)?, c_name(new_name.as_ref())?);
        let dir = self.0.raw();
        // SAFETY: both are NUL-terminated strings that live through the call.
        let renamed = call("renameat", || unsafe { libc::renameat(dir, from.as_ptr(), dir, to.as_ptr()) }.into());
        renamed.map(|_| ()).map_err(|errno| SysError::on_bytes("renameat", name.as_bytes(), errno))
    }

    /// The names in it, with their kinds; names that are not UTF-8 are escaped. Returns at most `most` names.
    pub fn names(&self, most: usize) -> Result<Vec<(String, FileKind)>, SysError> {
        let dir = self.folder(".")?;
        let failed = |errno| SysError::new("getdents64", "directory", errno);
        let mut entries = Entries::new();
        let mut names = Vec::new();
        while names.len() < most {
            let Some(entry) = entries.next(&dir.0).map_err(failed)? else { break };
            names.push((String::from_utf8_lossy(entry.bytes()).into_owned(), entry.kind));
        }
        Ok(names)
    }

    /// The metadata of `name`; does not follow a link.
    pub fn stat_name(&self, name: &OsStr) -> Result<Stat, SysError> {
        let failed = |errno| SysError::on_bytes("fstatat", name.as_bytes(), errno);
        link_stat_at(&self.0, &c_name(name)?).map_err(failed)
    }

    /// Its type, owner and other metadata.
    pub fn stat(&self) -> Result<Stat, SysError> {
        stat_fd(&self.0).map_err(|errno| SysError::new("fstatat", "directory", errno))
    }

    /// Flushes created and removed names to the disk.
    pub fn sync(&self) -> io::Result<()> {
        // SAFETY: fsync takes an integer.
        call("fsync", || unsafe { libc::fsync(self.0.raw()) }.into()).map(|_| ()).map_err(of_errno)
    }
}

fn file(fd: Fd) -> File {
    File::from(OwnedFd::from(fd))
}

fn c_name(name: impl AsRef<OsStr>) -> Result<CString, SysError> {
    let name = name.as_ref().as_bytes();
    CString::new(name).map_err(|_| SysError::on_bytes("openat", name, Errno::INVAL))
}

fn of_errno(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

fn open_raw(dir: libc::c_int, name: &CStr, flags: libc::c_int, mode: libc::mode_t) -> Result<Fd, Errno> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: `name` is a NUL-terminated string that lives through the call.
    let fd = retry("openat", || unsafe { libc::openat(dir, name.as_ptr(), flags, libc::c_uint::from(mode)) }.into())?;
    // SAFETY: openat just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

/// Writes `parts` one after another at offset `at` of a file with one system call; returns the number of bytes
/// written.
pub fn write_parts<const N: usize>(file: &File, parts: [&[u8]; N], at: u64) -> io::Result<usize> {
    let mut allowed = fault::shorten("pwritev", parts.iter().map(|part| part.len()).sum());
    let slices = parts.map(|part| {
        let part = part.get(..allowed).unwrap_or(part);
        allowed -= part.len();
        IoSlice::new(part)
    });
    let (fd, from, at) = (file.as_raw_fd(), slices.as_ptr().cast::<libc::iovec>(), at as libc::off_t);
    let count = N as libc::c_int;
    // SAFETY: IoSlice has the layout of iovec, as its documentation promises; all `count` of them borrow live bytes.
    let written = retry("pwritev", || unsafe { libc::pwritev(fd, from, count, at) } as i64);
    written.map(|bytes| usize::try_from(bytes).unwrap_or(0)).map_err(of_errno)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fault::{Fault, arm, disarm_all};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn files_are_made_in_it_and_links_are_not_followed() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = Folder::open(tmp.path()).unwrap();
        assert!(folder.make_folder("sub").unwrap() && !folder.make_folder("sub").unwrap());
        let sub = folder.folder("sub").unwrap();
        assert_eq!(sub.stat().unwrap().mode & 0o777, 0o700);
        let made = sub.create("a").unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(sub.create("a").unwrap_err().errno, Errno::EXIST);
        std::os::unix::fs::symlink("a", tmp.path().join("sub/link")).unwrap();
        assert_eq!(sub.file("link").unwrap_err().errno, Errno::LOOP);
        std::os::unix::fs::symlink("sub", tmp.path().join("link")).unwrap();
        assert_eq!(folder.folder("link").unwrap_err().errno, Errno::NOTDIR);
        let mut names = sub.names(10).unwrap();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(names, [("a".to_owned(), FileKind::File), ("link".to_owned(), FileKind::Link)]);
        sub.remove("a").unwrap();
        sub.sync().unwrap();
        assert_eq!(sub.names(10).unwrap().len(), 1);
    }

    #[test]
    fn both_parts_are_written_by_one_call() {
        let tmp = tempfile::tempdir().unwrap();
        let file = Folder::open(tmp.path()).unwrap().create("a").unwrap();
        assert_eq!(write_parts(&file, [b"head", b"body"], 2).unwrap(), 8);
        assert_eq!(std::fs::read(tmp.path().join("a")).unwrap(), b"\0\0headbody");
        arm("pwritev", 0, 1, Fault::Short(5));
        assert_eq!(write_parts(&file, [b"HEAD", b"BODY"], 2).unwrap(), 5);
        arm("pwritev", 0, 1, Fault::Fails(Errno::NOSPC));
        assert_eq!(write_parts(&file, [b"x", b"y"], 0).unwrap_err().raw_os_error(), Some(Errno::NOSPC.0));
        disarm_all();
        assert_eq!(std::fs::read(tmp.path().join("a")).unwrap(), b"\0\0HEADBody");
    }
}
