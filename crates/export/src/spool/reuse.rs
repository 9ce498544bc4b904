//! Reuse of files whose messages were delivered: their pages are already in the kernel's cache, and filling a new page
//! costs as much as a few records (docs/adr/0019).

use super::frame;
use super::place::SpoolDirectory;
use super::segment::{self, SegmentOrigin};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// While the receiver keeps up, a segment of at least this many bytes is followed by another: files that are reused
/// soon are still in the processor's cache.
pub(super) const REUSE_BYTES: u64 = 2 << 20;
/// The receiver keeps up while at most this many bytes are on disk. This is more than the messages that are kept
/// because the receiver confirmed them but may not have read them (docs/adr/0018).
pub(super) const KEEPS_UP_BYTES: u64 = 16 << 20;
/// Most files that are kept for reuse.
///
/// Bound: delivered files of a spool that are kept for reuse. Beyond: further files are removed. By: a receiver.
const FILES_MAX: usize = 4;

/// Follows the last batch of a reused file, so that old bytes are not taken for the next batch.
const END_MARK: [u8; frame::HEAD_BYTES] = [0; frame::HEAD_BYTES];

/// The file that batches are appended to.
#[derive(Debug)]
pub(super) struct ActiveFile {
    pub(super) file: Arc<File>,
    /// Previous size of a reused file: from its last new batch up to there, it has bytes of delivered batches.
    old_bytes: u64,
    /// True if the file was renamed and the disk may not have its new name yet, even if it has its bytes.
    is_named_anew: bool,
}

impl ActiveFile {
    /// A newly created file.
    pub(super) fn new(file: File) -> ActiveFile {
        ActiveFile { file: file.into(), old_bytes: 0, is_named_anew: false }
    }

    /// Writes `head` and `body` at byte `at`, with one system call.
    pub(super) fn write(&self, head: &[u8], body: &[u8], at: u64) -> io::Result<()> {
        let end = at + (head.len() + body.len()) as u64;
        let mark = if end < self.old_bytes { &END_MARK[..] } else { &[] };
        frame::write_completely(&self.file, [head, body, mark], at)
    }

    /// Cuts the file off at byte `len`.
    pub(super) fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.old_bytes = 0;
        Ok(())
    }

    /// Cuts the file off at byte `len` if bytes of delivered batches follow.
    pub(super) fn cut_old(&mut self, len: u64) -> io::Result<()> {
        if len < self.old_bytes { self.truncate(len) } else { Ok(()) }
    }

    /// Syncs the written bytes to the disk, and the file's new name if it has one.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_named_anew) {
            // fdatasync skips metadata unless the length has changed.
            true => self.file.sync_all(),
            false => self.file.sync_data(),
        }
    }
}

/// Names of files whose messages were delivered. They are named like unfinished replacements, so any that are left
/// after a kill are removed when the spool is next opened.
#[derive(Debug, Default)]
pub(super) struct DeliveredFiles(Vec<String>);

impl DeliveredFiles {
    /// Keeps the file of the segment that begins with message `first`, or removes it.
    pub(super) fn store_or_remove(&mut self, place: &SpoolDirectory, first: u64, is_small: bool) {
        let (name, kept) = (segment::name_of(first), segment::new_name_of(first));
        let is_kept = is_small && self.0.len() < FILES_MAX;
        if is_kept && place.folder.rename(&name, &kept).is_ok() {
            self.0.push(kept);
        } else {
            let _ = place.folder.remove(&name);
        }
    }

    /// Turns one of them into the segment that begins with message `first`. Removes the file if that fails.
    pub(super) fn begin(&mut self, place: &SpoolDirectory, first: u64) -> Option<ActiveFile> {
        let name = self.0.pop()?;
        let begun = begin(place, &name, first);
        if begun.is_none() {
            let _ = place.folder.remove(&name);
        }
        begun
    }

    /// Removes all.
    pub(super) fn remove(&mut self, place: &SpoolDirectory) {
        self.0.drain(..).for_each(|name| drop(place.folder.remove(name)));
    }
}

fn begin(place: &SpoolDirectory, name: &str, first: u64) -> Option<ActiveFile> {
    let file = place.file(name).ok()?;
    let old_bytes = file.metadata().ok()?.len();
    let parts = [&segment::header(first, SegmentOrigin::Reused)[..], &END_MARK];
    frame::write_completely(&file, parts, 0).ok()?;
    place.folder.rename(name, segment::name_of(first)).ok()?;
    Some(ActiveFile { file: file.into(), old_bytes, is_named_anew: true })
}
