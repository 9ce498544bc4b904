//! The host that is looked at: live, recorded while looking, or replayed from a file.
//!
//! A value that is passed in; nothing global. Everything a run reads goes through
//! [`Host::stream`], [`Host::bytes`] or [`Host::read_file`], so that a recording holds all of it.
use std::path::{Path, PathBuf};

use crate::blocks::Blocks;
use crate::clock::{self, WallTime};
use crate::errno::{Errno, SysError};
use crate::fs;
use crate::kernel::Kernel;
use crate::tape::{FrameKind, Header, Integrity, TapeError, TapeReader, TapeWriter};

/// Longer values are recorded in pieces of this size.
const PIECE: usize = 1 << 20;

/// Where what is read comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From the kernel.
    Live,
    /// From the kernel, and it is written to a file.
    Recording,
    /// From a file; the kernel is not asked.
    Replaying,
}

/// The host: roots of the pseudo file systems, and the tape.
#[derive(Debug)]
pub struct Host {
    proc_root: PathBuf,
    sys_root: PathBuf,
    etc_root: PathBuf,
    tape: Tape,
}

#[derive(Debug)]
enum Tape {
    None,
    Writing(TapeWriter),
    Reading(Box<TapeReader>),
}

impl Host {
    /// This host, through /proc, /sys and /etc.
    pub fn live() -> Host {
        Host::with_roots("/proc".into(), "/sys".into(), "/etc".into())
    }

    /// The same with the pseudo file systems somewhere else (a container's, a test's).
    pub fn with_roots(proc: PathBuf, sys: PathBuf, etc: PathBuf) -> Host {
        Host { proc_root: proc, sys_root: sys, etc_root: etc, tape: Tape::None }
    }

    /// From now on writes everything that is read to `path` (created or emptied, mode 0600; it must be a regular file
    /// of the user's own). What was read is in the file half a second later, however the process ends.
    ///
    /// A write that fails later ends the recording but not the run; [`Host::finish`] tells.
    pub fn recording(self, path: &Path) -> Result<Host, TapeError> {
        self.recorded_to(path, u64::MAX, false)
    }

    /// Records everything to a file of at most `limit` bytes; beyond the limit, recording stops as if the disk were
    /// full.
    pub fn recording_everything(self, path: &Path, limit: u64) -> Result<Host, TapeError> {
        self.recorded_to(path, limit, true)
    }

    fn recorded_to(self, path: &Path, limit: u64, holds_everything: bool) -> Result<Host, TapeError> {
        if self.mode() == Mode::Replaying {
            let path = crate::errno::escaped(path.as_os_str().as_encoded_bytes());
            return Err(TapeError::Replaying { path });
        }
        Ok(Host { tape: Tape::Writing(TapeWriter::create(path, limit, holds_everything)?), ..self })
    }

    /// A host as it was recorded. The file is checked once, whole; it must be a regular file.
    ///
    /// A file that is cut or garbled is used as far as it is good: see [`Host::integrity`].
    pub fn replaying(path: &Path) -> Result<Host, TapeError> {
        Ok(Host { tape: Tape::Reading(Box::new(TapeReader::open(path)?)), ..Host::live() })
    }

    /// Replays a host that was recorded in an open file; `path` is the file's name in messages.
    pub fn replaying_file(file: std::fs::File, path: &Path) -> Result<Host, TapeError> {
        Ok(Host { tape: Tape::Reading(Box::new(TapeReader::of_file(file, path)?)), ..Host::live() })
    }

    /// See [`Host::header_of`].
    pub fn header_of_file(file: std::fs::File, path: &Path) -> Result<Header, TapeError> {
        crate::tape::header_of_file(file, path)
    }

    /// When and on what a file was recorded; its beginning alone is read.
    pub fn header_of(path: &Path) -> Result<Header, TapeError> {
        crate::tape::header_of(path)
    }

    /// Live, recording or replaying.
    pub fn mode(&self) -> Mode {
        match self.tape {
            Tape::None => Mode::Live,
            Tape::Writing(_) => Mode::Recording,
            Tape::Reading(_) => Mode::Replaying,
        }
    }

    /// True if the kernel must not be asked.
    pub fn is_replay(&self) -> bool {
        self.mode() == Mode::Replaying
    }

    /// A path below the root of /proc: `proc_path("net/tcp")`.
    pub fn proc_path(&self, relative: &str) -> PathBuf {
        self.proc_root.join(relative)
    }

    /// A path below the root of /sys.
    pub fn sys_path(&self, relative: &str) -> PathBuf {
        self.sys_root.join(relative)
    }

    /// A path below the root of /etc.
    pub fn etc_path(&self, relative: &str) -> PathBuf {
        self.etc_root.join(relative)
    }

    /// Where `path`, written as on an ordinary host (`/proc/net/tcp`), really lies.
    pub fn real_path(&self, path: &str) -> PathBuf {
        for (name, root) in [("/proc", &self.proc_root), ("/sys", &self.sys_root), ("/etc", &self.etc_root)] {
            if let Ok(relative) = Path::new(path).strip_prefix(name) {
                return root.join(relative);
            }
        }
        PathBuf::from(path)
    }

    /// Replaces `into` by a whole small file. `path` is written as on an ordinary host and is the key on the tape.
    pub fn read_file(&self, path: &str, into: &mut Vec<u8>) -> Result<(), SysError> {
        self.bytes(path, "", into, |into| fs::read_file(&self.real_path(path), into))
    }

    /// Replaces `into` by where the link at `path` points; `path` as in [`Host::read_file`].
    pub fn read_link(&self, path: &str, into: &mut Vec<u8>) -> Result<(), SysError> {
        self.bytes(&format!("link {path}"), "", into, |into| fs::read_link(&self.real_path(path), into))
    }

    /// The extended attribute `attribute` of what `path` (as on an ordinary host) leads to.
    pub fn read_xattr(&self, path: &str, attribute: &std::ffi::CStr, into: &mut Vec<u8>) -> Result<(), SysError> {
        let key = format!("xattr {} {path}", attribute.to_string_lossy());
        self.bytes(&key, "", into, |into| fs::read_xattr(&self.real_path(path), attribute, into))
    }

    /// Replaces `into` by the names in the directory at `path`, each ended by a NUL; `path` as in [`Host::read_file`].
    pub fn read_names(&self, path: &str, into: &mut Vec<u8>) -> Result<(), SysError> {
        self.bytes(&format!("names {path}"), "", into, |into| fs::read_names(&self.real_path(path), into))
    }

    /// Replaces `into` by a small value that `read` gets from the kernel (a link's target, a fact
    /// about this process), or by what was recorded under `key`.
    pub fn bytes(
        &self,
        key: &str,
        note: &str,
        into: &mut Vec<u8>,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), SysError>,
    ) -> Result<(), SysError> {
        into.clear();
        match &self.tape {
            Tape::None => read(into),
            Tape::Writing(writer) => {
                let result = read(into);
                let id = writer.open(key, note);
                match &result {
                    Ok(()) => {
                        into.chunks(PIECE).for_each(|piece| writer.block(id, piece));
                        writer.mark(FrameKind::End, id);
                    }
                    Err(error) => writer.error(FrameKind::Refused, id, error),
                }
                result
            }
            Tape::Reading(reader) => take_all(key, reader.stream(key)?, into),
        }
    }

    /// Passes to `each` what [`Host::bytes`] recorded under `key` in each round of a replay up to the current one,
    /// oldest first. Fails with [`Errno::NOT_RECORDED`] if nothing was recorded, and always on a live host.
    pub fn replayed_bytes(&self, key: &str, each: &mut dyn FnMut(&[u8])) -> Result<(), SysError> {
        let missing = || SysError::on_bytes("replay", key.as_bytes(), Errno::NOT_RECORDED);
        let Tape::Reading(reader) = &self.tape else { return Err(missing()) };
        let (mut bytes, mut is_any) = (Vec::new(), false);
        for stream in reader.streams_so_far(key) {
            bytes.clear();
            take_all(key, stream?, &mut bytes)?;
            each(&bytes);
            is_any = true;
        }
        if is_any { Ok(()) } else { Err(missing()) }
    }

    /// A stream of blocks under `key`.
    ///
    /// Live, `open` is called and its blocks pass through untouched. Recording, they are written
    /// as well, with an error at opening or in the middle. Replaying, `open` is not called: the
    /// n-th stream of a key in a round gives what the n-th one of that round gave when it was recorded, the last one
    /// again when there are no more, and [`Errno::NOT_RECORDED`] if the key never occurs. A stream that
    /// was left early while recording, or lies where the file is broken, ends in an error, never in `None`.
    ///
    /// `note` is text kept with the stream (`kernel filter: sport = 443`), see [`Host::notes`].
    pub fn stream<'a>(
        &'a self,
        key: &str,
        note: &str,
        open: impl FnOnce() -> Result<Box<dyn Blocks + 'a>, SysError>,
    ) -> Result<Box<dyn Blocks + 'a>, SysError> {
        match &self.tape {
            Tape::None => open(),
            Tape::Writing(writer) => {
                let opened = open();
                let id = writer.open(key, note);
                match opened {
                    Ok(inner) => Ok(Box::new(Recorded { inner, writer, id, ended: false })),
                    Err(error) => {
                        writer.error(FrameKind::Refused, id, &error);
                        Err(error)
                    }
                }
            }
            Tape::Reading(reader) => Ok(Box::new(reader.stream(key)?)),
        }
    }

    /// True if `key` can be opened: always, except in a replay that does not hold it.
    pub fn holds(&self, key: &str) -> bool {
        match &self.tape {
            Tape::Reading(reader) => reader.has(key),
            _ => true,
        }
    }

    /// Tells a recording which `fields` of `table` the kernel is asked for; nothing otherwise.
    pub fn note_asked(&self, table: &str, fields: &mut dyn Iterator<Item = &str>) {
        if let Tape::Writing(writer) = &self.tape {
            writer.asked(table, fields);
        }
    }

    /// Whether a replayed run asked the kernel for `field` of `table`; `None` if the recording does not say, or there
    /// is none.
    pub fn was_asked(&self, table: &str, field: &str) -> Option<bool> {
        match &self.tape {
            Tape::Reading(reader) => reader.was_asked(table, field),
            _ => None,
        }
    }

    /// True once a recording takes nothing more: its file is full, or could not be written.
    pub fn recording_has_stopped(&self) -> bool {
        matches!(&self.tape, Tape::Writing(writer) if writer.has_stopped())
    }

    /// Begins a round of `--watch`; false if a replay has no more of them.
    pub fn begin_round(&self) -> bool {
        match &self.tape {
            Tape::None => true,
            Tape::Writing(writer) => {
                writer.round(clock::wall());
                true
            }
            Tape::Reading(reader) => reader.begin_round(),
        }
    }

    /// True if a replay has a round after the one that was begun last; false for all that is no replay.
    pub fn has_more_rounds(&self) -> bool {
        match &self.tape {
            Tape::Reading(reader) => reader.has_more_rounds(),
            _ => false,
        }
    }

    /// The wall clock; in a replay that of the recorded round.
    pub fn now(&self) -> WallTime {
        match &self.tape {
            Tape::Reading(reader) => reader.now(),
            _ => clock::wall(),
        }
    }

    /// The kernel that answers, or answered.
    pub fn kernel(&self) -> Kernel {
        match &self.tape {
            Tape::Reading(reader) => reader.header().kernel.clone(),
            _ => Kernel::running(),
        }
    }

    /// When and on what a replayed file was recorded.
    pub fn recorded(&self) -> Option<&Header> {
        match &self.tape {
            Tape::Reading(reader) => Some(reader.header()),
            _ => None,
        }
    }

    /// The notes of a replayed file as (key, note), in order.
    pub fn notes(&self) -> &[(Box<str>, Box<str>)] {
        match &self.tape {
            Tape::Reading(reader) => reader.notes(),
            _ => &[],
        }
    }

    /// Whether a replayed file is whole; a live host always is.
    pub fn integrity(&self) -> Integrity {
        match &self.tape {
            Tape::Reading(reader) => reader.integrity(),
            _ => Integrity::Whole,
        }
    }

    /// Ends the run: writes the trailer of a recording and tells if any write of it failed, or
    /// that a replayed file was not whole. Must be called; a recording without it counts as cut.
    pub fn finish(&self) -> Result<(), TapeError> {
        match &self.tape {
            Tape::None => Ok(()),
            Tape::Writing(writer) => writer.finish(),
            Tape::Reading(reader) => reader.verdict(),
        }
    }
}

/// Live blocks that are written to the tape as they pass.
struct Recorded<'a> {
    inner: Box<dyn Blocks + 'a>,
    writer: &'a TapeWriter,
    id: u32,
    ended: bool,
}

impl Blocks for Recorded<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        // The tape is locked only after the block is there: making it may itself read through the host.
        match self.inner.next() {
            Ok(Some(block)) => {
                self.writer.block(self.id, block);
                Ok(Some(block))
            }
            Ok(None) => {
                if !self.ended {
                    self.writer.mark(FrameKind::End, self.id);
                }
                self.ended = true;
                Ok(None)
            }
            Err(error) => {
                self.writer.error(FrameKind::Error, self.id, &error);
                self.ended = true;
                Err(error)
            }
        }
    }
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.writer.mark(FrameKind::Stopped, self.id);
        }
    }
}

/// Appends a recorded stream to `into`; fails if the result exceeds the maximum size of a file.
fn take_all(key: &str, mut blocks: impl Blocks, into: &mut Vec<u8>) -> Result<(), SysError> {
    while let Some(block) = blocks.next()? {
        if into.len() + block.len() > fs::FILE_BYTES_MAX {
            return Err(SysError::on_bytes("replay", key.as_bytes(), Errno::FBIG));
        }
        into.extend_from_slice(block);
    }
    Ok(())
}
