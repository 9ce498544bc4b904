//! The segments of a spool: what is appended, read and removed.

use super::place::Place;
use super::reuse::{Active, DeliveredFiles, KEEPS_UP_BYTES, REUSE_BYTES};
use super::rewrite::{Giving, Rewriter, Rewritten};
use super::segment::{self, Batches, Made, Read, Segment};
use super::{SpoolError, SpoolOptions, SyncWhen, frame};
use crate::Batch;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

/// Segments in order, and the files that are open.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) place: Place,
    pub(super) segments: VecDeque<Segment>,
    /// Bytes of all segments.
    pub(super) bytes: u64,
    /// The largest segment has so many bytes and the rest of a batch,
    segment_bytes: u64,
    /// and one that is so old, in nanoseconds.
    segment_age: u64,
    /// The last segment, if batches may be appended to it.
    active: Option<Active>,
    /// Files that may become segments again.
    delivered: DeliveredFiles,
    /// Segments before that one which were written since they were last taken by [`Disk::take_unsynced`].
    unsynced: Vec<(u64, Arc<File>)>,
    /// False if nobody asks for them.
    keeps_unsynced: bool,
    syncs_always: bool,
    /// The segment that is being read, by its first number.
    reading: Option<(u64, File)>,
    /// A place in it: its first number, the number of a message, where its batch begins.
    cursor: (u64, u64, u64),
    /// Head and lengths of the batch that is being written.
    head: Vec<u8>,
}

impl Disk {
    pub(super) fn new(place: Place, segments: VecDeque<Segment>, options: &SpoolOptions) -> Disk {
        let age = options.age_max.unwrap_or(Duration::MAX);
        Disk {
            place,
            bytes: segments.iter().map(|segment| segment.len).sum(),
            segments,
            segment_bytes: options.segment_bytes,
            segment_age: u64::try_from(age.as_nanos() / 8).unwrap_or(u64::MAX),
            active: None,
            delivered: DeliveredFiles::default(),
            unsynced: Vec::new(),
            keeps_unsynced: options.sync == SyncWhen::EverySecond,
            syncs_always: options.sync == SyncWhen::Always,
            reading: None,
            cursor: (0, 0, 0),
            head: Vec::new(),
        }
    }

    /// Appends a batch by one system call. After an error nothing of it is there.
    pub(super) fn append(&mut self, batch: &Batch, stamp: u64) -> io::Result<()> {
        let goes_on = self.active.is_some()
            && self.segments.back().is_some_and(|last| {
                let is_young = stamp.saturating_sub(last.stamp_first) < self.segment_age;
                last.end == batch.first() && last.len < self.segment_bytes_max() && is_young
            });
        if !goes_on {
            self.seal();
            self.begin(batch.first(), stamp)?;
        }
        frame::encode(batch, stamp, &mut self.head);
        let (Some(active), Some(last)) = (&mut self.active, self.segments.back_mut()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if let Err(error) = active.write(&self.head, batch.bytes(), last.len) {
            // If this fails, too, the next batch is written over the torn one.
            let _ = active.cut(last.len);
            self.forget_delivered();
            return Err(error);
        }
        let size = (self.head.len() + batch.bytes().len()) as u64;
        last.note_batch(batch, stamp, size);
        self.bytes += size;
        Ok(())
    }

    /// A segment of so many bytes is followed by a new one now.
    pub(super) fn segment_bytes_max(&self) -> u64 {
        if self.bytes < KEEPS_UP_BYTES { self.segment_bytes.min(REUSE_BYTES) } else { self.segment_bytes }
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let folder = &self.place.folder;
        let created = folder.create(name).or_else(|error| {
            // One that could not be removed: its messages are not known any more.
            if error.errno == sys::Errno::EXIST {
                folder.remove(name)?;
                return folder.create(name);
            }
            Err(error)
        });
        created.map_err(of_sys)
    }

    fn begin(&mut self, first: u64, stamp: u64) -> io::Result<()> {
        let active = match self.delivered.begin(&self.place, first) {
            Some(active) => active,
            None => {
                let name = segment::name_of(first);
                let file = self.create(&name)?;
                if let Err(error) = file.write_all_at(&segment::header(first, Made::New), 0) {
                    let _ = self.place.folder.remove(&name);
                    return Err(error);
                }
                Active::new(file)
            }
        };
        let segment = Segment::new(first, stamp);
        self.bytes += segment.len;
        self.segments.push_back(segment);
        self.active = Some(active);
        Ok(())
    }

    /// Nothing is appended to the last segment any more.
    pub(super) fn seal(&mut self) {
        if let Some(mut active) = self.active.take() {
            let Some(last) = self.segments.back() else { return };
            if last.end == last.first {
                self.remove(self.segments.len() - 1);
                return;
            }
            // What stays there is known to be old by its numbers.
            let _ = active.cut_old(last.len);
            if self.keeps_unsynced {
                self.unsynced.push((last.first, active.file));
            }
        }
    }

    /// Removes a segment; `None` if there is none with that index. A file that cannot be removed is found again when
    /// the spool is opened, and its messages, which the position says are delivered, are not.
    pub(super) fn remove(&mut self, index: usize) -> Option<Segment> {
        let segment = self.let_go(index)?;
        let _ = self.place.folder.remove(segment::name_of(segment.first));
        Some(segment)
    }

    /// Removes the oldest segment, which is delivered. Its file may be kept to be written again.
    pub(super) fn retire(&mut self) {
        if let Some(segment) = self.let_go(0) {
            let is_small = segment.len < 2 * self.segment_bytes.min(REUSE_BYTES);
            self.delivered.keep(&self.place, segment.first, is_small);
        }
    }

    /// Removes the files that were kept to be written again.
    pub(super) fn forget_delivered(&mut self) {
        self.delivered.remove(&self.place);
    }

    /// Forgets a segment, but for its file.
    fn let_go(&mut self, index: usize) -> Option<Segment> {
        if index + 1 == self.segments.len() {
            self.active = None;
        }
        let segment = self.segments.remove(index)?;
        // A removed file takes room as long as it is open.
        self.forget(segment.first);
        self.bytes -= segment.len;
        Some(segment)
    }

    /// Closes the file of a segment that ends, or changes.
    fn forget(&mut self, first: u64) {
        self.unsynced.retain(|(unsynced, _)| *unsynced != first);
        if self.reading.as_ref().is_some_and(|(reading, _)| *reading == first) {
            self.reading = None;
        }
        if self.cursor.0 == first {
            self.cursor = (0, 0, 0);
        }
    }

    /// True if what is left of a segment after `gives` bytes are gone is to go into the file before it: so small rests
    /// do not become files without number, and no more is written than in proportion to what is gone.
    pub(super) fn should_join(&self, index: usize, gives: u64) -> bool {
        let before = index.checked_sub(1).and_then(|before| self.segments.get(before));
        let (Some(before), Some(segment)) = (before, self.segments.get(index)) else { return false };
        let len = before.len + segment.len.saturating_sub(gives);
        let age = segment.stamp_last.saturating_sub(before.stamp_first);
        len <= self.segment_bytes / 2 && before.len / 4 <= gives && age < self.segment_age
    }

    /// Writes a segment anew without what `giving` takes out of it; if `joins`, into the file of the one before it.
    /// Whenever the program is killed, either the old files are there or the new one. After an error nothing has
    /// changed.
    pub(super) fn rewrite(&mut self, index: usize, joins: bool, giving: &mut Giving) -> io::Result<RewrittenAs> {
        if index + 1 == self.segments.len() {
            self.seal();
        }
        let begin = index - usize::from(joins);
        let first = self.segments.get(begin).map_or(0, |segment| segment.first);
        let new_name = segment::new_name_of(first);
        let written = self.write_anew(begin..index + 1, &new_name, giving);
        let old: u64 = self.segments.range(begin..index + 1).map(|segment| segment.len).sum();
        let written = written.and_then(|written| {
            if written.segment.len >= old {
                return Err(io::Error::other("nothing went"));
            }
            if self.keeps_unsynced || self.syncs_always {
                // The name is not to lead to a file that the disk does not have.
                written.file.sync_data()?;
            }
            self.place.folder.rename(&new_name, segment::name_of(first)).map_err(of_sys)?;
            Ok(written)
        });
        let written = written.inspect_err(|_| drop(self.place.folder.remove(&new_name)))?;
        for _ in begin..index {
            self.remove(index);
        }
        self.forget(first);
        if let Some(segment) = self.segments.get_mut(begin) {
            self.bytes = self.bytes - segment.len + written.segment.len;
            *segment = written.segment;
        }
        Ok(RewrittenAs { first, kept: written.kept, gone: written.gone })
    }

    /// Only of the last of these segments something goes.
    fn write_anew(&self, indices: Range<usize>, name: &str, giving: &mut Giving) -> io::Result<Rewritten> {
        let old = || self.segments.range(indices.clone());
        let (first, until) = (old().next().map_or(0, |old| old.first), old().last().map_or(0, |old| old.end));
        let mut rewriter = Rewriter::new(self.create(name)?, first, until, self.segment_age / 8)?;
        let mut giving = Some(giving);
        for (segment, index) in old().zip(indices.clone()) {
            let file = self.place.file(&segment::name_of(segment.first)).map_err(io::Error::other)?;
            let mut giving = giving.take_if(|_| index + 1 == indices.end);
            let mut batches = Batches::new(&file, segment.len);
            while let Some((head, batch)) = batches.next()? {
                rewriter.add(&head, &batch, giving.as_deref_mut())?;
            }
        }
        rewriter.finish()
    }

    /// Reads from message `number` on, or from the first one after it. `None` if no segment has any.
    pub(super) fn read(&mut self, number: u64, expired_before: u64) -> io::Result<Option<(u64, Read)>> {
        let index = self.segments.partition_point(|segment| segment.end <= number);
        let Some(segment) = self.segments.get(index) else { return Ok(None) };
        let from = number.max(segment.first);
        if self.reading.as_ref().is_none_or(|(first, _)| *first != segment.first) {
            self.reading = None;
            match self.place.file(&segment::name_of(segment.first)) {
                Ok(file) => self.reading = Some((segment.first, file)),
                Err(SpoolError::Failed { error, .. }) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                // Removed or replaced by somebody else.
                Err(_) => return Ok(Some((from, Read::Damaged { end: segment.end }))),
            }
        }
        let Some((_, file)) = &self.reading else { return Ok(None) };
        let hint = if self.cursor.0 == segment.first { (self.cursor.1, self.cursor.2) } else { (0, 0) };
        let read = segment.read(file, from, hint, expired_before)?;
        self.cursor = match &read {
            Read::Batch { batch, place } => (segment.first, batch.end(), *place),
            Read::Expired { end, place } => (segment.first, *end, *place),
            Read::Damaged { .. } => (0, 0, 0),
        };
        Ok(Some((from, read)))
    }

    /// The files that were written since this was last asked.
    pub(super) fn take_unsynced(&mut self) -> Vec<Arc<File>> {
        let files = std::mem::take(&mut self.unsynced).into_iter().map(|(_, file)| file);
        files.chain(self.active.as_ref().map(|active| Arc::clone(&active.file))).collect()
    }

    /// Has the disk take the last batch, before anybody counts on it.
    pub(super) fn sync_active(&mut self) -> io::Result<()> {
        self.active.as_mut().map_or(Ok(()), Active::sync)
    }
}

/// What became of a segment that was written anew.
pub(super) struct RewrittenAs {
    /// The first number that the new file stands for.
    pub(super) first: u64,
    /// Numbers of messages that are in it.
    pub(super) kept: Vec<(u64, u64)>,
    /// Messages that went.
    pub(super) gone: u64,
}

fn of_sys(error: sys::SysError) -> io::Error {
    io::Error::from_raw_os_error(error.errno.0)
}
