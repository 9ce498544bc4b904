//! Buffered input of a file.

use std::io::{self, Read};

/// Number of bytes read at one time.
const CHUNK: usize = 1 << 20;

/// A file that is read from start to end. Memory: [`CHUNK`], or the size of the largest record so far.
pub(super) struct Input {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    /// The bytes read but not taken yet are `buffer[begin..end]`.
    begin: usize,
    end: usize,
    /// Number of bytes before `begin`.
    offset: u64,
    is_over: bool,
}

impl Input {
    pub(super) fn new(reader: Box<dyn Read>) -> Input {
        Input { reader, buffer: vec![0; CHUNK], begin: 0, end: 0, offset: 0, is_over: false }
    }

    /// Number of bytes taken so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of bytes available without reading.
    pub(super) fn waiting(&self) -> usize {
        self.end - self.begin
    }

    /// Reads until `bytes` bytes are available, and returns the number available, which is smaller only at the end of
    /// the file. An error loses no data.
    #[inline]
    pub(super) fn fill(&mut self, bytes: usize) -> io::Result<usize> {
        if self.waiting() < bytes { self.read(bytes) } else { Ok(bytes) }
    }

    #[cold]
    fn read(&mut self, bytes: usize) -> io::Result<usize> {
        if self.begin + bytes > self.buffer.len() {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        while self.waiting() < bytes && !self.is_over {
            if self.end == self.buffer.len() {
                // Grows with the available data, not with the claimed size.
                let larger = self.buffer.len().saturating_mul(2).min(self.begin + bytes).max(self.end + 1);
                self.buffer.resize(larger, 0);
            }
            let Some(room) = self.buffer.get_mut(self.end..) else { break };
            let count = self.reader.read(room)?;
            self.end += count.min(room.len());
            self.is_over = count == 0;
        }
        Ok(self.waiting().min(bytes))
    }

    /// The next bytes, without taking them; at most as many as [`Input::fill`] returned.
    #[inline]
    pub(super) fn peek(&self, bytes: usize) -> &[u8] {
        let end = (self.begin + bytes).min(self.end);
        self.buffer.get(self.begin..end).unwrap_or_default()
    }

    /// Takes the next bytes.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        let bytes = bytes.min(self.waiting());
        let begin = self.begin;
        self.begin += bytes;
        self.offset += bytes as u64;
        self.buffer.get(begin..begin + bytes).unwrap_or_default()
    }
}
