//! Walks /proc/*/fd and produces a stream of blocks.
//!
//! Allocates nothing per descriptor. getdents64 lists a thousand at once, and readlinkat shows their type: 3.2 µs
//! together, nearly all of it in the kernel, which creates and finds the link's inode. Listing takes 1 µs of that, so
//! large tables are walked by number instead ([`DescriptorProbe`]). fstatat costs the same as readlinkat; pidfd_getfd
//! would be cheaper, but takes a reference to a foreign socket and may end up closing it, a side effect that no reader
//! should have.
use std::ffi::CStr;

use record::Comm;
use record::text::put_u64;
use sys::fs::{self, CPath, Entries};
use sys::{Blocks, Errno, Fd, Host, SysError};

use super::block::{self, Totals};
use super::choose::PROC_ROOT_INODE;
use super::hidden;
use super::probe::DescriptorProbe;
use super::thread_tables::ThreadTables;

/// Size at which a block is handed out: 5,000 sockets. There is room for one more process header after it.
const BLOCK_FULL: usize = 60 << 10;

/// Maximum length of a socket's link target: `socket:[4294967295]`, with room for a 64-bit inode.
const LINK_BYTES: usize = 40;

/// Reads the descriptors of every process whose directory is below the root of /proc.
pub(super) struct DescriptorWalk<'h> {
    host: &'h Host,
    proc: Fd,
    processes: Entries,
    descriptors: Entries,
    path: CPath,
    digits: Vec<u8>,
    comm: Vec<u8>,
    is_procfs: bool,
    current: Option<FdTable>,
    /// The other threads of the process whose table was read last.
    threads: Option<ThreadTables>,
    saw_pid_1: bool,
    block: Vec<u8>,
    totals: Totals,
    done: bool,
}

/// The current descriptor table.
struct FdTable {
    pid: u32,
    /// Differs from `pid` if a thread has its own table.
    tid: u32,
    /// Its `fd` directory.
    dir: Fd,
    /// The process's name, read at its first socket: most processes have no sockets.
    comm: Option<Comm>,
    /// Offset of its socket count in the block being filled.
    count_at: Option<usize>,
    refused: bool,
    /// Set while its descriptors are looked up by number.
    probe: Option<DescriptorProbe>,
}

impl FdTable {
    fn new(pid: u32, tid: u32, dir: Fd, is_procfs: bool) -> FdTable {
        let probe = if is_procfs { DescriptorProbe::worth(&dir) } else { None };
        FdTable { pid, tid, dir, comm: None, count_at: None, refused: false, probe }
    }
}

impl<'h> DescriptorWalk<'h> {
    pub(super) fn open(host: &'h Host) -> Result<DescriptorWalk<'h>, SysError> {
        let proc = fs::open_dir(&host.proc_path(""))?;
        Ok(DescriptorWalk {
            host,
            is_procfs: fs::stat_fd(&proc).is_ok_and(|stat| stat.inode == PROC_ROOT_INODE),
            proc,
            processes: Entries::new(),
            descriptors: Entries::new(),
            path: CPath::new(),
            digits: Vec::with_capacity(20),
            comm: Vec::new(),
            current: None,
            threads: None,
            saw_pid_1: false,
            block: Vec::with_capacity(BLOCK_FULL + 64),
            totals: Totals::default(),
            done: false,
        })
    }

    // Opens the next readable process; false at the end.
    fn next_process(&mut self) -> Result<bool, SysError> {
        loop {
            let next = self.processes.next(&self.proc).map_err(|e| SysError::new("getdents64", "/proc", e))?;
            let Some(entry) = next else { return Ok(false) };
            let Some(pid) = entry.number() else { continue };
            self.totals.processes += 1;
            self.saw_pid_1 |= pid == 1;
            let path = self.path.set(&[entry.bytes(), b"/fd"]);
            match fs::open_dir_at(&self.proc, path) {
                Ok(dir) => {
                    self.descriptors.begin();
                    self.current = Some(FdTable::new(pid, pid, dir, self.is_procfs));
                    return Ok(true);
                }
                Err(errno) => self.count_failure(errno),
            }
        }
    }

    // Opens the next table that belongs only to a thread of this process; returns false after the last one.
    fn next_thread(&mut self) -> bool {
        let Some(threads) = &mut self.threads else { return false };
        match threads.next(&mut self.path) {
            Some(Ok((tid, dir))) => {
                self.descriptors.begin();
                let (pid, comm) = (threads.pid, read_comm(threads.of_process(), &mut self.comm));
                self.current = Some(FdTable { comm: Some(comm), ..FdTable::new(pid, tid, dir, self.is_procfs) });
                true
            }
            Some(Err(errno)) => {
                self.threads = None;
                self.count_failure(errno);
                false
            }
            None => {
                self.threads = None;
                false
            }
        }
    }

    // A process that has ended is not a failure. Any other error costs only its owners.
    fn count_failure(&mut self, errno: Errno) {
        if errno.is_missing_object() {
            self.totals.vanished += 1;
            return;
        }
        self.totals.unreadable += 1;
        self.totals.refusal.get_or_insert(errno);
    }

    // Counts a process that was readable in part, once.
    fn count_refusal(&mut self, process: &mut FdTable, errno: Errno) {
        if !process.refused {
            process.refused = true;
            self.count_failure(errno);
        }
    }

    // Reads descriptors until the process has no more or the block is full.
    fn read_descriptors(&mut self, process: &mut FdTable) -> Result<More, Errno> {
        self.probe(process)?;
        while self.block.len() < BLOCK_FULL {
            let Some(entry) = self.descriptors.next(&process.dir)? else { return Ok(More::No) };
            let Some(fd) = entry.number() else { continue };
            let seen = open_file(&process.dir, entry.name);
            self.look(process, fd, seen);
        }
        Ok(More::Yes)
    }

    // Reads descriptors by number, as long as that pays off; afterwards the directory's position is after the last one
    // tried.
    fn probe(&mut self, process: &mut FdTable) -> Result<(), Errno> {
        while self.block.len() < BLOCK_FULL {
            let Some(probe) = &mut process.probe else { break };
            let Some(fd) = probe.next() else {
                probe.leave(&process.dir)?;
                process.probe = None;
                break;
            };
            self.digits.clear();
            put_u64(&mut self.digits, fd.into());
            let seen = open_file(&process.dir, self.path.set(&[&self.digits]));
            if seen == Err(Errno::NOENT) {
                probe.missed();
            } else {
                self.look(process, fd, seen);
            }
        }
        Ok(())
    }

    fn look(&mut self, process: &mut FdTable, fd: u32, seen: Result<OpenFile, Errno>) {
        self.totals.fds += 1;
        match seen {
            Ok(OpenFile::Socket(inode)) => self.keep(process, fd, inode),
            Ok(OpenFile::IoUring) => self.keep(process, fd, 0),
            Ok(OpenFile::Other) => {}
            // It was closed since it was listed, or the process has ended, which the next listing shows.
            Err(errno) if errno.is_missing_object() => {}
            Err(errno) => self.count_refusal(process, errno),
        }
    }

    fn keep(&mut self, process: &mut FdTable, fd: u32, inode: u64) {
        let comm = *process.comm.get_or_insert_with(|| read_comm(&process.dir, &mut self.comm));
        let at =
            *process.count_at.get_or_insert_with(|| block::put_table(&mut self.block, process.pid, process.tid, comm));
        block::put_held(&mut self.block, at, fd, inode);
    }

    fn finish(&mut self) {
        self.done = true;
        // A mount that hides processes also hides init, except from its own user.
        if !self.saw_pid_1 || sys::caps::euid() != 0 {
            self.totals.hidden = hidden::hides(self.host);
        }
        block::put_totals(&mut self.block, &self.totals);
    }
}

/// Whether a process has descriptors left.
enum More {
    Yes,
    No,
}

impl Blocks for DescriptorWalk<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        self.block.clear();
        if self.done {
            return Ok(None);
        }
        while self.block.len() < BLOCK_FULL {
            let Some(mut process) = self.current.take() else {
                if !self.next_thread() && !self.next_process()? {
                    self.finish();
                    break;
                }
                continue;
            };
            process.count_at = None;
            match self.read_descriptors(&mut process) {
                Ok(More::Yes) => self.current = Some(process),
                Ok(More::No) if process.pid == process.tid && self.is_procfs => {
                    self.threads = ThreadTables::of(process.pid, process.dir);
                }
                Ok(More::No) => {}
                Err(errno) => self.count_refusal(&mut process, errno),
            }
        }
        Ok(Some(&self.block))
    }
}

/// The file of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenFile {
    /// A socket with this inode.
    Socket(u64),
    IoUring,
    Other,
}

/// Looks at the file of the descriptor `name` in the directory `dir`.
pub(super) fn open_file(dir: &Fd, name: &CStr) -> Result<OpenFile, Errno> {
    let mut target = [0; LINK_BYTES];
    let target = fs::read_link_at(dir, name, &mut target)?;
    Ok(match socket_inode(target) {
        Some(inode) => OpenFile::Socket(inode),
        None if target == b"anon_inode:[io_uring]" => OpenFile::IoUring,
        None => OpenFile::Other,
    })
}

// The name of a process that holds a socket; empty if the process has just ended. Read through the open directory, so
// it belongs to the same process even if the pid was reused.
pub(super) fn read_comm(descriptors: &Fd, into: &mut Vec<u8>) -> Comm {
    if fs::read_file_at(descriptors, c"../comm", into).is_err() {
        return Comm::default();
    }
    // The kernel appends one newline; others are part of the name.
    Comm::new(into.strip_suffix(b"\n").unwrap_or(into))
}

/// The number in `socket:[N]`; `None` for any other target.
pub(super) fn socket_inode(target: &[u8]) -> Option<u64> {
    let digits = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|d| *d <= 9)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_are_sockets() {
        assert_eq!(socket_inode(b"socket:[1]"), Some(1));
        assert_eq!(socket_inode(b"socket:[18446744073709551615]"), Some(u64::MAX));
        for other in [
            "socket:[18446744073709551616]",
            "socket:[]",
            "socket:[1",
            "socket:[1a]",
            "pipe:[1]",
            "/s",
            "",
            "/tmp/socket:[1]",
            "socket:[-1]",
        ] {
            assert_eq!(socket_inode(other.as_bytes()), None, "{other}");
        }
    }
}
