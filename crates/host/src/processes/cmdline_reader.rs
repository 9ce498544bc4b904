//! Reads command lines on a thread of its own, which the run leaves behind if a read does not return.
//!
//! A command line is memory of its process, and the kernel locks that memory to copy it. A process keeps the lock for
//! as long as it likes, for example while it waits for a file system that it serves itself (FUSE), or for a disk that
//! has failed. Such a read ends only when the lock is free.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sys::fs::{self, CPath, Entries};
use sys::{Errno, Fd};

/// Bound: bytes of a command line. Beyond: the rest is left out. By: the owner of the process.
pub(super) const BYTES_MAX: usize = 4 << 10;

/// Bound: wait for a command line. Beyond: it is empty; counted (exit code 3). By: the owner of the process.
const WAIT: Duration = Duration::from_secs(1);

/// Bound: processes at a time whose command lines do not arrive. Beyond: further command lines are empty; counted (exit
/// code 3). This also affects other users. By: a local user who holds up the memory of as many processes.
const STUCK_MAX: usize = 8;

/// Command lines that are requested at a time: as many open files.
const IN_FLIGHT_MAX: usize = 32;

/// Processes that a thread of this program waits for. Their command lines are not requested again.
static STUCK: Mutex<Vec<ProcessId>> = Mutex::new(Vec::new());

/// Pid and start time of a process.
type ProcessId = (u32, u64);

fn stuck() -> MutexGuard<'static, Vec<ProcessId>> {
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command line to read.
pub(super) struct CmdlineRequest {
    /// Pid and start time; 0 if the start time is unknown.
    pub(super) process: ProcessId,
    /// The pid in decimal digits.
    pub(super) digits: Box<[u8]>,
    /// The directory of the process.
    pub(super) dir: Fd,
    /// Its file `cmdline`.
    pub(super) file: Fd,
}

/// The end of a request.
pub(super) enum CmdlineRead {
    /// The words, each ended by a NUL.
    Text(Vec<u8>),
    /// The kernel refused the read.
    Refused(Errno),
    /// The read did not return in time.
    Stuck,
}

/// The thread that reads, and the requests that it has not answered.
pub(super) struct CmdlineReader {
    wait: Duration,
    stuck_max: usize,
    thread: Option<ReaderThread>,
    in_flight: VecDeque<Arc<CmdlineRequest>>,
}

struct ReaderThread {
    requests: Sender<Arc<CmdlineRequest>>,
    answers: Receiver<CmdlineRead>,
}

impl CmdlineReader {
    /// A reader that starts its thread at the first request.
    pub(super) fn new() -> CmdlineReader {
        CmdlineReader { wait: WAIT, stuck_max: STUCK_MAX, thread: None, in_flight: VecDeque::new() }
    }

    /// Requests a command line. Calls `take` with the pid and the end of each request that has ended, in the order of
    /// the requests; waits if many have not.
    pub(super) fn request(&mut self, request: CmdlineRequest, take: &mut dyn FnMut(u32, CmdlineRead)) {
        let is_stuck = {
            let stuck = stuck();
            stuck.len() >= self.stuck_max || stuck.contains(&request.process)
        };
        if is_stuck {
            return take(request.process.0, CmdlineRead::Stuck);
        }
        let request = Arc::new(request);
        match self.send(&request) {
            Ok(()) => self.in_flight.push_back(request),
            Err(errno) => return take(request.process.0, CmdlineRead::Refused(errno)),
        }
        while self.in_flight.len() >= IN_FLIGHT_MAX {
            self.take_one(take);
        }
    }

    /// Waits until every request has ended.
    pub(super) fn finish(&mut self, take: &mut dyn FnMut(u32, CmdlineRead)) {
        while !self.in_flight.is_empty() {
            self.take_one(take);
        }
        self.thread = None;
    }

    fn send(&mut self, request: &Arc<CmdlineRequest>) -> Result<(), Errno> {
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => ReaderThread::start()?,
        };
        let sent = thread.requests.send(Arc::clone(request));
        self.thread = Some(thread);
        sent.map_err(|_| Errno::AGAIN)
    }

    fn take_one(&mut self, take: &mut dyn FnMut(u32, CmdlineRead)) {
        let answer = self.thread.as_ref().map(|thread| thread.answers.recv_timeout(self.wait));
        let Some(request) = self.in_flight.pop_front() else { return };
        let read = match answer {
            Some(Ok(read)) => read,
            Some(Err(RecvTimeoutError::Timeout)) => {
                // The thread removes the entry when its read returns, even if that happens now.
                stuck().push(request.process);
                self.replace_thread(take);
                CmdlineRead::Stuck
            }
            Some(Err(RecvTimeoutError::Disconnected)) | None => CmdlineRead::Refused(Errno::AGAIN),
        };
        take(request.process.0, read);
    }

    /// Leaves the thread to its read, and requests the others again.
    fn replace_thread(&mut self, take: &mut dyn FnMut(u32, CmdlineRead)) {
        self.thread = None;
        for request in std::mem::take(&mut self.in_flight) {
            match self.send(&request) {
                Ok(()) => self.in_flight.push_back(request),
                Err(errno) => take(request.process.0, CmdlineRead::Refused(errno)),
            }
        }
    }
}

impl ReaderThread {
    fn start() -> Result<ReaderThread, Errno> {
        let (requests, requested) = channel::<Arc<CmdlineRequest>>();
        let (answered, answers) = channel();
        let work = move || {
            for request in requested {
                let is_wanted = answered.send(read(&request)).is_ok();
                // The wait may have ended just before the answer.
                stuck().retain(|process| *process != request.process);
                if !is_wanted {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("cmdlines".into()).spawn(work);
        let failed = |error: std::io::Error| error.raw_os_error().map_or(Errno::AGAIN, Errno);
        thread.map(|_| ReaderThread { requests, answers }).map_err(failed)
    }
}

fn read(request: &CmdlineRequest) -> CmdlineRead {
    let mut text = Vec::new();
    // The file returns everything at the first read, if it fits.
    if let Err(errno) = fs::read_append(&request.file, &mut text, BYTES_MAX) {
        return CmdlineRead::Refused(errno);
    }
    if text.is_empty() {
        // Errors are ignored: a thread that is ending has no command line.
        let _ = read_of_thread(request, &mut text);
    }
    CmdlineRead::Text(text)
}

/// A process whose first thread has ended has no command line, but its other threads do.
fn read_of_thread(request: &CmdlineRequest, text: &mut Vec<u8>) -> Result<(), Errno> {
    let tasks = fs::open_dir_at(&request.dir, c"task")?;
    let (mut entries, mut path) = (Entries::new(), CPath::new());
    while let Some(entry) = entries.next(&tasks)? {
        if entry.bytes() == &*request.digits {
            continue;
        }
        let file = fs::open_at(&tasks, path.set(&[entry.bytes(), b"/cmdline"]))?;
        fs::read_append(&file, text, BYTES_MAX)?;
        break;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
