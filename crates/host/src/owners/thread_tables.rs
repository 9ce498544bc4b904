//! Threads of a process that have their own descriptor table.
//!
//! /proc/PID/fd is the table of the first thread. Another thread has its own table after `unshare(CLONE_FILES)`. Once
//! the first thread has ended, /proc/PID/fd is empty and the tables of all other threads differ from it.
use sys::fs::{self, CPath, Entries};
use sys::threads::share_descriptors;
use sys::{Errno, Fd};

/// Link count of /proc/PID/task for a process with one thread: two, plus one per thread (proc_task_getattr in
/// fs/proc/base.c).
const LINKS_OF_ONE: u64 = 3;

/// Maximum number of tables that a thread's table is compared with, in addition to its process's table. A table that is
/// returned twice costs time but adds no rows.
const COMPARED_MAX: usize = 16;

/// The threads of one process that have not been visited yet.
pub(super) struct ThreadTables {
    pub(super) pid: u32,
    /// The `fd` directory of the process.
    own: Fd,
    /// The `task` directory of the process.
    dir: Fd,
    names: Entries,
    /// Threads whose tables were returned.
    returned: Vec<u32>,
}

impl ThreadTables {
    /// Returns the threads of the process with this `fd` directory; `None` if it has only one, which costs 2 µs.
    pub(super) fn of(pid: u32, own: Fd) -> Option<ThreadTables> {
        let links = fs::stat_at(&own, c"../task").ok()?.links;
        if links <= LINKS_OF_ONE {
            return None;
        }
        let dir = fs::open_dir_at(&own, c"../task").ok()?;
        Some(ThreadTables { pid, own, dir, names: Entries::new(), returned: Vec::new() })
    }

    /// Returns the next thread with a new table, and the directory of this table. Costs 2 µs for each thread that
    /// shares the table of its process.
    pub(super) fn next(&mut self, path: &mut CPath) -> Option<Result<(u32, Fd), Errno>> {
        loop {
            let entry = match self.names.next(&self.dir) {
                Ok(entry) => entry?,
                Err(errno) if errno.is_missing_object() => return None,
                Err(errno) => return Some(Err(errno)),
            };
            let Some(tid) = entry.number().filter(|tid| *tid != self.pid) else { continue };
            let path = path.set(&[entry.bytes(), b"/fd"]);
            let known = std::iter::once(self.pid).chain(self.returned.iter().rev().take(COMPARED_MAX).copied());
            match known.map(|other| share_descriptors(other, tid)).find(|shares| *shares != Ok(false)) {
                Some(Ok(true)) => continue,
                // Without kcmp(2), only the number of descriptors distinguishes tables.
                Some(_) if size(&self.own, c".") == size(&self.dir, path) => continue,
                _ => {}
            }
            match fs::open_dir_at(&self.dir, path) {
                Ok(dir) => {
                    self.returned.push(tid);
                    return Some(Ok((tid, dir)));
                }
                Err(errno) if errno.is_missing_object() => {}
                Err(errno) => return Some(Err(errno)),
            }
        }
    }

    /// Returns the `fd` directory of the process.
    pub(super) fn of_process(&self) -> &Fd {
        &self.own
    }
}

/// Returns the number of descriptors in a table: its directory's size since Linux 6.2, and 0 before.
fn size(dir: &Fd, name: &std::ffi::CStr) -> Option<u64> {
    fs::stat_at(dir, name).ok().map(|stat| stat.size)
}
