//! Reads files of /proc/net line by line, live or replayed.
use std::ops::ControlFlow;

use sys::{Blocks, Host, Lines, NetNs, SysError, open_proc_net};

use crate::keys::Table;

/// Maximum length of a line: a path has at most 108 bytes.
///
/// Bound: bytes of a line of a socket table in /proc. Beyond: the line counts as malformed (exit code 3). By: a broken
/// kernel.
const LINE_MAX: usize = 4 << 10;

/// Maximum size of a file that is read as a whole: two million unix sockets. A longer one is truncated, which
/// [`ProcFile::text`] reports.
///
/// Bound: bytes of /proc/net/unix. Beyond: the rest is not read (exit code 3). By: a user with 2 million unix sockets,
/// with `--via proc` only.
pub(crate) const TEXT_MAX: usize = 256 << 20;

/// One file to read.
pub(crate) struct ProcFile<'h> {
    pub(crate) host: &'h Host,
    /// Entered while the file is opened; the open file keeps its namespace.
    pub(crate) netns: Option<&'h NetNs>,
    pub(crate) table: Table,
    /// Name of the stream in a recording.
    pub(crate) key: String,
}

impl ProcFile<'_> {
    /// Calls `each` with every line except the heading, without its newline. True if `each` stopped the loop.
    pub(crate) fn read(&self, mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<bool, SysError> {
        let mut blocks = self.open()?;
        let (mut lines, mut heading_seen) = (Lines::new(LINE_MAX), false);
        let mut each = |line: &[u8]| {
            if std::mem::replace(&mut heading_seen, true) { each(line) } else { ControlFlow::Continue(()) }
        };
        while let Some(bytes) = blocks.next()? {
            if lines.split_lines(bytes, &mut each).is_break() {
                return Ok(true);
            }
        }
        Ok(lines.finish(&mut each).is_break())
    }

    /// Replaces `into` with the whole file; false if it was longer than 256 MiB and therefore truncated.
    pub(crate) fn text(&self, into: &mut Vec<u8>) -> Result<bool, SysError> {
        into.clear();
        let mut blocks = self.open()?;
        while let Some(bytes) = blocks.next()? {
            into.extend_from_slice(bytes);
            if into.len() > TEXT_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open(&self) -> Result<Box<dyn Blocks + '_>, SysError> {
        self.host.stream(&self.key, "", || open_proc_net(self.host, self.netns, self.table.file()))
    }
}
