//! Threads and security contexts of those who hold sockets, read when they are printed.

use record::Comm;
use sinks::face::ss::Tasks;
use std::cell::RefCell;
use std::collections::HashMap;
use sys::Host;

/// Threads looked at in one process at most.
const THREADS_MAX: usize = 100_000;

/// Answers from /proc, each process's threads read once.
pub(super) struct Live<'h> {
    host: &'h Host,
    threads: RefCell<HashMap<u32, Vec<(u32, Comm)>>>,
}

impl<'h> Live<'h> {
    pub(super) fn new(host: &'h Host) -> Live<'h> {
        Live { host, threads: RefCell::default() }
    }

    fn read(&self, pid: u32) -> Vec<(u32, Comm)> {
        let mut text = Vec::new();
        // A process that is gone has none.
        let _ = self.host.read_names(&format!("/proc/{pid}/task"), &mut text);
        let mut tids = numbers(&text);
        tids.retain(|&tid| tid != pid);
        tids.truncate(THREADS_MAX);
        let named = tids.into_iter().filter_map(|tid| Some((tid, self.name(pid, tid)?)));
        named.collect()
    }

    fn name(&self, pid: u32, tid: u32) -> Option<Comm> {
        let mut text = Vec::new();
        self.host.read_file(&format!("/proc/{pid}/task/{tid}/comm"), &mut text).ok()?;
        Some(Comm::new(text.strip_suffix(b"\n").unwrap_or(&text)))
    }
}

/// Numbers among names that end in NUL, in the order of the kernel: that of the threads' making, which is ss's as well
/// (their numbers begin anew some day).
fn numbers(names: &[u8]) -> Vec<u32> {
    let names = names.split(|&b| b == 0).filter_map(|name| std::str::from_utf8(name).ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

impl Tasks for Live<'_> {
    fn threads(&self, pid: u32, each: &mut dyn FnMut(u32, Comm)) {
        let mut known = self.threads.borrow_mut();
        known.entry(pid).or_insert_with(|| self.read(pid)).iter().for_each(|&(tid, name)| each(tid, name));
    }

    fn put_context(&self, tid: u32, out: &mut Vec<u8>) -> bool {
        let mut text = Vec::new();
        let read = self.host.read_file(&format!("/proc/{tid}/attr/current"), &mut text);
        out.extend_from_slice(bare(&text));
        read.is_ok()
    }

    fn put_socket_context(&self, tid: u32, fd: u32, out: &mut Vec<u8>) -> bool {
        let mut text = Vec::new();
        let read = self.host.read_xattr(&format!("/proc/{tid}/fd/{fd}"), c"security.selinux", &mut text);
        out.extend_from_slice(bare(&text));
        read.is_ok()
    }
}

/// A context up to its NUL, without the newline that some kernels put behind it.
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
    fn own_threads() {
        let host = Host::live();
        let live = Live::new(&host);
        let (ready, wait) = std::sync::mpsc::channel::<()>();
        let (named, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("netwren-task".into()).spawn(move || {
            let _ = named.send(());
            let _ = wait.recv();
        });
        let _ = started.recv();
        let mut names = Vec::new();
        live.threads(std::process::id(), &mut |_, name| names.push(name));
        drop(ready);
        assert!(thread.is_ok_and(|thread| thread.join().is_ok()));
        assert!(names.contains(&Comm::new(b"netwren-task")), "{names:?}");
    }
}
