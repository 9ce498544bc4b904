//! The writer of a line's parts.

use crate::pieces::{ByteSink, Put, put};
use record::Addr;
use record::text::{Line, put_face};

/// Appends parts to a line, and full lines to the output's buffer. Allocates nothing.
pub(super) struct LineWriter<'a> {
    line: &'a mut Line,
    out: &'a mut Vec<u8>,
    /// True if text from outside is not escaped.
    raw: bool,
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(line: &'a mut Line, out: &'a mut Vec<u8>, raw: bool) -> LineWriter<'a> {
        LineWriter { line, out, raw }
    }

    /// Completes the line.
    pub(super) fn end(&mut self) {
        put!(self, "\n");
        self.line.drain(self.out);
    }
}

impl ByteSink for LineWriter<'_> {
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
        self.line.make_room(self.out);
        self.line.decimal(number);
    }

    #[inline]
    fn addr(&mut self, addr: Addr) {
        self.line.make_room(self.out);
        self.line.addr(addr);
    }

    fn buffer(&mut self) -> &mut Vec<u8> {
        self.line.drain(self.out);
        self.out
    }
}

/// Text from outside: bytes that could forge a line or control a terminal become `?`.
pub(super) struct Outside<'t>(pub(super) &'t [u8]);
/// Text from outside in an element.
pub(super) struct OutsideXml<'t>(pub(super) &'t [u8]);
/// `<name>piece</name>`
pub(super) struct Element<'n, A>(pub(super) &'n str, pub(super) A);

impl Put<LineWriter<'_>> for Outside<'_> {
    fn put(&self, line: &mut LineWriter<'_>) {
        let raw = line.raw;
        put_face(line.buffer(), self.0, raw);
    }
}

impl Put<LineWriter<'_>> for OutsideXml<'_> {
    fn put(&self, line: &mut LineWriter<'_>) {
        if line.raw {
            return Outside(self.0).put(line);
        }
        for part in self.0.split_inclusive(|b| b"<>&\"".contains(b)) {
            let (plain, mark) = match part.split_last() {
                Some((b'<', plain)) => (plain, "&lt;"),
                Some((b'>', plain)) => (plain, "&gt;"),
                Some((b'&', plain)) => (plain, "&amp;"),
                Some((b'"', plain)) => (plain, "&quot;"),
                _ => (part, ""),
            };
            put!(line, Outside(plain), mark);
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
