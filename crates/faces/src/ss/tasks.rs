//! Threads and security contexts of the processes that own sockets, read when they are printed.
//!
//! Files are read by the task's number. After each read, the task's start time shows whether the number still belongs
//! to the owner: a task that started after the owners were read is a different task, and the data is dropped.

use crate::ss::output::Tasks;
use host::Identity;
use record::Comm;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use sys::Host;

/// Maximum number of threads read per process. Sockets of the remaining threads are shown without threads, like those
/// of threads that have ended.
///
/// Bound: threads of a process for `ss -T`. Beyond: sockets of further threads are shown without them. By: the owner of
/// the process.
const THREADS_MAX: usize = 100_000;

/// The sockets in a descriptor table, as inode and descriptor in ascending order. Threads with equal tables share it.
type Held = Rc<[(u32, u32)]>;

/// A thread other than its process's first.
struct Thread {
    tid: u32,
    name: Comm,
    held: Held,
}

/// Reads tasks from /proc, and each process's threads once.
pub(super) struct Live<'h> {
    host: &'h Host,
    /// Time when the owners were read, in ns of CLOCK_BOOTTIME.
    seen_ns: u64,
    threads: RefCell<HashMap<u32, Vec<Thread>>>,
}

impl<'h> Live<'h> {
    pub(super) fn new(host: &'h Host, seen_ns: u64) -> Live<'h> {
        Live { host, seen_ns, threads: RefCell::default() }
    }

    /// True if the task that was just read existed when the owners were read, so that its data is the owner's. Costs
    /// one read of its `stat`; free in a replay.
    fn is_owner(&self, tid: u32) -> bool {
        self.host.is_replay() || Identity::read(self.host, tid).is_ok_and(|task| !task.started_after(self.seen_ns))
    }

    /// Appends the security context of a task; false if it could not be read, or belongs to a different task.
    fn put(&self, tid: u32, read: bool, context: &[u8], out: &mut Vec<u8>) -> bool {
        let is_owner = read && self.is_owner(tid);
        if is_owner {
            out.extend_from_slice(bare(context));
        }
        is_owner
    }

    fn read(&self, pid: u32) -> Vec<Thread> {
        let mut text = Vec::new();
        // A process that has exited has no threads.
        let _ = self.host.read_names(&format!("/proc/{pid}/task"), &mut text);
        let mut tids = numbers(&text);
        tids.retain(|&tid| tid != pid);
        tids.truncate(THREADS_MAX);
        let mut threads: Vec<Thread> = Vec::new();
        for tid in tids {
            let Some(name) = self.name(pid, tid) else { continue };
            let held = self.held(pid, tid);
            let held = match threads.last() {
                Some(last) if *last.held == *held => Rc::clone(&last.held),
                _ => held.into(),
            };
            threads.push(Thread { tid, name, held });
        }
        if !threads.is_empty() && !self.is_owner(pid) {
            threads.clear();
        }
        threads
    }

    fn name(&self, pid: u32, tid: u32) -> Option<Comm> {
        let mut text = Vec::new();
        self.host.read_file(&format!("/proc/{pid}/task/{tid}/comm"), &mut text).ok()?;
        Some(Comm::new(text.strip_suffix(b"\n").unwrap_or(&text)))
    }

    /// The sockets among a thread's descriptors. Costs one system call per descriptor, as in ss.
    fn held(&self, pid: u32, tid: u32) -> Vec<(u32, u32)> {
        let (mut text, mut link) = (Vec::new(), Vec::new());
        let dir = format!("/proc/{pid}/task/{tid}/fd");
        // A thread without read permission contributes nothing.
        let _ = self.host.read_names(&dir, &mut text);
        let mut held = Vec::new();
        for fd in numbers(&text) {
            let read = self.host.read_link(&format!("{dir}/{fd}"), &mut link);
            if let (Ok(()), Some(inode)) = (read, socket_inode(&link)) {
                held.push((inode, fd));
            }
        }
        held.sort_unstable();
        held
    }
}

/// The inode in `socket:[N]`.
fn socket_inode(link: &[u8]) -> Option<u32> {
    let digits = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses the numbers among NUL-terminated names, in the kernel's order. ss uses the same order: threads by creation,
/// not by number, because numbers wrap around.
fn numbers(names: &[u8]) -> Vec<u32> {
    let names = names.split(|&b| b == 0).filter_map(|name| std::str::from_utf8(name).ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

impl Tasks for Live<'_> {
    fn threads(&self, pid: u32, inode: u32, each: &mut dyn FnMut(u32, Comm, u32)) {
        let mut known = self.threads.borrow_mut();
        for thread in known.entry(pid).or_insert_with(|| self.read(pid)) {
            let from = thread.held.partition_point(|&(held, _)| held < inode);
            let of_socket = thread.held.iter().skip(from).take_while(|(held, _)| *held == inode);
            of_socket.for_each(|&(_, fd)| each(thread.tid, thread.name, fd));
        }
    }

    fn put_context(&self, tid: u32, out: &mut Vec<u8>) -> bool {
        let mut text = Vec::new();
        let read = self.host.read_file(&format!("/proc/{tid}/attr/current"), &mut text);
        self.put(tid, read.is_ok(), &text, out)
    }

    fn put_socket_context(&self, tid: u32, fd: u32, out: &mut Vec<u8>) -> bool {
        let mut text = Vec::new();
        let read = self.host.read_xattr(&format!("/proc/{tid}/fd/{fd}"), c"security.selinux", &mut text);
        self.put(tid, read.is_ok(), &text, out)
    }
}

/// A context up to its NUL, without the newline that some kernels append.
fn bare(text: &[u8]) -> &[u8] {
    let text = text.split(|&b| b == 0).next().unwrap_or_default();
    text.strip_suffix(b"\n").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_kernel() {
        assert_eq!(numbers(b"12\0x\x007\0\0-3\0"), [12, 7]);
        assert_eq!(bare(b"system_u:system_r:kernel_t:s0\0junk"), b"system_u:system_r:kernel_t:s0");
        assert_eq!((bare(b"kernel\n"), bare(b"")), (&b"kernel"[..], &b""[..]));
    }

    #[test]
    fn issue_10_the_context_of_a_later_task_is_not_the_owners() {
        let host = Host::live();
        let context = |seen_ns| {
            let mut out = Vec::new();
            let is_there = Live::new(&host, seen_ns).put(std::process::id(), true, b"kernel\n", &mut out);
            (is_there, out)
        };
        assert_eq!(context(u64::MAX), (true, b"kernel".to_vec()));
        assert_eq!(context(0), (false, Vec::new()));
    }

    #[test]
    fn own_threads() {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::MetadataExt;
        let host = Host::live();
        let live = Live::new(&host, u64::MAX);
        let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("a socket");
        let fd = socket.as_raw_fd() as u32;
        let inode = std::fs::metadata(format!("/proc/self/fd/{fd}")).expect("it is open").ino() as u32;
        let (ready, wait) = std::sync::mpsc::channel::<()>();
        let (named, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("netwren-task".into()).spawn(move || {
            let _ = named.send(());
            let _ = wait.recv();
        });
        let _ = started.recv();
        let owners = |live: &Live<'_>, inode| {
            let mut names = Vec::new();
            live.threads(std::process::id(), inode, &mut |_, name, fd| names.push((name, fd)));
            names
        };
        // This process started after boot (time 0), so its number belonged to a different process at that time.
        let issue_10 = owners(&Live::new(&host, 0), inode);
        let (owners, others) = (owners(&live, inode), owners(&live, u32::MAX));
        drop(ready);
        assert!(issue_10.is_empty(), "{issue_10:?}");
        assert!(thread.is_ok_and(|thread| thread.join().is_ok()));
        assert!(owners.contains(&(Comm::new(b"netwren-task"), fd)) && others.is_empty(), "{owners:?}");
        assert_eq!(
            (socket_inode(b"socket:[12]"), socket_inode(b"pipe:[12]"), socket_inode(b"socket:[x]")),
            (Some(12), None, None)
        );
    }
}
