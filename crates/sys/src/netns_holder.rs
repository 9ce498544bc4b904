//! Opens a network namespace through another process's descriptor of the namespace itself or of a socket in it.
//!
//! The other process may be hostile and may replace the descriptor at any time, so this module opens nothing before the
//! kernel has confirmed its type.
use std::path::Path;

use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::fs;
use crate::syscall::call;

/// `PIDFD_THREAD` of include/uapi/linux/pidfd.h, Linux 6.9: accepts a thread that is not the first of its process.
const PIDFD_THREAD: libc::c_long = libc::O_EXCL as libc::c_long;

/// `_IO(0xb7, 3)` of include/uapi/linux/nsfs.h, Linux 4.11.
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

/// include/uapi/linux/sockios.h, Linux 4.10.
const SIOCGSKNS: libc::Ioctl = 0x894c;

/// Opens the namespace of `path` if that is /proc/PID/fd/N; returns `None` for any other path.
///
/// A socket is duplicated temporarily (`pidfd_getfd`, Linux 5.6, needs CAP_SYS_PTRACE). The caller must compare inodes:
/// the other process may have replaced the descriptor.
pub(crate) fn open(path: &Path) -> Option<Result<Fd, SysError>> {
    let (tid, number) = descriptor_in(path)?;
    Some(open_descriptor(path, tid, number))
}

/// Opens the namespace file at `path`, which anyone may have named or made: a FIFO or device there is not opened. Fails
/// with EINVAL if it is not a namespace.
pub(crate) fn open_file(path: &Path) -> Result<Fd, SysError> {
    let reference = fs::refer_to(path)?;
    if !is_in_nsfs(&reference).map_err(|errno| SysError::new("openat", path.display().to_string(), errno))? {
        return Err(SysError::on_bytes("openat", path.as_os_str().as_encoded_bytes(), Errno::INVAL));
    }
    fs::open(Path::new(&format!("/proc/self/fd/{}", reference.raw())))
}

fn descriptor_in(path: &Path) -> Option<(u32, u32)> {
    let (tid, number) = path.to_str()?.strip_prefix("/proc/")?.split_once("/fd/")?;
    Some((tid.parse().ok()?, number.parse().ok()?))
}

fn open_descriptor(path: &Path, tid: u32, number: u32) -> Result<Fd, SysError> {
    let failed = |errno| SysError::new("openat", path.display().to_string(), errno);
    let reference = fs::refer_to(path)?;
    let own_path = format!("/proc/self/fd/{}", reference.raw());
    if is_in_nsfs(&reference).map_err(failed)? {
        let file = fs::open(Path::new(&own_path))?;
        return if is_network(&file) { Ok(file) } else { Err(failed(Errno::NOENT)) };
    }
    let mut target = Vec::new();
    fs::read_link(Path::new(&own_path), &mut target)?;
    if !target.starts_with(b"socket:[") {
        return Err(failed(Errno::NOENT));
    }
    netns_of_socket(tid, number).map_err(failed)
}

/// True for a file in nsfs, the file system of namespaces.
fn is_in_nsfs(reference: &Fd) -> Result<bool, Errno> {
    let own = fs::stat(Path::new("/proc/self/ns/net")).map_err(|error| error.errno)?;
    fs::cached_identity_of(reference).map(|(device, _)| device == own.device)
}

/// False for a namespace of another type.
fn is_network(namespace: &Fd) -> bool {
    // SAFETY: the descriptor is open while `namespace` is borrowed; the request takes no argument.
    let kind = call("ioctl", || unsafe { libc::ioctl(namespace.raw(), NS_GET_NSTYPE) }.into());
    kind == Ok(libc::CLONE_NEWNET.into())
}

/// Opens the namespace of the socket `number` of `tid`.
pub(crate) fn netns_of_socket(tid: u32, number: u32) -> Result<Fd, Errno> {
    let task = open_task(tid)?;
    let (raw, number) = (libc::c_long::from(task.raw()), libc::c_long::from(number));
    // SAFETY: pidfd_getfd takes two descriptors and a flag word, no memory.
    let socket = call("pidfd_getfd", || unsafe { libc::syscall(libc::SYS_pidfd_getfd, raw, number, 0) })?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    let socket = unsafe { Fd::take(socket) };
    netns_of(&socket)
}

/// Opens the namespace of `socket`.
pub(crate) fn netns_of(socket: &Fd) -> Result<Fd, Errno> {
    // SAFETY: the descriptor is open while `socket` is borrowed; SIOCGSKNS takes no argument and returns a descriptor.
    let netns = call("ioctl", || unsafe { libc::ioctl(socket.raw(), SIOCGSKNS) }.into())?;
    // SAFETY: ioctl just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(netns) })
}

fn open_task(tid: u32) -> Result<Fd, Errno> {
    let open = |flags: libc::c_long| {
        // SAFETY: pidfd_open takes a number and a flag word, no memory.
        call("pidfd_open", || unsafe { libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(tid as i32), flags) })
    };
    // Before Linux 6.9 only the first thread of a process has a pidfd.
    let task = open(0).or_else(|errno| if errno == Errno::SRCH { Err(errno) } else { open(PIDFD_THREAD) })?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { Fd::take(task) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_descriptors_of_processes() {
        let of = |path| descriptor_in(Path::new(path));
        assert_eq!(of("/proc/17/fd/3"), Some((17, 3)));
        for path in ["/proc/17/ns/net", "/proc/self/fd/3", "/run/netns/fd/3", "/proc/17/fd/", "/proc/17/fd/3/x"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn only_a_network_namespace_and_a_socket_lead_to_one() {
        let own = std::fs::File::open("/proc/self/ns/net").unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let inode = |raw: i32| {
            let path = format!("/proc/{}/fd/{raw}", std::process::id());
            open(Path::new(&path)).unwrap().map(|netns| fs::stat_fd(&netns).unwrap().inode)
        };
        let expected = own.metadata().unwrap().ino();
        assert_eq!(inode(own.as_raw_fd()).unwrap(), expected);
        assert_eq!(inode(socket.as_raw_fd()).unwrap(), expected);
        let mounts = std::fs::File::open("/proc/self/ns/mnt").unwrap();
        assert_eq!(inode(mounts.as_raw_fd()).unwrap_err().errno, Errno::NOENT);
    }

    /// One case is a FIFO: opening it would wait for a writer.
    #[test]
    fn nothing_else_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let both = std::fs::File::options().read(true).write(true).open(&fifo).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), both.as_raw_fd());
        assert_eq!(open(Path::new(&path)).unwrap().unwrap_err().errno, Errno::NOENT);
    }
}
