//! Log records for people: one line each, with the local time. A repeated line is counted (`×12`) instead of written
//! again.
//!
//! On a terminal the count is written into the line, which is cut at the terminal's width. In a pipe the count follows
//! on a separate line, after ten seconds at the latest.

mod line;

pub use line::COLUMNS as LOG_TAIL_COLUMNS;

use crate::Out;
use line::{cell, put_record};
use record::text::put_u64;
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};
use std::io::Write;

/// Longest time before repetitions are reported in a pipe.
const REPEAT_REPORT_NS: u64 = 10_000_000_000;

/// The options of the log tail.
pub struct LogTailOptions {
    /// True for colour: red for dropped or rejected packets, green for accepted ones, otherwise by direction.
    pub color: bool,
    /// Columns of the terminal; `None` in a pipe.
    pub width: Option<usize>,
    /// True if each line begins with its network namespace.
    pub with_netns: bool,
    /// Returns hour, minute and second of a time in seconds since 1970; `None` if they are unknown.
    pub clock: fn(u64) -> Option<[u8; 3]>,
}

/// Writes the lines of records; the cells are in the order of [`LOG_TAIL_COLUMNS`].
pub struct LogTail<W> {
    out: Out<W>,
    options: LogTailOptions,
    /// The newest line, without time and count.
    newest: Vec<u8>,
    scratch: Vec<u8>,
    color: &'static str,
    /// When it was written, in ns since 1970.
    written_ns: u64,
    /// When it last occurred.
    seen_ns: u64,
    /// How often it has occurred since it was first written; in a pipe, since its count was last written.
    times: u64,
    /// True if the newest line has no newline yet, because it may be repeated.
    is_open: bool,
}

impl<W: Write> LogTail<W> {
    /// Writes lines to `out`.
    pub fn new(out: Out<W>, options: LogTailOptions) -> LogTail<W> {
        let (newest, scratch) = (Vec::new(), Vec::new());
        LogTail { out, options, newest, scratch, color: "", written_ns: 0, seen_ns: 0, times: 0, is_open: false }
    }

    /// Writes the newest line; if it is already there, overwrites it.
    fn put_newest(&mut self) {
        let LogTailOptions { color, width, clock, .. } = self.options;
        let buf = self.out.buf();
        if width.is_some() && self.is_open {
            buf.push(b'\r');
        }
        put_clock(buf, clock, self.seen_ns);
        let mut count = Vec::new();
        if self.times > 1 {
            count.extend_from_slice(" ×".as_bytes());
            put_u64(&mut count, self.times);
        }
        if color {
            buf.extend_from_slice(self.color.as_bytes());
        }
        // The clock takes nine columns, the count one per byte except for its two-byte sign, and the sign of a cut
        // line one; the last column stays free.
        let taken = 9 + count.len().saturating_sub(1) + 2;
        let room = width.map(|width| width.max(40).saturating_sub(taken));
        buf.extend_from_slice(room.map_or(&self.newest, |room| beginning_of(&self.newest, room)));
        if room.is_some_and(|room| beginning_of(&self.newest, room).len() < self.newest.len()) {
            buf.extend_from_slice("…".as_bytes());
        }
        if color {
            buf.extend_from_slice(b"\x1b[0m");
        }
        buf.extend_from_slice(&count);
        if width.is_some() {
            buf.extend_from_slice(b"\x1b[K");
            self.is_open = true;
        } else {
            buf.push(b'\n');
        }
    }

    /// Ends the newest line, before another line or at the end.
    fn close_newest(&mut self) {
        if self.options.width.is_some() {
            if self.is_open {
                if self.times > 1 {
                    self.put_newest();
                }
                self.out.buf().push(b'\n');
            }
        } else if self.times > 1 {
            self.put_repetitions();
        }
        self.is_open = false;
    }

    /// Writes, in a pipe, how often the line above was repeated.
    fn put_repetitions(&mut self) {
        let (clock, seen_ns, again) = (self.options.clock, self.seen_ns, self.times - 1);
        let buf = self.out.buf();
        put_clock(buf, clock, seen_ns);
        buf.extend_from_slice("repeated ×".as_bytes());
        put_u64(buf, again);
        buf.push(b'\n');
        (self.times, self.written_ns) = (1, seen_ns);
    }
}

impl<W: Write> Sink for LogTail<W> {
    fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let time_ns = match cells.get(cell::TIME) {
            Some(Value::Time(ns)) => *ns,
            _ => 0,
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        put_record(&mut scratch, cells, self.options.with_netns);
        let is_same = scratch == self.newest && self.times > 0;
        if is_same {
            self.scratch = scratch;
        } else {
            self.close_newest();
            self.scratch = std::mem::replace(&mut self.newest, scratch);
            self.color = color_of(cells);
            (self.times, self.written_ns) = (0, time_ns);
        }
        self.times += 1;
        self.seen_ns = time_ns;
        match self.options.width {
            // The next flush writes it: of a thousand repetitions in one batch, the terminal sees only the last count.
            Some(_) if is_same => {}
            None if is_same => {
                if time_ns.saturating_sub(self.written_ns) >= REPEAT_REPORT_NS {
                    self.put_repetitions();
                }
            }
            _ => self.put_newest(),
        }
        self.out.line_done()?;
        Ok(Next::More)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if self.options.width.is_some() && self.is_open && self.times > 1 {
            self.put_newest();
        }
        self.out.flush()
    }

    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        self.close_newest();
        self.out.flush()
    }
}

fn put_clock(out: &mut Vec<u8>, clock: fn(u64) -> Option<[u8; 3]>, time_ns: u64) {
    let parts = clock(time_ns / 1_000_000_000).unwrap_or([0; 3]);
    for (part, end) in parts.into_iter().zip([b':', b':', b' ']) {
        out.extend_from_slice(&[b'0' + part / 10 % 10, b'0' + part % 10, end]);
    }
}

/// Returns red or green; otherwise cyan, yellow or magenta by direction.
fn color_of(cells: &[Value<'_>]) -> &'static str {
    match (cells.get(cell::VERDICT), cells.get(cell::DIRECTION)) {
        (Some(Value::Name("drop" | "reject")), _) => "\x1b[31m",
        (Some(Value::Name("accept")), _) => "\x1b[32m",
        (_, Some(Value::Name("in"))) => "\x1b[36m",
        (_, Some(Value::Name("out"))) => "\x1b[33m",
        (_, Some(Value::Name("forward"))) => "\x1b[35m",
        _ => "",
    }
}

/// Returns the beginning of a text that takes at most `columns`. Non-ASCII characters count twice, except our own
/// arrow.
fn beginning_of(text: &[u8], columns: usize) -> &[u8] {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let mut left = columns;
    for (at, c) in text.char_indices() {
        let takes = if c.is_ascii() || c == '→' { 1 } else { 2 };
        let Some(rest) = left.checked_sub(takes) else { return text.as_bytes().get(..at).unwrap_or_default() };
        left = rest;
    }
    text.as_bytes()
}

#[cfg(test)]
mod tests;
