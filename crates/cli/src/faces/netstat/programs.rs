//! First words of command lines, read when a socket of the process is printed, once a round.

use std::cell::RefCell;
use std::collections::HashMap;
use sys::Host;

/// What netstat reads of a command line.
const BYTES_MAX: usize = 511;

/// pid → first word of its command line; None where it cannot be read.
pub(super) struct Programs<'h> {
    host: &'h Host,
    known: RefCell<HashMap<u32, Option<Box<[u8]>>>>,
}

impl<'h> Programs<'h> {
    pub(super) fn new(host: &'h Host) -> Programs<'h> {
        Programs { host, known: RefCell::default() }
    }

    /// Appends the first word, up to its NUL; false if there is none to be had.
    pub(super) fn put_argv0(&self, pid: u32, out: &mut Vec<u8>) -> bool {
        let mut known = self.known.borrow_mut();
        let word = known.entry(pid).or_insert_with(|| read(self.host, pid));
        word.iter().for_each(|word| out.extend_from_slice(word));
        word.is_some()
    }

    /// Another round: pids may be taken by other processes.
    pub(super) fn forget(&self) {
        self.known.borrow_mut().clear();
    }
}

fn read(host: &Host, pid: u32) -> Option<Box<[u8]>> {
    let mut text = Vec::new();
    host.read_file(&format!("/proc/{pid}/cmdline"), &mut text).ok()?;
    let end = text.iter().position(|&b| b == 0).unwrap_or(text.len()).min(BYTES_MAX);
    text.get(..end).map(Box::from)
}
