//! A batch as stored in a segment: a head of fixed size, the lengths of its messages, and their bytes.
//!
//! ```text
//! mark 4 · sum of the head 4 · sum of the rest 4 · messages 4 · first number 8 · stamp 8
//! bytes of lengths 4 · bytes of messages 4
//! lengths, each as LEB128 · classes · messages
//! ```
//! Classes are pairs of LEB128 numbers: a class, and its number of messages. Without pairs, all messages have class 0.
//! The pairs count among the bytes of lengths, so a version that does not know them skips them. All numbers are
//! little-endian. The head has its own checksum, so that a damaged batch can be skipped.

use crate::Batch;
use crate::classes::ClassBytes;
use crc32fast::Hasher;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use sys::folder::write_parts;

/// Bytes of the head.
pub(super) const HEAD_BYTES: usize = 40;
const MARK: [u8; 4] = *b"nwb1";

/// The head of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Number of the first message.
    pub(super) first: u64,
    /// Number of messages.
    pub(super) messages: u32,
    /// When it was stored, in nanoseconds of the spool's clock.
    pub(super) stamp: u64,
    /// Checksum of the bytes after the head.
    sum: u32,
    lengths: u32,
    bytes: u32,
}

impl Head {
    /// Number of the last message, plus one.
    pub(super) fn end(&self) -> u64 {
        self.first.saturating_add(self.messages.into())
    }

    /// Bytes of the whole batch, including its head.
    pub(super) fn size(&self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.lengths) + u64::from(self.bytes)
    }

    /// Bytes between the head and the messages: lengths and classes.
    pub(super) fn lengths(&self) -> usize {
        self.lengths as usize
    }

    /// Parses the head at the beginning of `bytes`; `None` if it is damaged or something else.
    pub(super) fn parse(bytes: &[u8]) -> Option<Head> {
        let head = bytes.first_chunk::<HEAD_BYTES>()?;
        let four = |at: usize| head.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four));
        let eight = |at: usize| head.get(at..)?.first_chunk().map(|eight| u64::from_le_bytes(*eight));
        let is_whole = head.starts_with(&MARK) && four(4)? == crc32fast::hash(head.get(8..)?);
        let parsed = Head {
            sum: four(8)?,
            messages: four(12)?,
            first: eight(16)?,
            stamp: eight(24)?,
            lengths: four(32)?,
            bytes: four(36)?,
        };
        // A length takes at least one byte, so foreign bytes cannot make a large table.
        (is_whole && parsed.messages > 0 && parsed.messages <= parsed.lengths).then_some(parsed)
    }
}

/// Writes the head and the lengths of `batch` to `out`; the bytes of its messages follow unchanged.
pub(super) fn encode(batch: &Batch, stamp: u64, out: &mut Vec<u8>) {
    out.clear();
    out.resize(HEAD_BYTES, 0);
    let mut before = 0;
    for end in batch.message_ends() {
        put_length(out, end - before);
        before = *end;
    }
    if batch.class_runs().any(|(class, _)| class != 0) {
        for (class, messages) in batch.class_runs() {
            put_length(out, class.into());
            put_length(out, messages as u32);
        }
    }
    let lengths = (out.len() - HEAD_BYTES) as u32;
    let mut sum = Hasher::new();
    sum.update(out.get(HEAD_BYTES..).unwrap_or_default());
    sum.update(batch.bytes());
    let sum = sum.finalize();
    let mut head = [0; HEAD_BYTES];
    let parts: [(usize, &[u8]); 7] = [
        (0, &MARK),
        (8, &sum.to_le_bytes()),
        (12, &(batch.message_ends().len() as u32).to_le_bytes()),
        (16, &batch.first_number().to_le_bytes()),
        (24, &stamp.to_le_bytes()),
        (32, &lengths.to_le_bytes()),
        (36, &(batch.bytes().len() as u32).to_le_bytes()),
    ];
    for (at, part) in parts {
        put(&mut head, at, part);
    }
    let own = crc32fast::hash(head.get(8..).unwrap_or_default());
    put(&mut head, 4, &own.to_le_bytes());
    put(out, 0, &head);
}

fn put_length(out: &mut Vec<u8>, mut length: u32) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Writes `parts` one after the other from byte `at` on, with one system call unless the kernel takes only some bytes.
pub(super) fn write_completely<const N: usize>(file: &File, parts: [&[u8]; N], mut at: u64) -> io::Result<()> {
    let mut written = write_parts(file, parts, at)?;
    for part in parts {
        let taken = written.min(part.len());
        written -= taken;
        let rest = part.get(taken..).unwrap_or_default();
        if !rest.is_empty() {
            file.write_all_at(rest, at + taken as u64)?;
        }
        at += part.len() as u64;
    }
    Ok(())
}

/// Overwrites bytes from `at` on.
pub(super) fn put(out: &mut [u8], at: usize, part: &[u8]) {
    if let Some(place) = out.get_mut(at..at + part.len()) {
        place.copy_from_slice(part);
    }
}

/// Messages of consecutive batches that are read, to become one batch.
#[derive(Debug, Default)]
pub(super) struct JoinedMessages {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Classes, each with the index of its first message.
    classes: Vec<(u16, u32)>,
}

impl JoinedMessages {
    /// Adds the messages that follow `head`, at the beginning of `rest`; returns false if they are damaged.
    pub(super) fn add(&mut self, head: &Head, rest: &[u8]) -> bool {
        let (lengths, bytes) = (head.lengths as usize, head.bytes as usize);
        let Some((rest, _)) = lengths.checked_add(bytes).and_then(|size| rest.split_at_checked(size)) else {
            return false;
        };
        if crc32fast::hash(rest) != head.sum {
            return false;
        }
        let (mut lengths, bytes) = rest.split_at(lengths);
        let (base, before) = (self.bytes.len(), self.ends.len());
        let mut end = base as u64;
        for _ in 0..head.messages {
            let Some(length) = take_length(&mut lengths) else { break };
            end += u64::from(length);
            self.ends.push(u32::try_from(end).unwrap_or(u32::MAX));
        }
        let fits = self.ends.len() - before == head.messages as usize && end == (base + bytes.len()) as u64;
        if !fits {
            self.ends.truncate(before);
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        self.add_classes(before, lengths);
        true
    }

    /// Adds the classes that follow the lengths, for messages from index `at` on.
    fn add_classes(&mut self, mut at: usize, mut runs: &[u8]) {
        self.begin_class(0, at);
        while let (Some(class), Some(messages)) = (take_length(&mut runs), take_length(&mut runs)) {
            if at >= self.ends.len() {
                return;
            }
            self.begin_class(class as u16, at);
            at += messages as usize;
        }
    }

    fn begin_class(&mut self, class: u16, at: usize) {
        // Another class may begin at the same message.
        while self.classes.last().is_some_and(|(_, begin)| *begin as usize >= at) {
            self.classes.pop();
        }
        if self.classes.last().map_or(0, |(last, _)| *last) != class {
            self.classes.push((class, at as u32));
        }
    }

    /// Bytes of messages so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the messages as a batch; `first` is the number of the first one.
    pub(super) fn batch(self, first: u64) -> Option<Batch> {
        Some(Batch::of_parts(first, self.bytes, self.ends)?.with_classes(self.classes))
    }
}

/// Adds the bytes of each class to `classes`; `lengths` are the bytes between the head and the messages.
pub(super) fn add_class_bytes(head: &Head, lengths: &[u8], classes: &mut ClassBytes) {
    let mut runs = lengths;
    if (0..head.messages).any(|_| take_length(&mut runs).is_none()) {
        return;
    }
    let (mut lengths, mut left, mut before) = (lengths, head.messages, u64::from(head.bytes));
    while let (Some(class), Some(messages)) = (take_length(&mut runs), take_length(&mut runs)) {
        let messages = messages.min(left);
        let bytes: u64 = (0..messages).filter_map(|_| take_length(&mut lengths)).map(u64::from).sum();
        classes.add(class as u16, bytes.min(before));
        (left, before) = (left - messages, before.saturating_sub(bytes));
    }
    if left > 0 {
        classes.add(0, before);
    }
}

fn take_length(lengths: &mut &[u8]) -> Option<u32> {
    let mut length: u64 = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = lengths.split_first()?;
        *lengths = rest;
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(length).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut batch = Batch::new();
        for (length, class) in [(3, 0), (0, 7), (127, 7), (128, 65_535), (70_000, 0)] {
            batch.set_class(class);
            let end = batch.bytes().len() + length;
            batch.bytes_mut().resize(end, b"a"[0] + (length % 7) as u8);
            batch.end_message();
        }
        batch.number_from(77);
        let mut bytes = Vec::new();
        encode(&batch, 5, &mut bytes);
        let head = Head::parse(&bytes).unwrap();
        bytes.extend_from_slice(batch.bytes());
        assert_eq!((head.first, head.end(), head.stamp, head.size()), (77, 82, 5, bytes.len() as u64));
        let mut joined = JoinedMessages::default();
        assert!(joined.add(&head, &bytes[HEAD_BYTES..]));
        assert_eq!(joined.batch(77).unwrap(), batch);
        let mut classes = ClassBytes::default();
        add_class_bytes(&head, &bytes[HEAD_BYTES..HEAD_BYTES + head.lengths()], &mut classes);
        assert_eq!(classes.iter().collect::<Vec<_>>(), [(0, 70_003), (7, 127), (65_535, 128)]);
        assert_eq!(classes.total(), batch.bytes().len() as u64);
        let mut twice = JoinedMessages::default();
        assert!(twice.add(&head, &bytes[HEAD_BYTES..]) && twice.add(&head, &bytes[HEAD_BYTES..]));
        let runs = [(0, 1), (7, 2), (65_535, 1), (0, 2), (7, 2), (65_535, 1), (0, 1)];
        assert_eq!(twice.batch(0).unwrap().class_runs().collect::<Vec<_>>(), runs);
        for at in [0, 10, 39] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(Head::parse(&other), None);
        }
        for at in [HEAD_BYTES, HEAD_BYTES + 5, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(!JoinedMessages::default().add(&head, &other[HEAD_BYTES..]));
        }
        assert!(!JoinedMessages::default().add(&head, &bytes[HEAD_BYTES..bytes.len() - 1]));
    }
}
