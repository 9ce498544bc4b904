//! The writer of a line's parts.

use record::Addr;
use record::text::{Line, put_face, put_hex, u64_len};

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

    /// Appends our own text.
    #[inline]
    pub(super) fn word(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Appends bytes that are known to be harmless.
    #[inline]
    pub(super) fn bytes(&mut self, text: &[u8]) {
        self.line.make_room(self.out);
        if text.len() <= Line::SHORT {
            return self.line.short(text);
        }
        self.line.drain(self.out);
        self.out.extend_from_slice(text);
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.line.make_room(self.out);
        self.line.byte(byte);
    }

    #[inline]
    pub(super) fn number(&mut self, n: u64) {
        self.line.make_room(self.out);
        self.line.decimal(n);
    }

    #[inline]
    pub(super) fn addr(&mut self, addr: Addr) {
        self.line.make_room(self.out);
        self.line.addr(addr);
    }

    /// Appends ` name=number`, the most frequent item.
    #[inline]
    pub(super) fn item(&mut self, name: &str, n: u64) {
        self.word(name);
        self.line.decimal(n);
    }

    pub(super) fn hex(&mut self, n: u64) {
        self.line.drain(self.out);
        put_hex(self.out, n);
    }

    /// Appends a small number, padded on the left with `fill` to `width`.
    pub(super) fn padded(&mut self, fill: u8, width: usize, n: u8) {
        (u64_len(n.into())..width).for_each(|_| self.byte(fill));
        self.number(n.into());
    }

    /// Appends text from outside: bytes that could forge a line or control a terminal become `?`.
    pub(super) fn outside(&mut self, text: &[u8]) {
        self.line.drain(self.out);
        put_face(self.out, text, self.raw);
    }

    /// Appends text from outside in an element.
    pub(super) fn outside_xml(&mut self, text: &[u8]) {
        if self.raw || !text.iter().any(|b| b"<>&\"".contains(b)) {
            return self.outside(text);
        }
        for part in text.split_inclusive(|b| b"<>&\"".contains(b)) {
            let (plain, mark) = match part.split_last() {
                Some((b'<', plain)) => (plain, "&lt;"),
                Some((b'>', plain)) => (plain, "&gt;"),
                Some((b'&', plain)) => (plain, "&amp;"),
                Some((b'"', plain)) => (plain, "&quot;"),
                _ => (part, ""),
            };
            self.outside(plain);
            self.word(mark);
        }
    }

    /// Appends `<name>number</name>`.
    pub(super) fn element(&mut self, name: &str, n: u64) {
        self.open(name);
        self.number(n);
        self.close(name);
    }

    pub(super) fn open(&mut self, name: &str) {
        self.byte(b'<');
        self.word(name);
        self.byte(b'>');
    }

    pub(super) fn close(&mut self, name: &str) {
        self.word("</");
        self.word(name);
        self.byte(b'>');
    }

    /// Completes the line.
    pub(super) fn end(&mut self) {
        self.byte(b'\n');
        self.line.drain(self.out);
    }
}
