//! The buffer between a writer of rows and the system: many rows per system call.

use record::{Hole, Next, SinkError};
use std::io::{ErrorKind, Write};
use std::ops::Range;

/// Rows are written out once this many bytes wait. A pipe holds 64 KiB: a block fits unless its last row is longer
/// than the difference, so the reader wakes up once per block.
const FULL: usize = 63 << 10;
const CAPACITY: usize = 64 << 10;

/// A buffered output. Writers append to [`Out::buf`] and call [`Out::line_done`] after each line.
///
/// Nothing is written on drop: the code that ends a round calls [`Out::flush`] and gets the result.
pub struct Out<W> {
    to: W,
    buf: Vec<u8>,
    each_line: bool,
}

impl<W: Write> Out<W> {
    /// A buffer of 64 KiB before `to`, which should not be buffered itself.
    pub fn new(to: W) -> Out<W> {
        Out { to, buf: Vec::with_capacity(CAPACITY), each_line: false }
    }

    /// If `yes`, writes every line once it is complete: for terminals, and for rows that arrive slowly.
    pub fn each_line(mut self, yes: bool) -> Out<W> {
        self.each_line = yes;
        self
    }

    /// Returns the waiting bytes. Append only.
    #[inline]
    pub fn buf(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// Appends a line that was written before, with `put` writing its missing cell, and completes it.
    #[inline]
    pub(crate) fn put_line(
        &mut self,
        line: &[u8],
        hole: Option<Hole<'_>>,
        put: impl FnOnce(&mut Vec<u8>, Hole<'_>),
    ) -> Result<Next, SinkError> {
        let gap = hole.map_or(line.len(), |hole| hole.at);
        let (before, behind) = line.split_at_checked(gap).unwrap_or((line, &[]));
        self.buf.extend_from_slice(before);
        if let Some(hole) = hole {
            put(&mut self.buf, hole);
            self.buf.extend_from_slice(behind);
        }
        self.line_done().map(|()| Next::More)
    }

    /// Completes a line. Costs a comparison, and a write once the block is full.
    #[inline]
    pub fn line_done(&mut self) -> Result<(), SinkError> {
        if self.buf.len() < FULL && !self.each_line {
            return Ok(());
        }
        self.write_out()
    }

    /// Writes all waiting bytes.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        self.write_out()?;
        self.to.flush().map_err(into_sink_error)
    }

    /// Returns the output itself; waiting bytes are dropped.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Bytes that could not be written are dropped: an error is final, and nothing is retried.
    fn write_out(&mut self) -> Result<(), SinkError> {
        if self.buf.is_empty() {
            return Ok(());
        }
        // `write_all` continues after short writes and EINTR.
        let outcome = self.to.write_all(&self.buf);
        self.buf.clear();
        self.buf.shrink_to(CAPACITY);
        outcome.map_err(into_sink_error)
    }
}

/// Removes `gap` from the row that begins at `start`. Returns its offset in the row; 0 without a gap.
pub(crate) fn cut_hole(rendered: &mut Vec<u8>, start: usize, gap: Option<Range<usize>>) -> usize {
    let Some(gap) = gap else { return 0 };
    let at = gap.start - start;
    rendered.drain(gap);
    at
}

fn into_sink_error(error: std::io::Error) -> SinkError {
    match error.kind() {
        ErrorKind::BrokenPipe => SinkError::Closed,
        ErrorKind::WriteZero => SinkError::Io("the output accepts no more bytes".into()),
        _ => SinkError::Io(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io;

    /// Takes at most `at_most` bytes per call, interrupted every other time, until `room` is used up.
    struct Stingy {
        got: Vec<u8>,
        calls: usize,
        at_most: usize,
        room: usize,
        end: ErrorKind,
    }

    impl Stingy {
        fn new(at_most: usize, room: usize, end: ErrorKind) -> Stingy {
            Stingy { got: Vec::new(), calls: 0, at_most, room, end }
        }
    }

    impl Write for Stingy {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls % 2 == 0 {
                return Err(ErrorKind::Interrupted.into());
            }
            if self.got.len() >= self.room {
                return Err(self.end.into());
            }
            let n = bytes.len().min(self.at_most);
            self.got.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn short_and_interrupted_writes_lose_nothing() {
        let mut out = Out::new(Stingy::new(7, usize::MAX, ErrorKind::Other));
        let mut sent = Vec::new();
        for n in 0..20_000 {
            let line = format!("line {n}\n");
            out.buf().extend_from_slice(line.as_bytes());
            sent.extend_from_slice(line.as_bytes());
            out.line_done().unwrap();
        }
        out.flush().unwrap();
        assert!(out.into_inner().got == sent);
    }

    #[test]
    fn a_closed_reader_and_a_full_disk_are_distinguished() {
        for (end, words) in [
            (ErrorKind::BrokenPipe, "the reader of the output has closed it"),
            (ErrorKind::StorageFull, "cannot write the output: no storage space"),
        ] {
            let mut out = Out::new(Stingy::new(10, 10, end)).each_line(true);
            out.buf().extend_from_slice(b"0123456789");
            out.line_done().unwrap();
            out.buf().extend_from_slice(b"more");
            let error = out.line_done().unwrap_err();
            assert_eq!(error.to_string(), words);
            assert_eq!(matches!(error, SinkError::Closed), end == ErrorKind::BrokenPipe);
            assert!(out.flush().is_ok(), "nothing is tried twice");
        }
    }

    #[test]
    fn lines_wait_for_a_full_block_by_default() {
        let mut out = Out::new(Vec::new());
        out.buf().extend_from_slice(b"a\n");
        out.line_done().unwrap();
        assert!(out.to.is_empty());
        out.buf().resize(FULL, b'x');
        out.line_done().unwrap();
        assert_eq!(out.to.len(), FULL);
        let mut out = Out::new(Vec::new()).each_line(true);
        out.buf().extend_from_slice(b"a\n");
        out.line_done().unwrap();
        assert_eq!(out.to, b"a\n");
    }
}
