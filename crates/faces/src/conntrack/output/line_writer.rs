//! The writer of a line's parts.

use crate::pieces::{LineBuffer, Outside, Put, put};
use record::Addr;
use record::text::Line;

/// Appends parts to a line, and full lines to the output's buffer. Allocates nothing.
///
/// Texts make room also for the number or address after them, because a check at each took a sixth of a line's time.
pub(super) struct LineWriter<'a> {
    line: &'a mut Line,
    out: &'a mut Vec<u8>,
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(line: &'a mut Line, out: &'a mut Vec<u8>) -> LineWriter<'a> {
        LineWriter { line, out }
    }

    /// Completes the line.
    pub(super) fn end(&mut self) {
        put!(self, "\n");
        self.line.drain(self.out);
    }
}

impl LineBuffer for LineWriter<'_> {
    #[inline]
    fn text(&mut self, text: &str) {
        self.line.make_room(self.out);
        if text.len() <= Line::SHORT {
            return self.line.put_short(text.as_bytes());
        }
        self.line.drain(self.out);
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn decimal(&mut self, number: u64) {
        self.line.decimal(number);
    }

    #[inline]
    fn addr(&mut self, addr: Addr) {
        self.line.addr(addr);
    }

    fn buffer(&mut self) -> &mut Vec<u8> {
        self.line.drain(self.out);
        self.out
    }
}

/// Text from outside in an element, and whether it is printed raw.
pub(super) struct OutsideXml<'t>(pub(super) &'t [u8], pub(super) bool);
/// `<name>piece</name>`
pub(super) struct Element<'n, A>(pub(super) &'n str, pub(super) A);

impl Put<LineWriter<'_>> for OutsideXml<'_> {
    fn put(&self, line: &mut LineWriter<'_>) {
        if self.1 {
            return Outside(self.0, true).put(line);
        }
        for part in self.0.split_inclusive(|b| b"<>&\"".contains(b)) {
            let (plain, mark) = match part.split_last() {
                Some((b'<', plain)) => (plain, "&lt;"),
                Some((b'>', plain)) => (plain, "&gt;"),
                Some((b'&', plain)) => (plain, "&amp;"),
                Some((b'"', plain)) => (plain, "&quot;"),
                _ => (part, ""),
            };
            put!(line, Outside(plain, false), mark);
        }
    }
}

impl<'a, A: Put<LineWriter<'a>>> Put<LineWriter<'a>> for Element<'_, A> {
    fn put(&self, line: &mut LineWriter<'a>) {
        put!(line, "<", self.0, ">");
        self.1.put(line);
        put!(line, "</", self.0, ">");
    }
}
