//! The segments of a spool on disk: appends, reads and removes them.

use super::place::SpoolDirectory;
use super::reuse::{ActiveFile, DeliveredFiles, KEEPS_UP_BYTES, REUSE_BYTES};
use super::rewrite::{RemovalPlan, Rewriter, RewrittenFile};
use super::segment::{self, Batches, ReadResult, Segment, SegmentOrigin};
use super::syncer::Syncer;
use super::{SpoolError, SpoolOptions, SyncWhen, frame};
use crate::Batch;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

/// The segments in order, and the open files.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) place: SpoolDirectory,
    pub(super) segments: VecDeque<Segment>,
    /// Bytes of all segments.
    pub(super) bytes: u64,
    /// A segment of at least this many bytes is followed by a new one.
    segment_bytes: u64,
    /// A segment of at least this age, in ns, is followed by a new one.
    segment_age: u64,
    /// The last segment, if batches may be appended to it.
    active: Option<ActiveFile>,
    /// Files of delivered segments that may be reused.
    delivered: DeliveredFiles,
    /// Segments before the active one that were written since the last [`Disk::take_unsynced`].
    unsynced: Vec<(u64, Arc<File>)>,
    /// Syncs files every second; without it, `unsynced` stays empty.
    pub(super) syncer: Option<Syncer>,
    syncs_always: bool,
    /// The segment that is being read.
    reading: Option<ReadSegment>,
    /// Scratch memory for the head and lengths of the batch that is being written.
    head: Vec<u8>,
}

/// A segment that is being read.
#[derive(Debug)]
struct ReadSegment {
    /// Its first number.
    first: u64,
    file: File,
    /// A known position in it: the number of a message, and the offset of that message's batch.
    known: (u64, u64),
}

impl Disk {
    pub(super) fn new(place: SpoolDirectory, segments: VecDeque<Segment>, options: &SpoolOptions) -> Disk {
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
            syncer: None,
            syncs_always: options.sync == SyncWhen::Always,
            reading: None,
            head: Vec::new(),
        }
    }

    /// Appends a batch with one system call. After an error, the segment ends where it did before.
    pub(super) fn append(&mut self, batch: &Batch, stamp: u64) -> io::Result<()> {
        let goes_on = self.active.is_some()
            && self.segments.back().is_some_and(|last| {
                let is_young = stamp.saturating_sub(last.stamp_first) < self.segment_age;
                last.end == batch.first_number() && last.len < self.segment_bytes_max() && is_young
            });
        if !goes_on {
            self.seal();
            self.begin(batch.first_number(), stamp)?;
        }
        frame::encode(batch, stamp, &mut self.head);
        let (Some(active), Some(last)) = (&mut self.active, self.segments.back_mut()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if let Err(error) = active.write(&self.head, batch.bytes(), last.len) {
            // If this also fails, the next batch overwrites the torn one.
            let _ = active.truncate(last.len);
            self.remove_delivered();
            return Err(error);
        }
        let size = (self.head.len() + batch.bytes().len()) as u64;
        last.note_batch(batch, stamp, size);
        self.bytes += size;
        Ok(())
    }

    /// Size in bytes at which a segment is followed by a new one, at present.
    pub(super) fn segment_bytes_max(&self) -> u64 {
        if self.bytes < KEEPS_UP_BYTES { self.segment_bytes.min(REUSE_BYTES) } else { self.segment_bytes }
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let folder = &self.place.folder;
        let created = folder.create(name).or_else(|error| {
            // A file that could not be removed. Its messages are forgotten.
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
                if let Err(error) = file.write_all_at(&segment::header(first, SegmentOrigin::New), 0) {
                    let _ = self.place.folder.remove(&name);
                    return Err(error);
                }
                ActiveFile::new(file)
            }
        };
        let segment = Segment::new(first, stamp);
        self.bytes += segment.len;
        self.segments.push_back(segment);
        self.active = Some(active);
        Ok(())
    }

    /// Ends the last segment: no more batches are appended to it.
    pub(super) fn seal(&mut self) {
        if let Some(mut active) = self.active.take() {
            let Some(last) = self.segments.back() else { return };
            if last.end == last.first {
                self.remove(self.segments.len() - 1);
                return;
            }
            // If old bytes stay there, their numbers show that they are old.
            let _ = active.cut_old(last.len);
            if self.syncer.is_some() {
                self.unsynced.push((last.first, active.file));
            }
        }
    }

    /// Removes a segment; `None` without a segment at that index. If the file cannot be removed, it is found again
    /// when the spool is next opened; messages in it that the position counts as delivered are not delivered again.
    pub(super) fn remove(&mut self, index: usize) -> Option<Segment> {
        let segment = self.take_segment(index)?;
        let _ = self.place.folder.remove(segment::name_of(segment.first));
        Some(segment)
    }

    /// Removes the oldest segment, which is delivered. Its file may be kept for reuse.
    pub(super) fn remove_oldest(&mut self) {
        if let Some(segment) = self.take_segment(0) {
            let is_small = segment.len < 2 * self.segment_bytes.min(REUSE_BYTES);
            self.delivered.store_or_remove(&self.place, segment.first, is_small);
        }
    }

    /// Removes the files that were kept for reuse.
    pub(super) fn remove_delivered(&mut self) {
        self.delivered.remove(&self.place);
    }

    /// Forgets a segment but leaves its file.
    fn take_segment(&mut self, index: usize) -> Option<Segment> {
        if index + 1 == self.segments.len() {
            self.active = None;
        }
        let segment = self.segments.remove(index)?;
        // A removed file takes room while it is open.
        self.close_file(segment.first);
        self.bytes -= segment.len;
        Some(segment)
    }

    /// Closes the file of a segment that is removed or replaced.
    fn close_file(&mut self, first: u64) {
        self.unsynced.retain(|(unsynced, _)| *unsynced != first);
        self.reading.take_if(|reading| reading.first == first);
    }

    /// True if the rest of a segment, once `gives` bytes are removed, should be written into the file before it. This
    /// avoids countless small files, and keeps the bytes written in proportion to the bytes removed.
    pub(super) fn should_join(&self, index: usize, gives: u64) -> bool {
        let before = index.checked_sub(1).and_then(|before| self.segments.get(before));
        let (Some(before), Some(segment)) = (before, self.segments.get(index)) else { return false };
        let len = before.len + segment.len.saturating_sub(gives);
        let age = segment.stamp_last.saturating_sub(before.stamp_first);
        len <= self.segment_bytes / 2 && before.len / 4 <= gives && age < self.segment_age
    }

    /// Rewrites a segment without the messages that `plan` takes out of it; if `joins`, into the file of the segment
    /// before it. If the program is killed in between, either the old files or the new one remain. After an error
    /// nothing has changed.
    pub(super) fn rewrite(&mut self, index: usize, joins: bool, plan: &mut RemovalPlan) -> io::Result<RewriteResult> {
        if index + 1 == self.segments.len() {
            self.seal();
        }
        let begin = index - usize::from(joins);
        let first = self.segments.get(begin).map_or(0, |segment| segment.first);
        let new_name = segment::new_name_of(first);
        let written = self.rewrite_segments(begin..index + 1, &new_name, plan);
        let old: u64 = self.segments.range(begin..index + 1).map(|segment| segment.len).sum();
        let written = written.and_then(|written| {
            if written.segment.len >= old {
                return Err(io::Error::other("nothing went"));
            }
            if self.syncer.is_some() || self.syncs_always {
                // The name must not lead to a file whose contents are not on the disk.
                written.file.sync_data()?;
            }
            self.place.folder.rename(&new_name, segment::name_of(first)).map_err(of_sys)?;
            Ok(written)
        });
        let written = written.inspect_err(|_| drop(self.place.folder.remove(&new_name)))?;
        for _ in begin..index {
            self.remove(index);
        }
        self.close_file(first);
        if let Some(segment) = self.segments.get_mut(begin) {
            self.bytes = self.bytes - segment.len + written.segment.len;
            *segment = written.segment;
        }
        Ok(RewriteResult { first, kept: written.kept, gone: written.gone })
    }

    /// Writes these segments into a new file. Messages are removed only from the last of them.
    fn rewrite_segments(&self, indices: Range<usize>, name: &str, plan: &mut RemovalPlan) -> io::Result<RewrittenFile> {
        let old = || self.segments.range(indices.clone());
        let (first, until) = (old().next().map_or(0, |old| old.first), old().last().map_or(0, |old| old.end));
        let mut rewriter = Rewriter::new(self.create(name)?, first, until, self.segment_age / 8)?;
        let mut plan = Some(plan);
        for (segment, index) in old().zip(indices.clone()) {
            let file = self.place.file(&segment::name_of(segment.first)).map_err(io::Error::other)?;
            let mut plan = plan.take_if(|_| index + 1 == indices.end);
            let mut batches = Batches::new(&file, segment.len);
            while let Some((head, batch)) = batches.next()? {
                rewriter.add(&head, &batch, plan.as_deref_mut())?;
            }
        }
        rewriter.finish()
    }

    /// Reads from message `number` on, or from the first one after it. `None` if no segment has such messages.
    pub(super) fn read(&mut self, number: u64, expired_before: u64) -> io::Result<Option<(u64, ReadResult)>> {
        let index = self.segments.partition_point(|segment| segment.end <= number);
        let Some(segment) = self.segments.get(index) else { return Ok(None) };
        let from = number.max(segment.first);
        if self.reading.as_ref().is_none_or(|reading| reading.first != segment.first) {
            self.reading = None;
            match self.place.file(&segment::name_of(segment.first)) {
                Ok(file) => self.reading = Some(ReadSegment { first: segment.first, file, known: (0, 0) }),
                Err(SpoolError::Failed { error, .. }) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                // Another program has removed or replaced it.
                Err(_) => return Ok(Some((from, ReadResult::Damaged { end: segment.end }))),
            }
        }
        let Some(reading) = &mut self.reading else { return Ok(None) };
        let read = segment.read(&reading.file, from, reading.known, expired_before)?;
        reading.known = match &read {
            ReadResult::Batch { batch, place } => (batch.end(), *place),
            ReadResult::Expired { end, place } => (*end, *place),
            ReadResult::Damaged { .. } => (0, 0),
        };
        Ok(Some((from, read)))
    }

    /// Passes the written files to the thread that syncs them.
    pub(super) fn sync_soon(&mut self) {
        if self.syncer.as_ref().is_some_and(Syncer::is_idle) {
            let files = self.take_unsynced();
            if let Some(syncer) = &self.syncer {
                syncer.sync(files);
            }
        }
    }

    /// Returns the files written since the last call.
    pub(super) fn take_unsynced(&mut self) -> Vec<Arc<File>> {
        let files = std::mem::take(&mut self.unsynced).into_iter().map(|(_, file)| file);
        files.chain(self.active.as_ref().map(|active| Arc::clone(&active.file))).collect()
    }

    /// Syncs the last batch to the disk, before it counts as stored.
    pub(super) fn sync_active(&mut self) -> io::Result<()> {
        self.active.as_mut().map_or(Ok(()), ActiveFile::sync)
    }
}

/// The result of [`Disk::rewrite`].
pub(super) struct RewriteResult {
    /// The first number that the new file covers.
    pub(super) first: u64,
    /// Ranges of message numbers in it.
    pub(super) kept: Vec<(u64, u64)>,
    /// Number of removed messages.
    pub(super) gone: u64,
}

fn of_sys(error: sys::SysError) -> io::Error {
    io::Error::from_raw_os_error(error.errno.0)
}
