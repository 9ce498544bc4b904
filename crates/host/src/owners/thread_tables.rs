//! Threads of a process that have a table of descriptors of their own.
//!
//! /proc/PID/fd is the table of the first thread. Another thread has its own after `unshare(CLONE_FILES)`, and all
//! others do once the first thread has ended: then /proc/PID/fd is empty.
use sys::fs::{self, CPath, Entries};
use sys::threads::share_descriptors;
use sys::{Errno, Fd};

/// Links of /proc/PID/task where the process has one thread: two, and one for each thread (proc_task_getattr in
/// fs/proc/base.c).
const LINKS_OF_ONE: u64 = 3;

/// Tables that a thread's is compared with at most, its process's own besides. A table that is returned twice costs
/// time, not a row more.
const COMPARED_MAX: usize = 16;

/// The threads of one process, as far as they have not been looked at.
pub(super) struct ThreadTables {
    pub(super) pid: u32,
    /// Its directory `fd`.
    own: Fd,
    /// Its directory `task`.
    dir: Fd,
    names: Entries,
    /// Threads whose tables were returned.
    returned: Vec<u32>,
}

impl ThreadTables {
    /// The threads of the process whose directory `fd` this is; `None` if it has only one. Costs 2 µs then.
    pub(super) fn of(pid: u32, own: Fd) -> Option<ThreadTables> {
        let links = fs::stat_at(&own, c"../task").ok()?.links;
        if links <= LINKS_OF_ONE {
            return None;
        }
        let dir = fs::open_dir_at(&own, c"../task").ok()?;
        Some(ThreadTables { pid, own, dir, names: Entries::new(), returned: Vec::new() })
    }

    /// The next thread with a table that was not seen yet, and the directory of this table. Costs 2 µs for each thread
    /// that shares the table of its process.
    pub(super) fn next(&mut self, path: &mut CPath) -> Option<Result<(u32, Fd), Errno>> {
        loop {
            let entry = match self.names.next(&self.dir) {
                Ok(entry) => entry?,
                Err(errno) if errno.is_gone() => return None,
                Err(errno) => return Some(Err(errno)),
            };
            let Some(tid) = entry.number().filter(|tid| *tid != self.pid) else { continue };
            let path = path.set(&[entry.bytes(), b"/fd"]);
            let known = std::iter::once(self.pid).chain(self.returned.iter().rev().take(COMPARED_MAX).copied());
            match known.map(|other| share_descriptors(other, tid)).find(|shares| *shares != Ok(false)) {
                Some(Ok(true)) => continue,
                // Without kcmp(2) the number of descriptors is all that tells.
                Some(_) if size(&self.own, c".") == size(&self.dir, path) => continue,
                _ => {}
            }
            match fs::open_dir_at(&self.dir, path) {
                Ok(dir) => {
                    self.returned.push(tid);
                    return Some(Ok((tid, dir)));
                }
                Err(errno) if errno.is_gone() => {}
                Err(errno) => return Some(Err(errno)),
            }
        }
    }

    /// The directory `fd` of the process.
    pub(super) fn of_process(&self) -> &Fd {
        &self.own
    }
}

/// Descriptors in a table, as its directory tells them since 6.2; before, 0.
fn size(dir: &Fd, name: &std::ffi::CStr) -> Option<u64> {
    fs::stat_at(dir, name).ok().map(|stat| stat.size)
}
