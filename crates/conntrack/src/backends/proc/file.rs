//! Reads /proc/net/nf_conntrack line by line, live or replayed.
use std::ops::ControlFlow;

use sys::{Host, Lines, SysError, open_proc_net};

use crate::table::NetnsRef;

/// Maximum length of a line; a security context is the longest part of one.
///
/// Bound: bytes of a line of /proc/net/nf_conntrack. Beyond: the line counts as malformed (exit code 3). By: a broken
/// kernel.
const LINE_BYTES_MAX: usize = 8 << 10;

/// Name of the stream in a recording.
pub(crate) fn key(netns_id: u64) -> String {
    format!("proc/nf_conntrack/{netns_id}")
}

/// Calls `each` with every line, without its newline; returns true if `each` stopped the loop.
///
/// The kernel fills one page per read, and evicts expired entries of this namespace.
pub(crate) fn lines(
    host: &Host,
    place: NetnsRef<'_>,
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<bool, SysError> {
    let mut blocks = host.stream(&key(place.netns_id), "", || open_proc_net(host, place.netns, "nf_conntrack"))?;
    let mut lines = Lines::new(LINE_BYTES_MAX);
    let mut each = |line: &[u8]| if line.is_empty() { ControlFlow::Continue(()) } else { each(line) };
    while let Some(block) = blocks.next()? {
        if lines.split_lines(block, &mut each).is_break() {
            return Ok(true);
        }
    }
    Ok(lines.finish(&mut each).is_break())
}
