//! Files whose next bytes may not have arrived yet: pipes, FIFOs, sockets, terminals.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use sys::wait_any;

/// Interval at which a wait checks whether the run must end.
const CHECK_INTERVAL_MS: i32 = 100;

/// A file whose bytes arrive as another process writes them. Clones read the same file.
#[derive(Clone)]
pub(super) struct Pipe(Rc<PipeState>);

struct PipeState {
    file: File,
    /// True if a read that finds no data fails instead of waiting.
    fails: Cell<bool>,
    /// True if the last read found no data.
    is_starved: Cell<bool>,
}

impl Pipe {
    /// Wraps the file. Returns regular files, block devices and directories as `Err`: all of their bytes exist.
    pub(super) fn of(file: File) -> Result<Pipe, File> {
        use std::os::unix::fs::FileTypeExt;
        match file.metadata().map(|found| found.file_type()) {
            Ok(kind) if !kind.is_file() && !kind.is_block_device() && !kind.is_dir() => {
                Ok(Pipe(Rc::new(PipeState { file, fails: Cell::new(false), is_starved: Cell::new(false) })))
            }
            _ => Err(file),
        }
    }

    /// Makes a read that finds no data fail with [`io::ErrorKind::WouldBlock`]. No data is lost.
    pub(super) fn fail_instead_of_waiting(&self) {
        self.0.fails.set(true);
    }

    /// False if the last read found no data and none arrives within `timeout_ms`.
    pub(super) fn may_have_more(&self, timeout_ms: i32) -> bool {
        !self.0.is_starved.get() || is_ready(&self.0.file, timeout_ms)
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

/// Reads available data, or waits for it: a FIFO without a writer waits for one. A signal that asks the program to stop
/// ends the wait ([`io::ErrorKind::Interrupted`]).
impl Read for Pipe {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let PipeState { file, fails, is_starved } = &*self.0;
        let is_waiting = !fails.get();
        while !is_ready(file, if is_waiting { CHECK_INTERVAL_MS } else { 0 }) {
            if !is_waiting {
                is_starved.set(true);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if sys::signal::is_requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        is_starved.set(false);
        // Does not wait: data or the end is there.
        let mut file = file;
        file.read(room)
    }
}

/// False if a read of the file would wait for `timeout_ms`.
pub(super) fn is_ready(file: &impl AsFd, timeout_ms: i32) -> bool {
    let mut ready = Vec::new();
    wait_any(&[file.as_fd()], timeout_ms, &mut ready).is_err() || !ready.is_empty()
}
