//! A file whose messages were delivered, written again: its pages are in the kernel's cache already, and a page that is
//! filled anew costs as much as some records (docs/adr/0019).

use super::frame;
use super::place::Place;
use super::segment::{self, Made};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A segment of so many bytes is written again once all of it is delivered, though it has room: what is written again
/// soon is in the processor's cache, too.
pub(super) const REUSE_BYTES: u64 = 1 << 20;

/// Stands behind the last batch of a file that is written again: nothing there is taken for the next one.
const END_MARK: [u8; frame::HEAD] = [0; frame::HEAD];

/// The file that batches are appended to.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) file: Arc<File>,
    /// Bytes that the file had before: what lies behind the last batch up to there is of delivered ones.
    old_bytes: u64,
    /// Its name may not be on the disk yet, whatever of its bytes is.
    is_named_anew: bool,
}

impl Active {
    /// A file that was just made.
    pub(super) fn new(file: File) -> Active {
        Active { file: file.into(), old_bytes: 0, is_named_anew: false }
    }

    /// Writes `head` and `body` at byte `at`, by one system call.
    pub(super) fn write(&self, head: &[u8], body: &[u8], at: u64) -> io::Result<()> {
        let end = at + (head.len() + body.len()) as u64;
        let mark = if end < self.old_bytes { &END_MARK[..] } else { &[] };
        frame::write_whole(&self.file, [head, body, mark], at)
    }

    /// Cuts off what lies behind byte `len`.
    pub(super) fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.old_bytes = 0;
        Ok(())
    }

    /// Cuts off what is left of delivered batches behind byte `len`.
    pub(super) fn cut_old(&mut self, len: u64) -> io::Result<()> {
        if len < self.old_bytes { self.cut(len) } else { Ok(()) }
    }

    /// Has the disk take what was written, and the file's new name.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_named_anew) {
            // fdatasync leaves out what changes no length.
            true => self.file.sync_all(),
            false => self.file.sync_data(),
        }
    }
}

/// The name of a file whose messages were delivered: that of one that did not become a segment, so it is removed when
/// the spool is opened after a kill.
#[derive(Debug)]
pub(super) struct Delivered(String);

impl Delivered {
    /// Keeps the file of the segment that begins with message `first`; removes it where that fails.
    pub(super) fn keep(place: &Place, first: u64) -> Option<Delivered> {
        let (name, kept) = (segment::name_of(first), segment::new_name_of(first));
        if place.folder.rename(&name, &kept).is_ok() {
            return Some(Delivered(kept));
        }
        let _ = place.folder.remove(&name);
        None
    }

    /// Makes it the segment that begins with message `first`; removes it where that fails.
    pub(super) fn begin(self, place: &Place, first: u64) -> Option<Active> {
        let begun = self.begun(place, first);
        if begun.is_none() {
            self.remove(place);
        }
        begun
    }

    fn begun(&self, place: &Place, first: u64) -> Option<Active> {
        let file = place.file(&self.0).ok()?;
        let old_bytes = file.metadata().ok()?.len();
        let parts = [&segment::header(first, Made::Reused)[..], &END_MARK];
        frame::write_whole(&file, parts, 0).ok()?;
        place.folder.rename(&self.0, &segment::name_of(first)).ok()?;
        Some(Active { file: file.into(), old_bytes, is_named_anew: true })
    }

    pub(super) fn remove(&self, place: &Place) {
        let _ = place.folder.remove(&self.0);
    }
}
