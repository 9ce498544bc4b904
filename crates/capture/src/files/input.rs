//! Bytes of a file, some at a time.

use std::io::{self, Read};

/// Bytes that are read at one time.
const CHUNK: usize = 1 << 20;

/// A file that is read from its begin to its end. Memory: [`CHUNK`] and the largest record so far.
pub(super) struct Input {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    /// Bytes that were read and not taken yet are `buffer[begin..end]`.
    begin: usize,
    end: usize,
    /// Bytes before `begin`.
    offset: u64,
    is_over: bool,
}

impl Input {
    pub(super) fn new(reader: Box<dyn Read>) -> Input {
        Input { reader, buffer: vec![0; CHUNK], begin: 0, end: 0, offset: 0, is_over: false }
    }

    /// Bytes that were taken so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that can be had without reading.
    pub(super) fn waiting(&self) -> usize {
        self.end - self.begin
    }

    /// Reads until so many bytes can be taken, and says how many can: fewer at the end of the file only. After an error
    /// nothing is lost.
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
                // Grows with what is there, not with what is claimed.
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

    /// The next bytes, which stay; no more than [`Input::fill`] has counted.
    #[inline]
    pub(super) fn peek(&self, bytes: usize) -> &[u8] {
        let end = (self.begin + bytes).min(self.end);
        self.buffer.get(self.begin..end).unwrap_or_default()
    }

    /// Takes them.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        let bytes = bytes.min(self.waiting());
        let begin = self.begin;
        self.begin += bytes;
        self.offset += bytes as u64;
        self.buffer.get(begin..begin + bytes).unwrap_or_default()
    }
}
