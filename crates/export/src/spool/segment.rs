//! A segment: a file with a header, then batches numbered without gaps. A rewritten file (version 2) may have gaps
//! where messages were dropped to make room.

use super::frame::{self, HEAD_BYTES, Head, JoinedMessages, put};
use crate::classes::ClassBytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The newest version that this program reads.
pub(super) const VERSION: u16 = REWRITTEN;
/// The version of a file that batches are appended to.
const APPENDED: u16 = 1;
/// The version of a file that replaced one or two others.
const REWRITTEN: u16 = 2;
/// Bytes of the header: magic 8, version 2, size 2, sum 4, first number 8, and 8 for the file's origin. For a
/// rewritten file the origin is the number after the last message that the file covers, for others [`REUSED`] or 0.
pub(super) const HEADER: usize = 32;
const MAGIC: [u8; 8] = *b"nwspool\n";
/// The file is reused: bytes of delivered batches may follow its own.
const REUSED: u64 = 1;
/// The suffix of segments' names.
const SUFFIX: &str = ".segment";
/// The suffix of the names of unfinished replacements.
const NEW: &str = ".new";
/// Bytes between two batches whose offsets are remembered.
const MARK_EVERY: u64 = 256 << 10;
/// Bytes that are read at once to find heads.
const WINDOW: usize = 4 << 10;
/// Bytes that are read at once for delivery.
const READ_BYTES: usize = 256 << 10;

/// A source that is read at an offset: a file, or bytes in a test.
pub(super) trait ReadAt {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, at)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let (from, into) = (from.iter(), into.iter_mut());
        Ok(from.zip(into).map(|(from, into)| *into = *from).count())
    }
}

/// Reads until `into` is full or the source ends.
fn fill(file: &(impl ReadAt + ?Sized), into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The origin of a segment's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentOrigin {
    /// A new file.
    New,
    /// A file whose messages had been delivered; some of their bytes may follow those written since.
    Reused,
    /// One or two other segments; the file covers all messages below `until`.
    Rewritten { until: u64 },
}

impl SegmentOrigin {
    /// The number below which a rewritten file covers all messages.
    pub(super) fn end_number(self) -> Option<u64> {
        match self {
            SegmentOrigin::Rewritten { until } => Some(until),
            SegmentOrigin::New | SegmentOrigin::Reused => None,
        }
    }
}

/// The result of reading a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A segment, whose messages have numbers from `first` on.
    Ours { first: u64, made: SegmentOrigin },
    /// A segment of another version.
    Version(u16),
    /// The header was not written before the power failed.
    Torn,
    /// Something else.
    Foreign,
}

/// The name of the segment whose first message has the number `first`.
pub(super) fn name_of(first: u64) -> String {
    format!("{first:020}{SUFFIX}")
}

/// The name of an unfinished replacement of that segment.
pub(super) fn new_name_of(first: u64) -> String {
    format!("{first:020}{NEW}")
}

/// True for names of segments.
pub(super) fn is_name(name: &str) -> bool {
    is_number(name.strip_suffix(SUFFIX))
}

/// True for names of unfinished replacements.
pub(super) fn is_new_name(name: &str) -> bool {
    is_number(name.strip_suffix(NEW))
}

fn is_number(digits: Option<&str>) -> bool {
    digits.is_some_and(|digits| digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Encodes the header of a segment.
pub(super) fn header(first: u64, made: SegmentOrigin) -> [u8; HEADER] {
    let (version, of) = match made {
        SegmentOrigin::New => (APPENDED, 0),
        SegmentOrigin::Reused => (APPENDED, REUSED),
        SegmentOrigin::Rewritten { until } => (REWRITTEN, until),
    };
    let mut header = [0; HEADER];
    put(&mut header, 0, &MAGIC);
    put(&mut header, 8, &version.to_le_bytes());
    put(&mut header, 10, &(HEADER as u16).to_le_bytes());
    put(&mut header, 16, &first.to_le_bytes());
    put(&mut header, 24, &of.to_le_bytes());
    let sum = crc32fast::hash(header.get(16..).unwrap_or_default());
    put(&mut header, 12, &sum.to_le_bytes());
    header
}

/// Reads the header of a file.
pub(super) fn read_header(file: &(impl ReadAt + ?Sized)) -> io::Result<Header> {
    let mut bytes = [0; HEADER];
    let filled = fill(file, &mut bytes, 0)?;
    let sum = bytes.get(12..).and_then(|rest| rest.first_chunk().copied()).map(u32::from_le_bytes);
    let own = bytes.iter().zip(&MAGIC).take_while(|(byte, own)| byte == own).count();
    if own < MAGIC.len() {
        // A power failure leaves any part of the first write, and possibly zeros after it.
        let is_torn = bytes.get(own..).unwrap_or_default().iter().all(|byte| *byte == 0);
        return Ok(if is_torn { Header::Torn } else { Header::Foreign });
    }
    let version = bytes.get(8..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u16::from_le_bytes);
    if version > VERSION {
        return Ok(Header::Version(version));
    }
    let is_whole = sum == Some(crc32fast::hash(bytes.get(16..).unwrap_or_default()));
    if !is_whole || version == 0 || filled < HEADER {
        return Ok(Header::Torn);
    }
    let eight = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u64::from_le_bytes);
    let made = match (version, eight(24)) {
        (REWRITTEN, until) => SegmentOrigin::Rewritten { until },
        (_, REUSED) => SegmentOrigin::Reused,
        _ => SegmentOrigin::New,
    };
    Ok(Header::Ours { first: eight(16), made })
}

/// A segment, with the facts that are known without reading it.
#[derive(Debug)]
pub(super) struct Segment {
    /// Number of the first message.
    pub(super) first: u64,
    /// Number of the last message, plus one.
    pub(super) end: u64,
    /// Bytes of the header and the intact batches; bytes after them do not belong to the segment.
    pub(super) len: u64,
    /// When the first batch was stored, by the spool's clock.
    pub(super) stamp_first: u64,
    /// When the last batch was stored.
    pub(super) stamp_last: u64,
    /// Bytes of messages of each class.
    pub(super) classes: ClassBytes,
    /// Number and offset of some batches, in order.
    marks: Vec<(u64, u64)>,
}

impl Segment {
    /// A segment with nothing but its header.
    pub(super) fn new(first: u64, stamp: u64) -> Segment {
        let (len, classes, marks) = (HEADER as u64, ClassBytes::default(), Vec::new());
        Segment { first, end: first, len, stamp_first: stamp, stamp_last: stamp, classes, marks }
    }

    /// Records that a batch was appended, except for its classes.
    pub(super) fn add_batch(&mut self, end: u64, stamp: u64, size: u64) {
        if self.marks.last().is_none_or(|(_, place)| place + MARK_EVERY <= self.len) {
            self.marks.push((self.end, self.len));
        }
        if self.end == self.first {
            self.stamp_first = stamp;
        }
        self.end = end;
        self.stamp_last = stamp;
        self.len += size;
    }

    /// Records that this batch was appended.
    pub(super) fn note_batch(&mut self, batch: &crate::Batch, stamp: u64, size: u64) {
        batch.class_bytes().for_each(|(class, bytes)| self.classes.add(class, bytes));
        self.add_batch(batch.end(), stamp, size);
    }

    /// Finds the batches of a file of `len` bytes that begins with a header; with `verify`, also reads their messages.
    /// Ends at the last intact batch. Missing numbers are added to `holes`; if that is `None`, they also end the
    /// segment.
    pub(super) fn scan(
        file: &(impl ReadAt + ?Sized),
        first: u64,
        len: u64,
        verify: bool,
        mut holes: Option<&mut Vec<(u64, u64)>>,
    ) -> io::Result<Segment> {
        let mut segment = Segment::new(first, 0);
        let mut walk = HeadReader::new(file, len);
        while let Some(head) = walk.head(segment.len)? {
            let is_next = head.first == segment.end || (head.first > segment.end && holes.is_some());
            if !is_next || (verify && !is_intact(file, &head, segment.len)?) {
                break;
            }
            if let Some(holes) = holes.as_mut().filter(|_| head.first > segment.end) {
                holes.push((segment.end, head.first));
            }
            let lengths = walk.bytes(segment.len + HEAD_BYTES as u64, head.lengths())?;
            frame::add_class_bytes(&head, lengths, &mut segment.classes);
            segment.add_batch(head.end(), head.stamp, head.size());
        }
        Ok(segment)
    }

    /// True if another batch begins after the last intact one; that batch must then be torn.
    pub(super) fn is_cut_short(&self, file: &(impl ReadAt + ?Sized)) -> io::Result<bool> {
        let mut bytes = [0; HEAD_BYTES];
        let filled = fill(file, &mut bytes, self.len)?;
        Ok(Head::parse(bytes.get(..filled).unwrap_or_default()).is_some_and(|head| head.first == self.end))
    }

    /// Finds the batch with message `number`: its offset and its head. `hint` is the number and the offset of a known
    /// batch.
    fn place_of(
        &self,
        file: &(impl ReadAt + ?Sized),
        number: u64,
        hint: (u64, u64),
    ) -> io::Result<Option<(u64, Head)>> {
        let at = self.marks.partition_point(|(marked, _)| *marked <= number);
        let marked = at.checked_sub(1).and_then(|at| self.marks.get(at)).copied();
        let (_, mut place) = marked.unwrap_or((self.first, HEADER as u64));
        if hint.0 <= number && hint.1 > place {
            place = hint.1;
        }
        let mut walk = HeadReader::new(file, self.len);
        while let Some(head) = walk.head(place)? {
            if head.end() > number {
                return Ok(Some((place, head)));
            }
            place += head.size();
        }
        Ok(None)
    }

    /// Reads and joins batches from the one with message `number` on, up to 256 KiB.
    pub(super) fn read(
        &self,
        file: &(impl ReadAt + ?Sized),
        number: u64,
        hint: (u64, u64),
        expired_before: u64,
    ) -> io::Result<ReadResult> {
        let Some((mut place, head)) = self.place_of(file, number, hint)? else {
            return Ok(ReadResult::Damaged { end: self.end });
        };
        if head.stamp < expired_before {
            return Ok(ReadResult::Expired { end: head.end(), place: place + head.size() });
        }
        let most = usize::try_from(self.len - place).unwrap_or(usize::MAX);
        let size = usize::try_from(head.size()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size.max(READ_BYTES).min(most)];
        let filled = fill(file, &mut bytes, place)?;
        bytes.truncate(filled);
        let (mut joined, mut end, mut rest) = (JoinedMessages::default(), head.first, bytes.as_slice());
        while let Some(next) = Head::parse(rest).filter(|next| next.first == end) {
            let size = usize::try_from(next.size()).unwrap_or(usize::MAX);
            let is_next = rest.len() >= size && next.stamp >= expired_before && joined.len() < READ_BYTES;
            if !is_next || !joined.add(&next, rest.get(HEAD_BYTES..).unwrap_or_default()) {
                break;
            }
            (end, place) = (next.end(), place + next.size());
            rest = rest.get(size..).unwrap_or_default();
        }
        match joined.batch(head.first).filter(|batch| !batch.is_empty()) {
            Some(batch) => Ok(ReadResult::Batch { batch, place }),
            None => Ok(ReadResult::Damaged { end: head.end() }),
        }
    }
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum ReadResult {
    /// Messages, and the offset after them.
    Batch { batch: crate::Batch, place: u64 },
    /// Messages up to number `end` are too old; `place` is the offset after them.
    Expired { end: u64, place: u64 },
    /// Messages up to number `end` are damaged.
    Damaged { end: u64 },
}

fn is_intact(file: &(impl ReadAt + ?Sized), head: &Head, place: u64) -> io::Result<bool> {
    let size = usize::try_from(head.size()).unwrap_or(usize::MAX) - HEAD_BYTES;
    let mut bytes = vec![0; size];
    let filled = fill(file, &mut bytes, place + HEAD_BYTES as u64)?;
    Ok(filled == size && JoinedMessages::default().add(head, &bytes))
}

/// Reads one head after the other; if batches are small, several with one system call.
struct HeadReader<'f, F: ReadAt + ?Sized> {
    file: &'f F,
    len: u64,
    window: Vec<u8>,
    /// Offset of the window in the file.
    begin: u64,
    read_at_once: usize,
}

impl<'f, F: ReadAt + ?Sized> HeadReader<'f, F> {
    fn new(file: &'f F, len: u64) -> HeadReader<'f, F> {
        HeadReader { file, len, window: Vec::new(), begin: 0, read_at_once: WINDOW }
    }

    /// Returns the head at `place`, if a batch begins there that lies within the file.
    fn head(&mut self, place: u64) -> io::Result<Option<Head>> {
        let head = Head::parse(self.bytes(place, HEAD_BYTES)?);
        Ok(head.filter(|head| place.saturating_add(head.size()) <= self.len))
    }

    /// Returns `size` bytes from `place` on; fewer if the file ends before.
    fn bytes(&mut self, place: u64, size: usize) -> io::Result<&[u8]> {
        let is_inside = self.begin <= place && place + size as u64 <= self.begin + self.window.len() as u64;
        if !is_inside {
            self.window.resize(size.max(self.read_at_once), 0);
            let filled = fill(self.file, &mut self.window, place)?;
            self.window.truncate(filled);
            self.begin = place;
        }
        let within = usize::try_from(place - self.begin).unwrap_or(usize::MAX);
        let rest = self.window.get(within..).unwrap_or_default();
        Ok(rest.get(..size).unwrap_or(rest))
    }
}

/// Iterates over the batches of a segment, in the form in which they were written.
pub(super) struct Batches<'f, F: ReadAt + ?Sized> {
    walk: HeadReader<'f, F>,
    place: u64,
}

impl<'f, F: ReadAt + ?Sized> Batches<'f, F> {
    pub(super) fn new(file: &'f F, len: u64) -> Batches<'f, F> {
        Batches { walk: HeadReader { read_at_once: READ_BYTES, ..HeadReader::new(file, len) }, place: HEADER as u64 }
    }

    /// Returns the next intact batch.
    pub(super) fn next(&mut self) -> io::Result<Option<(Head, crate::Batch)>> {
        while let Some(head) = self.walk.head(self.place)? {
            let size = usize::try_from(head.size()).unwrap_or(usize::MAX) - HEAD_BYTES;
            let mut joined = JoinedMessages::default();
            let is_whole = joined.add(&head, self.walk.bytes(self.place + HEAD_BYTES as u64, size)?);
            self.place += head.size();
            if let Some(batch) = joined.batch(head.first).filter(|_| is_whole) {
                return Ok(Some((head, batch)));
            }
        }
        Ok(None)
    }
}

/// Reads bytes as a segment, in every way that the spool does; for the fuzzer.
pub fn fuzz_spool_segment(data: &[u8]) {
    let Ok(Header::Ours { first, made }) = read_header(data) else { return };
    let len = data.len() as u64;
    for verify in [true, false] {
        let mut holes = Vec::new();
        let Ok(segment) = Segment::scan(data, first, len, verify, made.end_number().map(|_| &mut holes)) else {
            return;
        };
        assert!(segment.len <= len.max(HEADER as u64), "a segment longer than its file");
        let (mut number, mut hint) = (segment.first, (0, 0));
        while number < segment.end {
            let before = number;
            match segment.read(data, number, hint, 1) {
                Ok(ReadResult::Batch { batch, place }) => {
                    let is_hole = holes.iter().any(|(from, to)| (*from..*to).contains(&number));
                    assert!((batch.first_number() <= number) != is_hole, "messages of other numbers");
                    assert!(batch.end() <= segment.end, "more than there is");
                    (number, hint) = (batch.end(), (batch.end(), place));
                }
                Ok(ReadResult::Expired { end, place }) => (number, hint) = (end, (end, place)),
                Ok(ReadResult::Damaged { end }) => number = end,
                Err(_) => return,
            }
            assert!(number > before, "reading goes on");
        }
        let mut batches = Batches::new(data, segment.len);
        while let Ok(Some((head, batch))) = batches.next() {
            assert!(head.first == batch.first_number() && batch.end() <= segment.end, "a batch of other numbers");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn headers_are_known_or_refused() {
        let ours = header(7, SegmentOrigin::New);
        for made in [SegmentOrigin::New, SegmentOrigin::Reused, SegmentOrigin::Rewritten { until: 9 }] {
            assert_eq!(read_header(&header(7, made)[..]).unwrap(), Header::Ours { first: 7, made });
        }
        assert_eq!(read_header(&ours[..20]).unwrap(), Header::Torn);
        assert_eq!(read_header(&ours[..4]).unwrap(), Header::Torn);
        assert_eq!(read_header(&b""[..]).unwrap(), Header::Torn);
        // The last bytes of this header are zeros.
        for written in (0..ours.len()).filter(|written| ours[*written..].iter().any(|byte| *byte != 0)) {
            let torn = [&ours[..written], &[0; 4096][..]].concat();
            assert_eq!(read_header(&torn[..]).unwrap(), Header::Torn, "{written} bytes of a header, then zeros");
        }
        assert_eq!(read_header(&b"#!/bin/sh\necho something else\n...."[..]).unwrap(), Header::Foreign);
        let mut newer = ours;
        newer[8] = 3;
        assert_eq!(read_header(&newer[..]).unwrap(), Header::Version(3));
        assert!(is_name(&name_of(u64::MAX)) && !is_name("1.segment") && !is_name("x"));
        assert!(is_new_name(&new_name_of(7)) && !is_new_name(&name_of(7)) && !is_name(&new_name_of(7)));
    }
}
