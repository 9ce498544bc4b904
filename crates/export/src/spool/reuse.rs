//! A file whose messages were delivered, written again: its pages are in the kernel's cache already, and a page that is
//! filled anew costs as much as some records (docs/adr/0019).

use super::frame;
use super::place::Place;
use super::segment::{self, Made};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// While the receiver keeps up, a segment of so many bytes is followed by another one: files that are written again
/// soon are in the processor's cache, too.
pub(super) const REUSE_BYTES: u64 = 2 << 20;
/// The receiver keeps up while no more than this lies on the disk. It is more than what a receiver may not have read
/// although it confirmed it, which is kept (docs/adr/0018).
pub(super) const KEEPS_UP_BYTES: u64 = 16 << 20;
/// Most files that are kept.
const FILES_MAX: usize = 4;

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

/// Files whose messages were delivered, by their names: those of files that did not become segments, so they are
/// removed when the spool is opened after a kill.
#[derive(Debug, Default)]
pub(super) struct DeliveredFiles(Vec<String>);

impl DeliveredFiles {
    /// Keeps the file of the segment that begins with message `first`, or removes it.
    pub(super) fn keep(&mut self, place: &Place, first: u64, is_small: bool) {
        let (name, kept) = (segment::name_of(first), segment::new_name_of(first));
        let is_kept = is_small && self.0.len() < FILES_MAX;
        if is_kept && place.folder.rename(&name, &kept).is_ok() {
            self.0.push(kept);
        } else {
            let _ = place.folder.remove(&name);
        }
    }

    /// Makes one of them the segment that begins with message `first`; removes it where that fails.
    pub(super) fn begin(&mut self, place: &Place, first: u64) -> Option<Active> {
        let name = self.0.pop()?;
        let begun = begin(place, &name, first);
        if begun.is_none() {
            let _ = place.folder.remove(&name);
        }
        begun
    }

    /// Removes all.
    pub(super) fn remove(&mut self, place: &Place) {
        self.0.drain(..).for_each(|name| drop(place.folder.remove(name)));
    }
}

fn begin(place: &Place, name: &str, first: u64) -> Option<Active> {
    let file = place.file(name).ok()?;
    let old_bytes = file.metadata().ok()?.len();
    let parts = [&segment::header(first, Made::Reused)[..], &END_MARK];
    frame::write_whole(&file, parts, 0).ok()?;
    place.folder.rename(name, segment::name_of(first)).ok()?;
    Some(Active { file: file.into(), old_bytes, is_named_anew: true })
}
