//! Network namespaces: finding them by name, process or path, and entering them temporarily.
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::fs;
use crate::netns_holder;
use crate::syscall::call;

/// Where `ip netns add` mounts named namespaces; the second is the same directory on old systems.
const NAMED: [&str; 2] = ["/run/netns", "/var/run/netns"];

/// The calling thread's own namespace. Not /proc/self, which is the main thread's.
const OWN_NETNS_PATH: &str = "/proc/thread-self/ns/net";

/// An open network namespace; it cannot vanish while this lives.
#[derive(Debug)]
pub struct NetNs {
    fd: Fd,
    inode: u64,
    /// Device of nsfs: the inode number has no meaning in another file system.
    device: u64,
    shown: Box<str>,
}

/// Creator of a network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetnsOwner {
    /// The user namespace of this process: only root in it can create a network namespace.
    Host,
    /// A user, in that user's own user namespaces at any depth.
    User(u32),
    /// A user namespace that root created, such as a container with mapped ids, by its inode.
    UserNamespace(u64),
    /// The kernel does not report the creator.
    Unknown,
}

/// `_IO(0xb7, 1)`, `_IO(0xb7, 2)` and `_IO(0xb7, 4)` (include/uapi/linux/nsfs.h), since Linux 4.9 and 4.11.
const NS_GET_USERNS: libc::c_ulong = 0xb701;
const NS_GET_PARENT: libc::c_ulong = 0xb702;
const NS_GET_OWNER_UID: libc::c_ulong = 0xb704;

impl NetNs {
    /// The namespace the calling thread is in.
    pub fn current() -> Result<NetNs, SysError> {
        NetNs::open_path(Path::new(OWN_NETNS_PATH))
    }

    /// The namespace that `ip netns` calls `name`.
    pub fn open_name(name: &str) -> Result<NetNs, SysError> {
        let mut missing = None;
        for dir in NAMED {
            match NetNs::open_path(&PathBuf::from(dir).join(name)) {
                Err(error) if error.errno == Errno::NOENT => missing = Some(error),
                other => return other,
            }
        }
        Err(missing.unwrap_or_else(|| SysError::new("openat", name, Errno::NOENT)))
    }

    /// The namespace that process `pid` is in.
    pub fn open_pid(pid: u32) -> Result<NetNs, SysError> {
        NetNs::open_path(Path::new(&format!("/proc/{pid}/ns/net")))
    }

    /// The namespace that a path refers to (/proc/PID/ns/net, a bind mount).
    pub fn open_path(path: &Path) -> Result<NetNs, SysError> {
        NetNs::of_fd(fs::open(path)?, path)
    }

    /// Wraps the namespace `fd`, which is that of a socket.
    pub(crate) fn of_socket(fd: Fd) -> Result<NetNs, Errno> {
        NetNs::of_fd(fd, Path::new("the namespace of a socket")).map_err(|error| error.errno)
    }

    /// Wraps the namespace that `fd` refers to; `path` is its name in messages.
    fn of_fd(fd: Fd, path: &Path) -> Result<NetNs, SysError> {
        let shown: Box<str> = crate::errno::escape_bytes(path.as_os_str().as_encoded_bytes());
        let stat = fs::stat_fd(&fd).map_err(|errno| SysError::new("fstat", shown.clone(), errno))?;
        Ok(NetNs { fd, inode: stat.inode, device: stat.device, shown })
    }

    /// Opens a namespace as users write it: text with a slash is a path, other text a name, and a number that is not a
    /// name a process.
    pub fn open(written: &str) -> Result<NetNs, SysError> {
        if written.contains('/') {
            return NetNs::of_fd(netns_holder::open_file(Path::new(written))?, Path::new(written));
        }
        let named = NetNs::open_name(written);
        match (&named, written.parse()) {
            (Err(error), Ok(pid)) if error.errno == Errno::NOENT => NetNs::open_pid(pid),
            _ => named,
        }
    }

    /// The namespace with this inode, from a file or else from a process; ENOENT if neither leads to it any more.
    ///
    /// If the known process has left the namespace, another process may still be inside. (A reader of many namespaces
    /// moves from one to the next, and a search may have found it on its way.) In that case all processes are examined
    /// (1.5 µs each).
    pub fn open_known(inode: u64, path: Option<&Path>, pid: Option<u32>) -> Result<NetNs, SysError> {
        let mut failure = SysError::new("openat", format!("net:[{inode}]"), Errno::NOENT);
        let by_path = || path.map(open_file_or_holder);
        let by_pid = || pid.map(NetNs::open_pid);
        let ways: [&dyn Fn() -> Option<Result<NetNs, SysError>>; 2] = [&by_path, &by_pid];
        for opened in ways.iter().filter_map(|open| open()) {
            match opened {
                Ok(netns) if netns.inode == inode => return Ok(netns),
                // The name or the pid now belongs to a different namespace.
                Ok(_) => {}
                Err(error) => failure = error,
            }
        }
        let another = if pid.is_some() { open_by_any_process(inode) } else { None };
        another.ok_or(failure)
    }

    /// Inode number: shown by `ls -L -i` and `lsns`, and unique while the namespace exists.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// The uid, as the calling process sees it, of the creator of the user namespace that owns this network namespace:
    /// 0 if root created it. EPERM if that user namespace is outside the caller's.
    pub fn owner_uid(&self) -> Result<u32, SysError> {
        user_of(&open_related(&self.fd, NS_GET_USERNS).map_err(|errno| self.error_at(errno))?)
            .map_err(|errno| self.error_at(errno))
    }

    /// Returns the creator of this network namespace, as seen from the calling thread's user namespace. Costs a few
    /// system calls per level of nested user namespaces; the kernel allows 33 levels.
    pub fn owner(&self) -> NetnsOwner {
        let Ok(mut users) = open_related(&self.fd, NS_GET_USERNS) else { return NetnsOwner::Unknown };
        // The caller cannot see the parent of its own user namespace.
        let mut below = None;
        while let Ok(parent) = open_related(&users, NS_GET_PARENT) {
            below = Some(std::mem::replace(&mut users, parent));
        }
        let Some(below) = below else { return NetnsOwner::Host };
        match (user_of(&below), fs::stat_fd(&below)) {
            (Ok(0), Ok(stat)) => NetnsOwner::UserNamespace(stat.inode),
            (Ok(uid), _) if uid != 0 => NetnsOwner::User(uid),
            _ => NetnsOwner::Unknown,
        }
    }

    fn error_at(&self, errno: Errno) -> SysError {
        SysError::new("ioctl", self.shown.clone(), errno)
    }

    /// Moves the calling thread into this namespace until the returned guard is dropped.
    ///
    /// Sockets opened inside stay there. Needs CAP_SYS_ADMIN; entering the current namespace needs no privilege and
    /// changes nothing.
    pub fn enter(&self) -> Result<NetnsGuard, SysError> {
        let before = NetNs::current()?;
        if (before.device, before.inode) == (self.device, self.inode) {
            return Ok(NetnsGuard { before: None, this_thread: PhantomData });
        }
        set(self)?;
        Ok(NetnsGuard { before: Some(before), this_thread: PhantomData })
    }
}

/// Returns the user namespace that owns a namespace, or its parent.
fn open_related(namespace: &Fd, request: libc::c_ulong) -> Result<Fd, Errno> {
    // SAFETY: the descriptor is open while `namespace` is borrowed; both requests take no argument.
    let found = call("ioctl", || unsafe { libc::ioctl(namespace.raw(), request) }.into())?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { Fd::take(found) })
}

/// Returns the user who created a user namespace.
fn user_of(users: &Fd) -> Result<u32, Errno> {
    let mut uid: libc::uid_t = 0;
    // SAFETY: the descriptor is open while `users` lives; the kernel writes one uid_t to `uid`.
    call("ioctl", || unsafe { libc::ioctl(users.raw(), NS_GET_OWNER_UID, &raw mut uid) }.into())?;
    Ok(uid)
}

/// Runs `visit` in `netns` (`None`: the current namespace), and goes back before it returns the result, because a
/// thread in the wrong namespace is worse than no result. Fails if the namespace cannot be entered or left.
pub fn run_within<T>(netns: Option<&NetNs>, visit: impl FnOnce() -> T) -> Result<T, SysError> {
    let inside = netns.map(NetNs::enter).transpose()?;
    let visited = visit();
    if let Some(inside) = inside {
        inside.leave()?;
    }
    Ok(visited)
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Inode number of the namespace that a path refers to, without opening it.
pub fn inode_of(path: &Path) -> Result<u64, SysError> {
    Ok(fs::stat(path)?.inode)
}

/// Inode number of the calling thread's namespace.
pub fn current_inode() -> Result<u64, SysError> {
    inode_of(Path::new(OWN_NETNS_PATH))
}

/// Parses `net:[4026531840]`, the text of links and mounts of network namespaces.
pub fn inode_in(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"net:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The named namespaces as (name, path), sorted; empty if there are none or they are unreadable.
pub fn list_named() -> Vec<(Box<[u8]>, PathBuf)> {
    let mut found = Vec::new();
    let mut entries = fs::Entries::new();
    // The second directory is usually a link to the first: use only one.
    let Some((place, dir)) = NAMED.iter().find_map(|place| Some((place, fs::open_dir(Path::new(place)).ok()?))) else {
        return found;
    };
    while let Ok(Some(entry)) = entries.next(&dir) {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(place).join(std::ffi::OsStr::from_bytes(entry.bytes()));
        found.push((entry.bytes().into(), path));
    }
    found.sort();
    found
}

/// Opens the namespace at `path`: a file, or a descriptor of another process that keeps the namespace alive.
fn open_file_or_holder(path: &Path) -> Result<NetNs, SysError> {
    match netns_holder::open(path) {
        Some(opened) => NetNs::of_fd(opened?, path),
        None => NetNs::open_path(path),
    }
}

/// Opens the namespace through the first process found in it that is still there when its link is opened.
fn open_by_any_process(inode: u64) -> Option<NetNs> {
    let dir = fs::open_dir(Path::new("/proc")).ok()?;
    let (mut entries, mut path, mut target) = (fs::Entries::new(), fs::CPath::new(), [0; 32]);
    let wanted = format!("net:[{inode}]");
    while let Ok(Some(entry)) = entries.next(&dir) {
        let Some(pid) = entry.number() else { continue };
        let link = fs::read_link_at(&dir, path.set(&[entry.bytes(), b"/ns/net"]), &mut target);
        if !link.is_ok_and(|link| link == wanted.as_bytes()) {
            continue;
        }
        if let Some(netns) = NetNs::open_pid(pid).ok().filter(|netns| netns.inode == inode) {
            return Some(netns);
        }
    }
    None
}

/// Moves the calling thread into a new, empty network namespace permanently. For tests. Needs CAP_SYS_ADMIN.
pub fn unshare_net() -> Result<(), SysError> {
    // SAFETY: unshare takes a flag word only; it changes the namespace of this thread, no memory.
    call("unshare", || unsafe { libc::unshare(libc::CLONE_NEWNET) }.into())
        .map_err(|errno| SysError::new("unshare", "network namespace", errno))?;
    Ok(())
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that stays in its original network namespace while other threads enter others.
///
/// It runs jobs there: sockets, threads and processes that a job creates belong to that namespace. Entering it again
/// would need CAP_SYS_ADMIN, which a run may have dropped by then; a job needs no capability. The thread ends on drop.
#[derive(Debug)]
pub struct OriginThread {
    jobs: Sender<Job>,
}

impl OriginThread {
    /// Starts the thread in the calling thread's namespace, with its capabilities.
    pub fn start() -> Result<OriginThread, SysError> {
        let (jobs, received) = channel::<Job>();
        let thread = std::thread::Builder::new().name("netwren-origin".into());
        let started = thread.spawn(move || received.into_iter().for_each(|job| job()));
        started
            .map(|_| OriginThread { jobs })
            .map_err(|error| SysError::new("clone", "a thread for outputs", Errno(error.raw_os_error().unwrap_or(0))))
    }

    /// Runs `job` on the thread and waits for its result. Fails only if an earlier job has panicked.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, SysError> {
        let (result, received) = channel();
        let job = move || _ = result.send(job());
        let gone = || SysError::new("write", "the thread for outputs", Errno::PIPE);
        self.jobs.send(Box::new(job)).map_err(|_| gone())?;
        received.recv().map_err(|_| gone())
    }
}

fn set(namespace: &NetNs) -> Result<(), SysError> {
    // SAFETY: setns takes a descriptor and a flag; it changes the namespace of this thread, no memory.
    call("setns", || unsafe { libc::setns(namespace.fd.raw(), libc::CLONE_NEWNET) }.into())
        .map_err(|errno| SysError::new("setns", namespace.shown.clone(), errno))?;
    Ok(())
}

/// While this lives, the calling thread is inside another network namespace.
#[derive(Debug)]
pub struct NetnsGuard {
    before: Option<NetNs>,
    // If it were dropped on another thread, it would move that thread, so it must not be `Send`.
    this_thread: PhantomData<*const ()>,
}

impl NetnsGuard {
    /// Goes back, and reports an error if that fails. Dropping does the same but cannot report errors.
    pub fn leave(mut self) -> Result<(), SysError> {
        match self.before.take() {
            Some(before) => set(&before),
            None => Ok(()),
        }
    }
}

impl NetnsGuard {
    /// Stays in the namespace, for a thread that no longer has the right to go back.
    pub fn stay(mut self) {
        self.before = None;
    }
}

impl Drop for NetnsGuard {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        if let Err(error) = set(&before) {
            // Continuing would read another namespace's tables and present them as ours: the one thing worse than
            // stopping. It happens only if a privilege was lost between entering and leaving.
            eprintln!("netwren: cannot return to the original network namespace: {error}");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use testkit::root::root_or_skip;

    #[test]
    fn own_namespace_has_one_inode() {
        let own = NetNs::current().unwrap();
        assert_eq!(own.inode(), current_inode().unwrap());
        assert_eq!(own.inode(), inode_of(Path::new("/proc/self/ns/net")).unwrap());
        assert_eq!(NetNs::open(&std::process::id().to_string()).unwrap().inode(), own.inode());
        // Entering the current namespace needs no privilege.
        own.enter().unwrap().leave().unwrap();
    }

    #[test]
    fn by_whatever_still_leads_to_it() {
        let inode = current_inode().unwrap();
        let own = Path::new(OWN_NETNS_PATH);
        let pid = std::process::id();
        assert_eq!(NetNs::open_known(inode, Some(own), None).unwrap().inode(), inode);
        for wrong in ["/no/such", "/proc/self/ns/mnt"] {
            assert_eq!(NetNs::open_known(inode, Some(Path::new(wrong)), Some(pid)).unwrap().inode(), inode);
        }
        for (path, pid) in [(None, None), (None, Some(pid)), (Some(own), Some(4_194_999))] {
            assert_eq!(NetNs::open_known(7, path, pid).unwrap_err().errno, Errno::NOENT);
        }
    }

    /// The process that it was found through has moved on.
    #[test]
    fn root_issue_10_by_another_process_than_the_one_that_was_known() {
        if !root_or_skip("making a network namespace") {
            return;
        }
        let inside = std::thread::spawn(|| {
            unshare_net().unwrap();
            (current_inode().unwrap(), std::process::Command::new("sleep").arg("60").spawn().unwrap())
        });
        let (inode, mut child) = inside.join().unwrap();
        let found = NetNs::open_known(inode, None, Some(std::process::id())).map(|netns| netns.inode());
        let unknown = NetNs::open_known(inode, None, None).map(|netns| netns.inode());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.unwrap(), inode);
        assert_eq!(unknown.unwrap_err().errno, Errno::NOENT, "nobody was ever seen in it");
        let gone = NetNs::open_known(inode, None, Some(std::process::id())).map(|netns| netns.inode());
        assert_eq!(gone.unwrap_err().errno, Errno::NOENT);
    }

    #[test]
    fn an_unknown_name_is_named() {
        let error = NetNs::open("no-such-namespace").unwrap_err();
        assert_eq!(error.errno, Errno::NOENT);
        assert!(error.to_string().contains("netns/no-such-namespace"), "{error}");
        assert_eq!(NetNs::open("/proc/self/ns/nothing").unwrap_err().errno, Errno::NOENT);
    }

    #[test]
    fn root_inside_and_back() {
        if !root_or_skip("entering a network namespace") {
            return;
        }
        let (send, receive) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            unshare_net().unwrap();
            send.send(NetNs::current().unwrap()).unwrap();
            let _ = wait.recv();
        });
        let there = receive.recv().unwrap();
        let home = current_inode().unwrap();
        let origin = OriginThread::start().unwrap();
        assert_ne!(there.inode(), home);
        {
            let _inside = there.enter().unwrap();
            assert_eq!(current_inode().unwrap(), there.inode());
            let nested = there.enter().unwrap();
            assert_eq!(origin.run(|| current_inode().unwrap()).unwrap(), home);
            nested.leave().unwrap();
            assert_eq!(current_inode().unwrap(), there.inode());
        }
        assert_eq!(current_inode().unwrap(), home);
        drop(end);
        other.join().unwrap();
    }
}
