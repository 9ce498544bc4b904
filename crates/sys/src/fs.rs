//! Files and directories, designed for reading /proc: names as bytes, reused buffers, no allocation per entry.
//!
//! The `*_at` functions return a bare [`Errno`]: they run once per process or per descriptor, where most failures (a
//! process that ended, a missing right) are only counted.
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::blocks::Blocks;
use crate::errno::{Errno, SysError, escape_bytes};
use crate::fault;
use crate::fd::Fd;
use crate::syscall::{call, count_read, length, retry};

/// O_NONBLOCK: opening a FIFO for writing fails if no process reads it, and no write waits (open(2)).
pub const NONBLOCK: i32 = libc::O_NONBLOCK;

/// Maximum number of bytes that [`read_file`] reads from one file. The /proc and /etc files that we read whole are far
/// smaller; the bound prevents an endless file from using up the memory.
///
/// Bound: bytes of a file of /proc or /etc. Beyond: the rest is not read. By: root; the owner of a process.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// getdents64 fills at most this much per call; 32 KiB hold about 1,300 numeric names.
const DIRENT_BYTES: usize = 32 << 10;

/// Fixed head of `struct linux_dirent64` (include/linux/dirent.h): ino u64, off s64, reclen u16, type u8.
const DIRENT_HEAD: usize = 19;

/// Opens a file for reading (close-on-exec). One system call.
pub fn open(path: &Path) -> Result<Fd, SysError> {
    let name = path.as_os_str().as_bytes();
    let c_name = CString::new(name).map_err(|_| SysError::on_bytes("openat", name, Errno::INVAL))?;
    open_raw(libc::AT_FDCWD, &c_name, libc::O_RDONLY).map_err(|errno| SysError::on_bytes("openat", name, errno))
}

/// Opens a file for reading without waiting for a FIFO's writer: reads may fail with EAGAIN. Costs one system call.
pub(crate) fn open_without_waiting(path: &Path) -> Result<Fd, SysError> {
    let name = path.as_os_str().as_bytes();
    let c_name = CString::new(name).map_err(|_| SysError::on_bytes("openat", name, Errno::INVAL))?;
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
    open_raw(libc::AT_FDCWD, &c_name, flags).map_err(|errno| SysError::on_bytes("openat", name, errno))
}

/// Returns a reference to the file at `path`, following links, without opening it: no driver, FIFO or FUSE daemon
/// notices. It can be opened later through /proc/self/fd. Costs one system call.
pub(crate) fn refer_to(path: &Path) -> Result<Fd, SysError> {
    let name = path.as_os_str().as_bytes();
    let c_name = CString::new(name).map_err(|_| SysError::on_bytes("openat", name, Errno::INVAL))?;
    open_raw(libc::AT_FDCWD, &c_name, libc::O_PATH).map_err(|errno| SysError::on_bytes("openat", name, errno))
}

/// Fails if this process may not write to the file or directory. One system call.
pub fn may_write(path: &Path) -> Result<(), SysError> {
    let name = path.as_os_str().as_bytes();
    let failed = |errno| SysError::on_bytes("faccessat", name, errno);
    let c_name = CString::new(name).map_err(|_| failed(Errno::INVAL))?;
    let (place, flags) = (libc::AT_FDCWD, libc::AT_EACCESS);
    // SAFETY: `c_name` is a live string that ends with a zero byte.
    call("faccessat", || unsafe { libc::faccessat(place, c_name.as_ptr(), libc::W_OK, flags) }.into())
        .map_err(failed)?;
    Ok(())
}

/// Opens a directory for [`Entries`] and the `*_at` functions.
pub fn open_dir(path: &Path) -> Result<Fd, SysError> {
    let name = path.as_os_str().as_bytes();
    let c_name = CString::new(name).map_err(|_| SysError::on_bytes("openat", name, Errno::INVAL))?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    open_raw(libc::AT_FDCWD, &c_name, flags).map_err(|errno| SysError::on_bytes("openat", name, errno))
}

/// Opens a file below `dir` for reading.
pub fn open_at(dir: &Fd, name: &CStr) -> Result<Fd, Errno> {
    open_raw(dir.raw(), name, libc::O_RDONLY)
}

/// Opens a directory below `dir`.
pub fn open_dir_at(dir: &Fd, name: &CStr) -> Result<Fd, Errno> {
    open_raw(dir.raw(), name, libc::O_RDONLY | libc::O_DIRECTORY)
}

fn open_raw(dir: libc::c_int, name: &CStr, flags: libc::c_int) -> Result<Fd, Errno> {
    // SAFETY: `name` is a NUL-terminated string that lives through the call.
    let fd = retry("openat", || unsafe { libc::openat(dir, name.as_ptr(), flags | libc::O_CLOEXEC) }.into())?;
    // SAFETY: openat just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

/// Reads once into `into`; 0 is the end of the file.
pub fn read(fd: &Fd, into: &mut [u8]) -> Result<usize, Errno> {
    let most = fault::shorten("read", into.len());
    // SAFETY: `into` is exclusively borrowed and at least `most` bytes long.
    let got = retry("read", || unsafe { libc::read(fd.raw(), into.as_mut_ptr().cast(), most) } as i64)?;
    let got = length(got, most);
    count_read(got);
    Ok(got)
}

/// Reads at an offset in the file without moving its position; 0 means at or beyond the end.
pub fn read_at(fd: &Fd, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let most = fault::shorten("pread64", into.len());
    let offset = libc::off_t::try_from(offset).map_err(|_| Errno::INVAL)?;
    // SAFETY: `into` is exclusively borrowed and at least `most` bytes long.
    let got = retry("pread64", || unsafe { libc::pread(fd.raw(), into.as_mut_ptr().cast(), most, offset) } as i64)?;
    let got = length(got, most);
    count_read(got);
    Ok(got)
}

/// Appends the result of one read, at most `most` bytes, to `into`; 0 is the end.
///
/// The new bytes are not zeroed first, so a large `most` costs only the bytes that the kernel fills.
pub fn read_append(fd: &Fd, into: &mut Vec<u8>, most: usize) -> Result<usize, Errno> {
    into.reserve(most);
    let room = into.spare_capacity_mut();
    let most = fault::shorten("read", most.min(room.len()));
    // SAFETY: `room` is unused capacity of the Vec, at least `most` bytes, exclusively borrowed.
    let got = retry("read", || unsafe { libc::read(fd.raw(), room.as_mut_ptr().cast(), most) } as i64)?;
    let got = length(got, most);
    // SAFETY: read has initialised the first `got` bytes after the old length, and `got <= most <= spare capacity`.
    unsafe { into.set_len(into.len() + got) };
    count_read(got);
    Ok(got)
}

/// Replaces `into` with the contents of an open file. Fails with EFBIG beyond [`FILE_BYTES_MAX`].
pub fn read_all(fd: &Fd, into: &mut Vec<u8>) -> Result<(), Errno> {
    into.clear();
    // Most files of /proc are smaller than one page, and seq_file returns one page per read: start small, then use the
    // capacity of the growing buffer.
    let mut step = 4096;
    while read_append(fd, into, step)? > 0 {
        if into.len() >= FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        step = into.capacity().saturating_sub(into.len()).max(4096);
    }
    Ok(())
}

/// Replaces `into` with the contents of the file at `path`. Open, two or more reads, close.
pub fn read_file(path: &Path, into: &mut Vec<u8>) -> Result<(), SysError> {
    read_opened(path, into).map(drop)
}

/// The name of the host, or of the container (its UTS namespace); empty if it cannot be read.
pub fn host_name() -> Vec<u8> {
    let mut name = Vec::new();
    let _ = read_file(Path::new("/proc/sys/kernel/hostname"), &mut name);
    name.trim_ascii().to_vec()
}

/// Does what [`read_file`] does, and returns the open file.
pub fn read_opened(path: &Path, into: &mut Vec<u8>) -> Result<Fd, SysError> {
    let fd = open(path)?;
    read_all(&fd, into).map_err(|errno| SysError::on_bytes("read", path.as_os_str().as_bytes(), errno))?;
    Ok(fd)
}

/// True if an open file of mounts (`/proc/PID/mountinfo`) has changed since it was opened or since the last call of
/// this function: the kernel notifies its pollers (`mounts_poll` in fs/proc_namespace.c). Also true if polling fails.
/// One system call.
pub fn mounts_have_changed(file: &Fd) -> bool {
    let mut poll = libc::pollfd { fd: file.raw(), events: libc::POLLPRI, revents: 0 };
    // SAFETY: one live pollfd; a timeout of 0 does not wait.
    let ready = retry("poll", || unsafe { libc::poll(&raw mut poll, 1, 0) }.into());
    ready.is_err() || poll.revents & (libc::POLLERR | libc::POLLPRI | libc::POLLNVAL) != 0
}

/// Detects changes of the calling process's mounts, such as those made by `ip netns add` and `ip netns delete`.
#[derive(Debug)]
pub struct MountsWatch(Fd);

impl MountsWatch {
    /// Detects changes from now on.
    pub fn open() -> Result<MountsWatch, SysError> {
        Ok(MountsWatch(open(Path::new("/proc/self/mountinfo"))?))
    }

    /// True if mounts have changed since the last call. One system call.
    pub fn have_changed(&self) -> bool {
        mounts_have_changed(&self.0)
    }

    /// Waits until `stop` is readable or closed (returns true), until mounts have changed (if there is a watch), or
    /// until the timeout expires.
    pub fn wait(watch: Option<&MountsWatch>, stop: BorrowedFd<'_>, timeout_ms: i32) -> Result<bool, SysError> {
        let stop = libc::pollfd { fd: stop.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // poll(2) ignores a negative descriptor.
        let mounts = libc::pollfd { fd: watch.map_or(-1, |watch| watch.0.raw()), events: libc::POLLPRI, revents: 0 };
        let mut polls = [stop, mounts];
        let first = polls.as_mut_ptr();
        // SAFETY: two live pollfds.
        match call("poll", || unsafe { libc::poll(first, 2, timeout_ms) }.into()) {
            Ok(_) | Err(Errno::INTR) => Ok(polls.first().is_some_and(|stop| stop.revents != 0)),
            Err(errno) => Err(SysError::new("poll", "mounts", errno)),
        }
    }
}

/// A file as a stream of pieces, for tables too large for memory (/proc/net/tcp with 100,000 sockets has 15 MB).
/// Pieces end where a read ended, not at line ends.
///
/// The file belongs to the network namespace in which it was opened: `/proc/thread-self/net/…`, not `/proc/net/…`,
/// which is the main thread's.
#[derive(Debug)]
pub struct FileBlocks {
    fd: Fd,
    path: Box<str>,
    piece: Vec<u8>,
}

/// seq_file returns one page per read regardless of the buffer (measurement: no gain above 4 KiB); ordinary files gain
/// up to this size.
const READ_BYTES: usize = 64 << 10;

impl FileBlocks {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> Result<FileBlocks, SysError> {
        let fd = open(path)?;
        Ok(FileBlocks { fd, path: escape_bytes(path.as_os_str().as_bytes()), piece: Vec::with_capacity(READ_BYTES) })
    }
}

impl Blocks for FileBlocks {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        self.piece.clear();
        match read_append(&self.fd, &mut self.piece, READ_BYTES) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(&self.piece)),
            Err(errno) => Err(SysError { call: "read", object: self.path.clone(), errno }),
        }
    }
}

/// Replaces `into` with the names in the directory at `path`, each terminated by a NUL, in the kernel's order.
pub fn read_names(path: &Path, into: &mut Vec<u8>) -> Result<(), SysError> {
    let dir = open_dir(path)?;
    let mut entries = Entries::new();
    into.clear();
    loop {
        match entries.next(&dir) {
            Ok(Some(entry)) => into.extend_from_slice(entry.name.to_bytes_with_nul()),
            Ok(None) => return Ok(()),
            Err(errno) => return Err(SysError::on_bytes("getdents64", path.as_os_str().as_bytes(), errno)),
        }
        if into.len() > FILE_BYTES_MAX {
            return Err(SysError::on_bytes("getdents64", path.as_os_str().as_bytes(), Errno::FBIG));
        }
    }
}

/// Replaces `into` with the contents of a file below `dir`.
pub fn read_file_at(dir: &Fd, name: &CStr, into: &mut Vec<u8>) -> Result<(), Errno> {
    into.clear();
    read_all(&open_at(dir, name)?, into)
}

/// The target of the link `name` below `dir`, in the caller's buffer; a longer target is truncated.
pub fn read_link_at<'b>(dir: &Fd, name: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let (into, size) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: `name` is NUL-terminated, `into` points to `size` exclusively borrowed bytes.
    let got = call("readlinkat", || unsafe { libc::readlinkat(dir.raw(), name.as_ptr(), into, size) } as i64)?;
    let got = length(got, size);
    count_read(got);
    Ok(buffer.get(..got).unwrap_or_default())
}

/// Stores the target of the link at `path` in `into`.
pub fn read_link(path: &Path, into: &mut Vec<u8>) -> Result<(), SysError> {
    let name = path.as_os_str().as_bytes();
    let failed = |errno| SysError::on_bytes("readlinkat", name, errno);
    let c_name = CString::new(name).map_err(|_| failed(Errno::INVAL))?;
    into.clear();
    into.resize(libc::PATH_MAX as usize, 0);
    let (target, size) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: `c_name` is NUL-terminated, `target` points to `size` exclusively borrowed bytes.
    let got = call("readlinkat", || unsafe { libc::readlink(c_name.as_ptr(), target, size) } as i64).map_err(failed)?;
    into.truncate(length(got, size));
    count_read(into.len());
    Ok(())
}

/// Stores an extended attribute of the file that `path` leads to in `into`: at most 4 KiB of it.
pub fn read_xattr(path: &Path, attribute: &CStr, into: &mut Vec<u8>) -> Result<(), SysError> {
    const BYTES_MAX: usize = 4096;
    let name = path.as_os_str().as_bytes();
    let failed = |errno| SysError::on_bytes("getxattr", name, errno);
    let c_name = CString::new(name).map_err(|_| failed(Errno::INVAL))?;
    into.clear();
    into.resize(BYTES_MAX, 0);
    let (value, size) = (into.as_mut_ptr().cast(), into.len());
    let get = || {
        // SAFETY: both names are NUL-terminated, `value` points to `size` exclusively borrowed bytes.
        unsafe { libc::getxattr(c_name.as_ptr(), attribute.as_ptr(), value, size) as i64 }
    };
    let got = call("getxattr", get).map_err(|errno| {
        into.clear();
        failed(errno)
    })?;
    into.truncate(length(got, size));
    count_read(into.len());
    Ok(())
}

/// The parts of the result of `stat` that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Device number of the file system: inode numbers are unique within it.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Type and permission bits (`S_IFMT` and below).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number, for a device file.
    pub device_number: u64,
    /// Size in bytes; 0 for files of /proc.
    pub size: u64,
    /// Number of hard links; for a directory it exceeds the number of its subdirectories.
    pub links: u64,
}

impl Stat {
    /// True for a socket.
    pub fn is_socket(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFSOCK
    }

    /// True for a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    /// True for a FIFO.
    pub fn is_fifo(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFIFO
    }

    /// True for /dev/null.
    pub fn is_null(&self) -> bool {
        // Major number 1, minor number 3 (drivers/char/mem.c).
        self.mode & libc::S_IFMT == libc::S_IFCHR && self.device_number == 0x103
    }

    /// True for a directory.
    pub fn is_dir(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }
}

/// The metadata of `name` below `dir`, following a link as the last component (so /proc/PID/fd/N refers to the socket
/// itself).
pub fn stat_at(dir: &Fd, name: &CStr) -> Result<Stat, Errno> {
    stat_raw(dir.raw(), name, 0)
}

/// The metadata of `name` below `dir`, without following a link.
pub(crate) fn link_stat_at(dir: &Fd, name: &CStr) -> Result<Stat, Errno> {
    stat_raw(dir.raw(), name, libc::AT_SYMLINK_NOFOLLOW)
}

/// The metadata of the file at a path, following links.
pub fn stat(path: &Path) -> Result<Stat, SysError> {
    let name = path.as_os_str().as_bytes();
    let failed = |errno| SysError::on_bytes("fstatat", name, errno);
    let c_name = CString::new(name).map_err(|_| failed(Errno::INVAL))?;
    stat_raw(libc::AT_FDCWD, &c_name, 0).map_err(failed)
}

/// Returns the device and inode of `name` below `dir`, following a link at the end. The kernel answers from its cache
/// and does not ask a file system that may not respond (FUSE, NFS). Needs Linux 4.11.
pub fn cached_identity_at(dir: &Fd, name: &CStr) -> Result<(u64, u64), Errno> {
    cached_identity(dir, name, 0)
}

/// Returns the device and inode of an open file or of a reference to one.
pub(crate) fn cached_identity_of(fd: &Fd) -> Result<(u64, u64), Errno> {
    cached_identity(fd, c"", libc::AT_EMPTY_PATH)
}

fn cached_identity(dir: &Fd, name: &CStr, flags: libc::c_int) -> Result<(u64, u64), Errno> {
    // SAFETY: statx is a plain struct of integers, for which all-zero bits are valid.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    let (raw, flags, into) = (dir.raw(), flags | libc::AT_STATX_DONT_SYNC, &raw mut found);
    // Not `libc::statx`: the standard library has a weak reference to the same symbol. After link-time optimisation all
    // references are weak, the static binary lacks the function, and the call goes to address 0.
    // SAFETY: `name` is NUL-terminated, `found` is live and exclusively borrowed.
    call("statx", || unsafe { libc::syscall(libc::SYS_statx, raw, name.as_ptr(), flags, libc::STATX_INO, into) })?;
    Ok((libc::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino))
}

/// The metadata of an open file.
pub fn stat_fd(fd: &Fd) -> Result<Stat, Errno> {
    stat_raw(fd.raw(), c"", libc::AT_EMPTY_PATH)
}

// The widths of stat's members differ between targets; ours are the widest.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn stat_raw(dir: libc::c_int, name: &CStr, flags: libc::c_int) -> Result<Stat, Errno> {
    // SAFETY: stat is a plain struct of integers, for which all bits zero is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is NUL-terminated, `stat` is live and exclusively borrowed.
    call("fstatat", || unsafe { libc::fstatat(dir, name.as_ptr(), &mut stat, flags) }.into())?;
    Ok(Stat {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        mode: stat.st_mode,
        uid: stat.st_uid,
        gid: stat.st_gid,
        device_number: stat.st_rdev as u64,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        links: stat.st_nlink as u64,
    })
}

/// A path for the `*_at` functions, assembled in a reused buffer (`1234` + `/fd`).
#[derive(Debug, Default, Clone)]
pub struct CPath(Vec<u8>);

impl CPath {
    /// An empty path; the first `set` allocates.
    pub fn new() -> CPath {
        CPath::default()
    }

    /// Joins the parts without adding slashes. A NUL inside ends the path there.
    pub fn set(&mut self, parts: &[&[u8]]) -> &CStr {
        self.0.clear();
        for part in parts {
            self.0.extend_from_slice(part);
        }
        self.0.push(0);
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }
}

/// The type of a directory entry, as far as the directory itself reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Dir,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A socket.
    Socket,
    /// Something else, or the file system does not report it.
    Other,
}

/// One name in a directory; borrows the buffer of [`Entries`].
#[derive(Debug, Clone, Copy)]
pub struct Entry<'b> {
    /// The name, ready for the `*_at` functions.
    pub name: &'b CStr,
    /// Inode number as stored in the directory.
    pub inode: u64,
    /// Type of file.
    pub kind: FileKind,
}

impl Entry<'_> {
    /// The name as bytes.
    pub fn bytes(&self) -> &[u8] {
        self.name.to_bytes()
    }

    /// The name as a number (process and descriptor directories), `None` if it is not a decimal u32.
    pub fn number(&self) -> Option<u32> {
        let digits = self.bytes();
        if digits.is_empty() || digits.len() > 10 {
            return None;
        }
        let mut number: u32 = 0;
        for digit in digits {
            let digit = digit.checked_sub(b'0').filter(|d| *d <= 9)?;
            number = number.checked_mul(10)?.checked_add(u32::from(digit))?;
        }
        Some(number)
    }
}

/// Reads directories with getdents64 through one reusable buffer.
///
/// Call `begin` before each directory, then `next` with its descriptor until it returns `None`. The directory's
/// position advances, so a descriptor serves one pass.
#[derive(Debug)]
pub struct Entries {
    buffer: Box<[u8]>,
    filled: usize,
    at: usize,
}

impl Default for Entries {
    fn default() -> Entries {
        Entries::new()
    }
}

impl Entries {
    /// Allocates the 32 KiB buffer.
    pub fn new() -> Entries {
        Entries { buffer: vec![0; DIRENT_BYTES].into_boxed_slice(), filled: 0, at: 0 }
    }

    /// Discards what is left of the previous directory.
    pub fn begin(&mut self) {
        self.filled = 0;
        self.at = 0;
    }

    /// The next name, without `.` and `..`; `None` at the end.
    pub fn next(&mut self, dir: &Fd) -> Result<Option<Entry<'_>>, Errno> {
        loop {
            if self.at >= self.filled && !self.fill(dir)? {
                return Ok(None);
            }
            let start = self.at;
            let Some(size) = self.entry_size(start) else {
                // The kernel violates its own format: stop here rather than guess.
                self.begin();
                return Err(Errno::IO);
            };
            self.at = start + size;
            if !self.is_dots(start, size) {
                return self.entry(start, size).map(Some).ok_or(Errno::IO);
            }
        }
    }

    fn fill(&mut self, dir: &Fd) -> Result<bool, Errno> {
        let (into, size) = (self.buffer.as_mut_ptr(), self.buffer.len());
        // SAFETY: `into` points to `size` bytes that `self` owns and no other code borrows.
        let got = call("getdents64", || unsafe { libc::syscall(libc::SYS_getdents64, dir.raw(), into, size) } as i64)?;
        self.at = 0;
        self.filled = length(got, size);
        count_read(self.filled);
        Ok(self.filled > 0)
    }

    // Length of the entry at `start`, if it lies within the bytes that the kernel filled.
    fn entry_size(&self, start: usize) -> Option<usize> {
        let filled = self.buffer.get(..self.filled)?;
        let size = usize::from(u16::from_ne_bytes(filled.get(start + 16..start + 18)?.try_into().ok()?));
        (size > DIRENT_HEAD && start + size <= self.filled).then_some(size)
    }

    fn is_dots(&self, start: usize, size: usize) -> bool {
        let name = self.buffer.get(start + DIRENT_HEAD..start + size).unwrap_or_default();
        name.starts_with(b".\0") || name.starts_with(b"..\0")
    }

    fn entry(&self, start: usize, size: usize) -> Option<Entry<'_>> {
        let bytes = self.buffer.get(start..start + size)?;
        let inode = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
        let kind = match *bytes.get(18)? {
            libc::DT_DIR => FileKind::Dir,
            libc::DT_REG => FileKind::File,
            libc::DT_LNK => FileKind::Link,
            libc::DT_SOCK => FileKind::Socket,
            _ => FileKind::Other,
        };
        let name = CStr::from_bytes_until_nul(bytes.get(DIRENT_HEAD..)?).ok()?;
        Some(Entry { name, inode, kind })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::fault::{Fault, arm, disarm_all};
    use std::collections::BTreeSet;

    fn names(dir: &Fd, entries: &mut Entries) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        entries.begin();
        while let Some(entry) = entries.next(dir).unwrap() {
            assert!(names.insert(entry.bytes().to_vec()), "{entry:?} twice");
        }
        names
    }

    #[test]
    fn a_directory_larger_than_the_buffer() {
        let tmp = tempfile::tempdir().unwrap();
        let expected: BTreeSet<Vec<u8>> = (0..3000).map(|i| format!("{i:040}").into_bytes()).collect();
        for name in &expected {
            std::fs::write(tmp.path().join(std::str::from_utf8(name).unwrap()), b"").unwrap();
        }
        let mut entries = Entries::new();
        assert_eq!(names(&open_dir(tmp.path()).unwrap(), &mut entries), expected);
        // The same buffer serves the next directory, even after an unfinished pass.
        let again = open_dir(tmp.path()).unwrap();
        entries.begin();
        assert!(entries.next(&again).unwrap().is_some());
        let empty = tempfile::tempdir().unwrap();
        assert!(names(&open_dir(empty.path()).unwrap(), &mut entries).is_empty());
    }

    #[test]
    fn our_own_descriptors() {
        let dir = open_dir(Path::new("/proc/self/fd")).unwrap();
        let mut entries = Entries::new();
        let mut target = [0; 256];
        let mut found = false;
        while let Some(entry) = entries.next(&dir).unwrap() {
            assert_eq!(entry.kind, FileKind::Link);
            if entry.number() == u32::try_from(dir.raw()).ok() {
                let target = read_link_at(&dir, entry.name, &mut target).unwrap();
                assert!(target.ends_with(b"/fd"), "{:?}", target.escape_ascii());
                found = true;
            }
        }
        assert!(found);
    }

    #[test]
    fn a_file_in_pieces_and_a_directory_as_names() {
        let tmp = tempfile::tempdir().unwrap();
        let text: Vec<u8> = (0..200_000u32).map(|i| (i % 253) as u8).collect();
        std::fs::write(tmp.path().join("one"), &text).unwrap();
        let mut blocks = FileBlocks::open(&tmp.path().join("one")).unwrap();
        let mut got = Vec::new();
        arm("read", 1, 1, Fault::Short(9));
        while let Some(block) = blocks.next().unwrap() {
            got.extend_from_slice(block);
        }
        disarm_all();
        assert!(got == text);
        assert!(blocks.next().unwrap().is_none(), "the end stays the end");
        arm("read", 0, 1, Fault::Fails(Errno::IO));
        let error = blocks.next().unwrap_err();
        disarm_all();
        assert!(error.to_string().ends_with("/one: input/output error"), "{error}");
        let mut names = Vec::new();
        read_names(tmp.path(), &mut names).unwrap();
        assert_eq!(names, b"one\0");
        assert_eq!(read_names(&tmp.path().join("one"), &mut names).unwrap_err().errno, Errno::NOTDIR);
    }

    #[test]
    fn numbers_of_names() {
        let number = |name| Entry { name, inode: 0, kind: FileKind::Other }.number();
        assert_eq!(number(c"0"), Some(0));
        assert_eq!(number(c"4294967295"), Some(u32::MAX));
        assert_eq!(number(c"4294967296"), None);
        assert_eq!(number(c"12a"), None);
        assert_eq!(number(c""), None);
    }

    #[test]
    fn a_socket_seen_through_its_descriptor() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let fd = Fd::from(std::os::fd::OwnedFd::from(listener));
        let direct = stat_fd(&fd).unwrap();
        let mut path = CPath::new();
        let dir = open_dir(Path::new("/proc/self/fd")).unwrap();
        let by_path = stat_at(&dir, path.set(&[fd.raw().to_string().as_bytes()])).unwrap();
        assert!(direct.is_socket());
        assert_eq!(direct, by_path);
    }

    #[test]
    fn short_reads_and_interruptions_lose_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("f");
        let expected: Vec<u8> = (0..20_000u32).flat_map(|i| i.to_ne_bytes()).collect();
        std::fs::write(&path, &expected).unwrap();
        arm("read", 1, 3, Fault::Fails(Errno::INTR));
        arm("read", 0, 50, Fault::Short(7));
        let mut into = b"old".to_vec();
        let read = read_file(&path, &mut into);
        disarm_all();
        read.unwrap();
        assert_eq!(into, expected);
    }

    #[test]
    fn errors_name_the_file() {
        let mut into = Vec::new();
        let error = read_file(Path::new("/nonexistent/x"), &mut into).unwrap_err();
        assert_eq!(error.to_string(), "cannot open /nonexistent/x: no such file or directory");
        arm("openat", 0, 1, Fault::Fails(Errno::PERM));
        let error = open(Path::new("/etc/passwd")).unwrap_err();
        disarm_all();
        assert_eq!((error.call, error.errno), ("openat", Errno::PERM));
        assert_eq!(open(Path::new("a\0b")).unwrap_err().errno, Errno::INVAL);
    }

    #[test]
    fn an_endless_file_is_refused() {
        let mut into = Vec::new();
        assert_eq!(read_file(Path::new("/dev/zero"), &mut into).unwrap_err().errno, Errno::FBIG);
    }
}
