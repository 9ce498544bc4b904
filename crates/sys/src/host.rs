//! The host that is read: live, live while recording, or replayed from a file.
//!
//! It is passed as a value; nothing is global. Everything that a run reads goes through [`Host::stream`],
//! [`Host::bytes`] or [`Host::read_file`], so that a recording contains all of it.
use std::path::{Path, PathBuf};

use crate::blocks::Blocks;
use crate::clock::{self, WallTime};
use crate::errno::{Errno, SysError};
use crate::fs;
use crate::kernel::Kernel;
use crate::tape::{FrameKind, Header, Integrity, TapeError, TapeReader, TapeWriter};

/// Longer values are recorded in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// The source of everything that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The kernel.
    Live,
    /// The kernel, and everything read is also written to a file.
    Recording,
    /// A recording; the kernel is not queried.
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

    /// This host, with the pseudo file systems at other paths (a container's, a test's).
    pub fn with_roots(proc: PathBuf, sys: PathBuf, etc: PathBuf) -> Host {
        Host { proc_root: proc, sys_root: sys, etc_root: etc, tape: Tape::None }
    }

    /// Starts writing everything that is read to `path` (created or emptied, mode 0600; it must be a regular file of
    /// this user). Data is in the file half a second after it was read, even if the process is killed.
    ///
    /// A later write error ends the recording but not the run; [`Host::finish`] reports it.
    pub fn recording(self, path: &Path) -> Result<Host, TapeError> {
        self.recorded_to(path, u64::MAX, false)
    }

    /// Records everything to a file of at most `limit` bytes; beyond the limit, recording stops as if the disk were
    /// full.
    pub fn record_everything(self, path: &Path, limit: u64) -> Result<Host, TapeError> {
        self.recorded_to(path, limit, true)
    }

    fn recorded_to(self, path: &Path, limit: u64, holds_everything: bool) -> Result<Host, TapeError> {
        if self.mode() == Mode::Replaying {
            let path = crate::errno::escape_bytes(path.as_os_str().as_encoded_bytes());
            return Err(TapeError::Replaying { path });
        }
        Ok(Host { tape: Tape::Writing(TapeWriter::create(path, limit, holds_everything)?), ..self })
    }

    /// A host from a recording. The file is checked completely, once; it must be a regular file.
    ///
    /// A truncated or corrupt file is used up to the damage: see [`Host::integrity`].
    pub fn open_replay(path: &Path) -> Result<Host, TapeError> {
        Ok(Host { tape: Tape::Reading(Box::new(TapeReader::open(path)?)), ..Host::live() })
    }

    /// Replays a host from an open recording; `path` is the file's name in messages.
    pub fn replaying_file(file: std::fs::File, path: &Path) -> Result<Host, TapeError> {
        Ok(Host { tape: Tape::Reading(Box::new(TapeReader::of_file(file, path)?)), ..Host::live() })
    }

    /// See [`Host::header_of`].
    pub fn header_of_file(file: std::fs::File, path: &Path) -> Result<Header, TapeError> {
        crate::tape::header_of_file(file, path)
    }

    /// The time and host of a recording; reads only the beginning of the file.
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

    /// True if the kernel must not be queried.
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

    /// The real location of `path`, which is written as on an ordinary host (`/proc/net/tcp`).
    pub fn real_path(&self, path: &str) -> PathBuf {
        for (name, root) in [("/proc", &self.proc_root), ("/sys", &self.sys_root), ("/etc", &self.etc_root)] {
            if let Ok(relative) = Path::new(path).strip_prefix(name) {
                return root.join(relative);
            }
        }
        PathBuf::from(path)
    }

    /// Replaces `into` with the contents of a small file. `path` is written as on an ordinary host and is the key on
    /// the tape.
    pub fn read_file(&self, path: &str, into: &mut Vec<u8>) -> Result<(), SysError> {
        self.bytes(path, "", into, |into| fs::read_file(&self.real_path(path), into))
    }

    /// Replaces `into` with the target of the link at `path`; `path` as in [`Host::read_file`].
    pub fn read_link(&self, path: &str, into: &mut Vec<u8>) -> Result<(), SysError> {
        self.bytes(&format!("link {path}"), "", into, |into| fs::read_link(&self.real_path(path), into))
    }

    /// Reads the extended attribute `attribute` of the file that `path` (written as on an ordinary host) leads to.
    pub fn read_xattr(&self, path: &str, attribute: &std::ffi::CStr, into: &mut Vec<u8>) -> Result<(), SysError> {
        let key = format!("xattr {} {path}", attribute.to_string_lossy());
        self.bytes(&key, "", into, |into| fs::read_xattr(&self.real_path(path), attribute, into))
    }

    /// Replaces `into` with the names in the directory at `path`, each terminated by a NUL; `path` as in
    /// [`Host::read_file`].
    pub fn read_names(&self, path: &str, into: &mut Vec<u8>) -> Result<(), SysError> {
        self.bytes(&format!("names {path}"), "", into, |into| fs::read_names(&self.real_path(path), into))
    }

    /// Replaces `into` with a small value that `read` gets from the kernel (a link's target, a fact about this
    /// process), or with the value recorded under `key`.
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
                        into.chunks(PIECE_BYTES).for_each(|piece| writer.block(id, piece));
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
    /// On a live host, `open` is called and its blocks pass through unchanged. When recording, they are also written,
    /// including an error at opening or in the middle. In a replay, `open` is not called: the n-th stream of a key in
    /// a round returns what the n-th stream of that round returned when it was recorded. If there are no more, it
    /// repeats the last one; if the key never occurs, it fails with [`Errno::NOT_RECORDED`]. A stream that was not
    /// read to its end while recording, or that lies where the file is damaged, ends with an error, never with `None`.
    ///
    /// `note` is text stored with the stream (`kernel filter: sport = 443`), see [`Host::notes`].
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
                    Ok(inner) => Ok(Box::new(RecordedBlocks { inner, writer, id, ended: false })),
                    Err(error) => {
                        writer.error(FrameKind::Refused, id, &error);
                        Err(error)
                    }
                }
            }
            Tape::Reading(reader) => Ok(Box::new(reader.stream(key)?)),
        }
    }

    /// True if `key` can be opened: always, except in a replay that does not contain it.
    pub fn contains(&self, key: &str) -> bool {
        match &self.tape {
            Tape::Reading(reader) => reader.contains(key),
            _ => true,
        }
    }

    /// Notes in a recording which `fields` of `table` are requested from the kernel; does nothing otherwise.
    pub fn note_requested(&self, table: &str, fields: &mut dyn Iterator<Item = &str>) {
        if let Tape::Writing(writer) = &self.tape {
            writer.write_requested(table, fields);
        }
    }

    /// Whether a replayed run requested `field` of `table` from the kernel; `None` if the recording does not contain
    /// this information, or if this is not a replay.
    pub fn was_requested(&self, table: &str, field: &str) -> Option<bool> {
        match &self.tape {
            Tape::Reading(reader) => reader.was_requested(table, field),
            _ => None,
        }
    }

    /// True once a recording has stopped: its file is full or could not be written.
    pub fn recording_has_stopped(&self) -> bool {
        matches!(&self.tape, Tape::Writing(writer) if writer.has_stopped())
    }

    /// Starts a round of `--watch`; false if a replay has no more rounds.
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

    /// True if a replay has a round after the current one; false if this is not a replay.
    pub fn has_more_rounds(&self) -> bool {
        match &self.tape {
            Tape::Reading(reader) => reader.has_more_rounds(),
            _ => false,
        }
    }

    /// The wall clock; in a replay, the time of the recorded round.
    pub fn now(&self) -> WallTime {
        match &self.tape {
            Tape::Reading(reader) => reader.now(),
            _ => clock::wall(),
        }
    }

    /// The kernel that is read, or was read for the recording.
    pub fn kernel(&self) -> Kernel {
        match &self.tape {
            Tape::Reading(reader) => reader.header().kernel.clone(),
            _ => Kernel::read_running(),
        }
    }

    /// The time and host of a replayed recording.
    pub fn recording_header(&self) -> Option<&Header> {
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

    /// Whether a replayed file is complete; always complete for a live host.
    pub fn integrity(&self) -> Integrity {
        match &self.tape {
            Tape::Reading(reader) => reader.integrity(),
            _ => Integrity::Whole,
        }
    }

    /// Ends the run: writes the trailer of a recording. Fails if any write to it failed, or if a replayed file was
    /// incomplete. Must be called; a recording without the trailer counts as truncated.
    pub fn finish(&self) -> Result<(), TapeError> {
        match &self.tape {
            Tape::None => Ok(()),
            Tape::Writing(writer) => writer.finish(),
            Tape::Reading(reader) => reader.verdict(),
        }
    }
}

/// Live blocks that are also written to the tape.
struct RecordedBlocks<'a> {
    inner: Box<dyn Blocks + 'a>,
    writer: &'a TapeWriter,
    id: u32,
    ended: bool,
}

impl Blocks for RecordedBlocks<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        // The tape is locked only once the block exists: producing it may itself read through the host.
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

impl Drop for RecordedBlocks<'_> {
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
