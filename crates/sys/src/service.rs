//! The service manager's protocols, without its library: sd_notify(3) over a datagram socket, and the descriptors that
//! it stores from one run to the next (sd_listen_fds(3), FDSTORE).
//!
//! Knows only the framing of messages, and nothing about the stored files.
use std::ffi::OsString;
use std::fs::File;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use crate::descriptors::send_with;
use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::socket;
use crate::syscall::call;

/// The service manager's name in errors.
const OBJECT: &str = "the service manager";
/// Length of a path in sockaddr_un.
const PATH_MAX: usize = 107;
/// First descriptor that a service manager passes (SD_LISTEN_FDS_START).
const FIRST: i32 = 3;
/// A bound above the number of descriptors that a unit can store.
///
/// Bound: descriptors that a service manager hands over. Beyond: none of them is used. By: root.
const DESCRIPTORS_MAX: i32 = 1 << 16;

/// Descriptors have one owner, so they are handed out once per process.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The service manager that started this process.
#[derive(Debug)]
pub struct Manager {
    socket: Fd,
    /// A sockaddr_un.
    address: Vec<u8>,
}

impl Manager {
    /// The service manager whose socket is named by `NOTIFY_SOCKET`; `None` if the variable is not set.
    pub fn of_environment() -> Result<Option<Manager>, SysError> {
        match std::env::var_os("NOTIFY_SOCKET") {
            Some(path) if !path.is_empty() => Manager::from_path(&path).map(Some),
            _ => Ok(None),
        }
    }

    /// The service manager that listens at `path`; a leading `@` stands for the zero byte of an abstract name.
    fn from_path(path: &OsString) -> Result<Manager, SysError> {
        let mut name = path.as_bytes().to_vec();
        let is_abstract = name.first() == Some(&b'@');
        if name.len() > PATH_MAX || !(is_abstract || name.starts_with(b"/")) {
            return Err(SysError::on_bytes("NOTIFY_SOCKET", path.as_bytes(), Errno::INVAL));
        }
        if let Some(first) = name.first_mut().filter(|_| is_abstract) {
            *first = 0;
        }
        let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
        address.append(&mut name);
        if !is_abstract {
            address.push(0);
        }
        Ok(Manager { socket: socket::open(libc::AF_UNIX, libc::SOCK_DGRAM, 0)?, address })
    }

    /// Sends assignments, one per line (`READY=1`), and optionally files.
    pub fn send(&self, text: &str, files: &[BorrowedFd<'_>]) -> Result<(), SysError> {
        send_with(&self.socket, &self.address, text.as_bytes(), files)
            .map_err(|errno| SysError::new("sendmsg", OBJECT, errno))
    }
}

/// The maximum interval between signs of life that the service manager expects, if it does.
pub fn watchdog() -> Option<Duration> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    let period = number("WATCHDOG_USEC").filter(|us| is_ours && *us > 0)?;
    Some(Duration::from_micros(period))
}

/// True if the service manager stores descriptors. Versions of systemd before 254 do not announce it; systemd is
/// recognized by the id that it assigns to each start.
pub fn keeps_files() -> bool {
    match std::env::var("FDSTORE") {
        Ok(most) => most.parse::<u32>().is_ok_and(|most| most > 0),
        Err(_) => std::env::var_os("INVOCATION_ID").is_some(),
    }
}

/// A descriptor that the service manager stored.
#[derive(Debug)]
pub struct StoredFile {
    /// The name under which it was stored.
    pub name: String,
    /// The descriptor; closed on exec.
    pub file: OwnedFd,
}

/// The descriptors that the service manager stored for an earlier run; empty on later calls.
pub fn take_stored_files() -> Vec<StoredFile> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    let is_ours = number("LISTEN_PID").is_some_and(|pid| u32::try_from(pid) == Ok(std::process::id()));
    let count = number("LISTEN_FDS").filter(|count| is_ours && (1..=DESCRIPTORS_MAX).contains(count)).unwrap_or(0);
    if IS_TAKEN.swap(true, SeqCst) {
        return Vec::new();
    }
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    (FIRST..FIRST + count)
        .filter_map(|fd| {
            let name = names.next().unwrap_or_default().to_owned();
            // SAFETY: fcntl with F_SETFD takes integers; a number without an open descriptor gives EBADF.
            call("fcntl", || unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }.into()).ok()?;
            // SAFETY: open, as fcntl just confirmed. The process started with it: LISTEN_PID is this process, so
            // nothing here opened it, and `TAKEN` lets it be taken only once.
            Some(StoredFile { name, file: unsafe { Fd::take(fd.into()) }.into() })
        })
        .collect()
}

/// Creates a file in memory that exists as long as a descriptor of it is open.
pub fn memory_file(name: &std::ffi::CStr) -> Result<File, SysError> {
    let flags = libc::MFD_CLOEXEC;
    // SAFETY: `name` is a live string that ends with a zero byte.
    let fd = call("memfd_create", || unsafe { libc::memfd_create(name.as_ptr(), flags) }.into())
        .map_err(|errno| SysError::new("memfd_create", "file in memory", errno))?;
    // SAFETY: memfd_create just returned this descriptor to us alone.
    Ok(File::from(OwnedFd::from(unsafe { Fd::take(fd) })))
}

/// The user at the other end of a connected unix socket, when it connected (SO_PEERCRED).
pub fn peer_uid(connection: BorrowedFd<'_>) -> Result<u32, Errno> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let (to, mut size) = ((&raw mut who).cast(), size_of::<libc::ucred>() as libc::socklen_t);
    let (fd, level, option) = (connection.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: `to` points to `size` bytes that are ours.
    call("getsockopt", || unsafe { libc::getsockopt(fd, level, option, to, &raw mut size).into() })?;
    Ok(who.uid)
}
