//! First words of command lines, read when a socket of the process is printed, once a round.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use sys::Host;

/// What netstat reads of a command line.
const BYTES_MAX: usize = 511;

/// Maps a pid to the first word of its command line; `None` if the line cannot be read or is empty.
pub(super) struct Programs<'h> {
    host: &'h Host,
    known: RefCell<HashMap<u32, Option<Box<[u8]>>>>,
    /// When the owners were read.
    seen_ns: Cell<u64>,
}

impl<'h> Programs<'h> {
    pub(super) fn new(host: &'h Host) -> Programs<'h> {
        Programs { host, known: RefCell::default(), seen_ns: Cell::new(u64::MAX) }
    }

    /// Appends the first word, up to its NUL; false if there is none to be had.
    pub(super) fn put_argv0(&self, pid: u32, out: &mut Vec<u8>) -> bool {
        let mut known = self.known.borrow_mut();
        let word = known.entry(pid).or_insert_with(|| read(self.host, pid, self.seen_ns.get()));
        word.iter().for_each(|word| out.extend_from_slice(word));
        word.is_some()
    }

    /// Another round with the owners that were seen at `seen_ns` of CLOCK_BOOTTIME: pids may be other processes'.
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
