//! The transport to files and FIFOs.

use super::packing::Packing;
use super::rotation::{FileAge, Rotation};
use super::stream::closed_error;
use super::{DirectDelivery, TakenPart, Transport, is_later, with_object};
use crate::Batch;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use sys::outfile::{self, Contents, FilePlace, OutfileOptions};

/// Appends to a file, which is created if necessary. A message is either complete in it or not in it at all.
pub(super) struct File {
    path: PathBuf,
    /// The beginning of each new file.
    header: Vec<u8>,
    file: Option<fs::File>,
    /// Its directory; `None` for a file descriptor inherited from the caller.
    place: Option<Arc<FilePlace>>,
    /// Device and inode, to notice that the file was moved away.
    identity: (u64, u64),
    /// [`sys::signal::hangups`] when the file was opened: once it has grown, the file is reopened.
    hangups: u64,
    /// False for a FIFO, from which written bytes cannot be removed.
    is_regular: bool,
    rotation: Option<Rotation>,
    packing: Option<Packing>,
    /// Bytes in the file, and its age.
    bytes: u64,
    age: FileAge,
    /// The file has a part of a batch: the rest belongs to the same file.
    is_within_batch: bool,
}

impl File {
    /// Writes to the file at `path`.
    pub(super) fn new(path: PathBuf, header: Vec<u8>, rotation: Option<Rotation>) -> File {
        let packer = rotation.and_then(|rotation| rotation.packer);
        File {
            packing: packer.map(|packer| Packing::new(packer.into())),
            path,
            header,
            file: None,
            place: None,
            identity: (0, 0),
            hangups: 0,
            is_regular: true,
            rotation,
            bytes: 0,
            age: FileAge::from_begin(SystemTime::UNIX_EPOCH),
            is_within_batch: false,
        }
    }

    /// Begins a new file if this one would be too large with `more` bytes, or is too old. A file with only its header
    /// stays.
    fn rotate(&mut self, more: usize) -> io::Result<()> {
        let Some(rotation) = self.rotation.filter(|_| self.is_regular && !self.is_within_batch) else { return Ok(()) };
        let is_begun = self.bytes > self.header.len() as u64;
        if self.file.is_none() || !is_begun || !rotation.is_due(self.bytes, self.age, more as u64) {
            return Ok(());
        }
        let Some(place) = &self.place else { return Ok(()) };
        rotation.rotate(place)?;
        if let Some(packing) = &mut self.packing {
            packing.moved_on();
        }
        self.reopen()
    }

    /// Packs the files that were moved away.
    fn pack(&mut self) -> io::Result<()> {
        match (&mut self.packing, self.rotation, &self.place) {
            (Some(packing), Some(rotation), Some(place)) if self.is_regular => {
                packing.continue_packing(place, rotation.keep)
            }
            _ => Ok(()),
        }
    }

    /// Opens the file. Opening a FIFO that has no reader fails; the caller retries later.
    fn open_file(&mut self) -> io::Result<(fs::File, fs::Metadata)> {
        let how = OutfileOptions::stream(Contents::Appended);
        self.place = FilePlace::of_output(&self.path)?.map(Arc::new);
        let file = match &self.place {
            Some(place) => place.open(how)?,
            None => outfile::open(&self.path, how)?,
        };
        let facts = file.metadata()?;
        Ok((file, facts))
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = None;
        self.open()
    }

    fn write(&mut self, batch: &Batch, at: usize, bytes: &[u8]) -> io::Result<TakenPart> {
        let file = self.file.as_mut().ok_or_else(closed_error)?;
        match file.write(bytes) {
            Ok(written) if written == bytes.len() => Ok(TakenPart { bytes: written, ..TakenPart::default() }),
            Ok(written) => match self.cut_back(batch, at, written) {
                taken if taken.bytes > 0 => Ok(taken),
                _ => Err(with_object(
                    "cannot write to",
                    &self.path.to_string_lossy(),
                    &io::ErrorKind::StorageFull.into(),
                )),
            },
            Err(error) if is_later(&error) => {
                std::thread::sleep(std::time::Duration::from_millis(5));
                Ok(TakenPart::default())
            }
            Err(error) => Err(with_object("cannot write to", &self.path.to_string_lossy(), &error)),
        }
    }

    /// Removes the part of a message that was written before the disk was full.
    fn cut_back(&mut self, batch: &Batch, at: usize, written: usize) -> TakenPart {
        let whole = batch.start_of(batch.count_complete(at + written));
        let torn = (at + written).saturating_sub(whole.max(at));
        let Some(file) = self.file.as_ref().filter(|_| self.is_regular && torn > 0) else {
            return TakenPart { bytes: written, ..TakenPart::default() };
        };
        let cut = file.metadata().and_then(|facts| file.set_len(facts.len().saturating_sub(torn as u64)));
        let bytes = if cut.is_ok() { written - torn } else { written };
        TakenPart { bytes, ..TakenPart::default() }
    }
}

/// Fails if the file would be refused now. Creates nothing.
pub(super) fn check(path: &Path) -> io::Result<()> {
    match FilePlace::of_output(path)? {
        Some(place) => place.stat(place.name(), OutfileOptions::stream(Contents::Appended)).map(drop),
        None => Ok(()),
    }
}

/// Explains the error of a FIFO without a reader.
fn in_words(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(errno) if errno == sys::Errno::NXIO.0 => io::Error::new(error.kind(), "no program reads it"),
        _ => error,
    }
}

impl Transport for File {
    fn open(&mut self) -> io::Result<()> {
        self.hangups = sys::signal::hangup_count();
        let (mut file, facts) = self
            .open_file()
            .map_err(in_words)
            .map_err(|error| with_object("cannot open", &self.path.to_string_lossy(), &error))?;
        self.is_regular = facts.file_type().is_file();
        if self.is_regular && facts.len() == 0 && !self.header.is_empty() {
            file.write_all(&self.header)?;
        }
        self.bytes = if facts.len() == 0 { self.header.len() as u64 } else { facts.len() };
        self.age = FileAge::from_begin(facts.created().unwrap_or_else(|_| SystemTime::now()));
        self.identity = (facts.dev(), facts.ino());
        self.file = Some(file);
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        if self.hangups != sys::signal::hangup_count() {
            self.reopen()?;
        }
        let bytes = batch.bytes().get(at..).unwrap_or_default();
        self.rotate(bytes.len())?;
        let taken = self.write(batch, at, bytes)?;
        self.bytes += taken.bytes as u64;
        self.is_within_batch = taken.bytes < bytes.len() && (self.is_within_batch || taken.bytes > 0);
        Ok(taken)
    }

    /// A FIFO's reader may take any time.
    fn direct_delivery(&self) -> DirectDelivery {
        if self.is_regular { DirectDelivery::MayWait } else { DirectDelivery::Never }
    }

    /// Reopens a file that was moved away or removed, and any file after SIGHUP.
    fn check(&mut self) -> io::Result<()> {
        let now = fs::metadata(&self.path).map(|facts| (facts.dev(), facts.ino()));
        if now.is_ok_and(|now| now == self.identity) && self.hangups == sys::signal::hangup_count() {
            self.rotate(0)?;
            return self.pack();
        }
        self.reopen()
    }

    fn close(&mut self) {
        self.file = None;
        self.is_within_batch = false;
    }
}
