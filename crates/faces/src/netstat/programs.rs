//! The first words of command lines, read when a socket of the process is printed, once per round.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use sys::Host;

/// Number of bytes of a command line that netstat reads.
const BYTES_MAX: usize = 511;

/// Maps a pid to the first word of its command line; `None` if the line cannot be read or is empty.
pub(super) struct Programs<'h> {
    host: &'h Host,
    known: RefCell<HashMap<u32, Option<Box<[u8]>>>>,
    /// Time when the owners were read, in ns of CLOCK_BOOTTIME.
    seen_ns: Cell<u64>,
}

impl<'h> Programs<'h> {
    pub(super) fn new(host: &'h Host) -> Programs<'h> {
        Programs { host, known: RefCell::default(), seen_ns: Cell::new(u64::MAX) }
    }

    /// Appends the first word, up to its NUL; false if it is not available.
    pub(super) fn put_argv0(&self, pid: u32, out: &mut Vec<u8>) -> bool {
        let mut known = self.known.borrow_mut();
        let word = known.entry(pid).or_insert_with(|| read(self.host, pid, self.seen_ns.get()));
        word.iter().for_each(|word| out.extend_from_slice(word));
        word.is_some()
    }

    /// Starts a new round with owners read at `seen_ns` of CLOCK_BOOTTIME, because pids may have been reused.
    pub(super) fn forget(&self, seen_ns: u64) {
        self.known.borrow_mut().clear();
        self.seen_ns.set(seen_ns);
    }
}

fn read(host: &Host, pid: u32, seen_ns: u64) -> Option<Box<[u8]>> {
    let mut text = Vec::new();
    host::processes::read_cmdline(host, pid, seen_ns, &mut text).ok()?;
    let end = text.iter().position(|&b| b == 0).unwrap_or(text.len()).min(BYTES_MAX);
    // A process whose main thread has ended has no command line at all. An empty first word still counts as a word.
    text.get(..end).filter(|_| !text.is_empty()).map(Box::from)
}
