//! Replays a recording: streams by key, in the order in which they were recorded.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;

use super::error::{Integrity, TapeError};
use super::frame::{BLOCK_MAX, FrameKind, PAYLOAD_MAX, Parts};
use super::index::{self, Frame, FrameId, Header, Index, Stream};
use crate::blocks::Blocks;
use crate::clock::WallTime;
use crate::errno::{Errno, SysError, escape_bytes};
use crate::fd::Fd;
use crate::fs;

/// A verified recording.
#[derive(Debug)]
pub(crate) struct TapeReader {
    fd: Fd,
    path: Box<str>,
    index: Index,
    /// Key → the round in which it was last replayed, and how many of its streams were replayed in that round.
    played: RefCell<HashMap<Box<str>, (usize, usize)>>,
    /// Number of rounds begun.
    begun: Cell<usize>,
    /// Number of frames that streams have read.
    #[cfg(test)]
    pub(super) looked_at: Cell<u64>,
}

impl TapeReader {
    pub(crate) fn open(path: &Path) -> Result<TapeReader, TapeError> {
        let (fd, shown) = open_file(path)?;
        TapeReader::from_file(fd, shown)
    }

    /// Opens a recording from an open file; messages call it `path`.
    pub(crate) fn of_file(file: std::fs::File, path: &Path) -> Result<TapeReader, TapeError> {
        TapeReader::from_file(file.into(), escape_bytes(path.as_os_str().as_encoded_bytes()))
    }

    fn from_file(fd: Fd, shown: Box<str>) -> Result<TapeReader, TapeError> {
        let index = index::index(&fd, &shown)?;
        Ok(TapeReader {
            fd,
            path: shown,
            index,
            played: RefCell::default(),
            begun: Cell::new(0),
            #[cfg(test)]
            looked_at: Cell::new(0),
        })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.index.header
    }

    pub(crate) fn notes(&self) -> &[(Box<str>, Box<str>)] {
        &self.index.notes
    }

    pub(crate) fn integrity(&self) -> Integrity {
        self.index.integrity
    }

    /// The error with which a run on this recording must end, if it is incomplete.
    pub(crate) fn verdict(&self) -> Result<(), TapeError> {
        match self.index.integrity {
            Integrity::Whole => Ok(()),
            integrity => Err(TapeError::Broken { path: self.path.clone(), integrity }),
        }
    }

    /// Begins the next recorded round; false if there are no more. A recording without rounds has one.
    pub(crate) fn begin_round(&self) -> bool {
        let begun = self.begun.get();
        self.begun.set(begun + 1);
        begun < self.index.rounds.len().max(1)
    }

    /// True if another round can begin.
    pub(crate) fn has_more_rounds(&self) -> bool {
        self.begun.get() < self.index.rounds.len().max(1)
    }

    /// The time of the current round, or of the beginning.
    pub(crate) fn now(&self) -> WallTime {
        let round = self.begun.get().checked_sub(1);
        round.and_then(|n| self.index.rounds.get(n)).copied().unwrap_or(self.index.header.time)
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.index.streams.contains_key(key)
    }

    /// Whether the recorded run requested `field` of `table` from the kernel; `None` if the file does not contain this
    /// information (an old version, or the table was not read).
    pub(crate) fn was_requested(&self, table: &str, field: &str) -> Option<bool> {
        self.index.asked.get(table).map(|fields| fields.contains(field))
    }

    /// The next stream of `key` in this round; after the last one, the last one again. If this round has no stream of
    /// the key, the stream of the nearest earlier round. Before the first round begins, the streams of all rounds
    /// follow one another.
    pub(crate) fn stream(&self, key: &str) -> Result<ReplayBlocks<'_>, SysError> {
        let missing = || SysError::on_bytes("replay", key.as_bytes(), Errno::NOT_RECORDED);
        let recorded = self.index.streams.get(key).ok_or_else(missing)?;
        let round = self.begun.get();
        let mut played = self.played.borrow_mut();
        let (of_round, count) = played.entry(key.into()).or_insert((round, 0));
        if *of_round != round {
            (*of_round, *count) = (round, 0);
        }
        let stream = choose(recorded, round, *count).ok_or_else(missing)?;
        *count += 1;
        self.open_stream(key, stream)
    }

    fn open_stream(&self, key: &str, stream: Stream) -> Result<ReplayBlocks<'_>, SysError> {
        let mut blocks = ReplayBlocks { tape: self, key: key.into(), at: stream.open, block: Vec::new(), ended: false };
        match blocks.read_refusal()? {
            Some(error) => Err(error),
            None => Ok(blocks),
        }
    }

    /// Returns the streams of `key` up to the current round, oldest first; before the first round, all streams.
    pub(crate) fn streams_so_far(&self, key: &str) -> impl Iterator<Item = Result<ReplayBlocks<'_>, SysError>> {
        let until = match self.begun.get() {
            0 => usize::MAX,
            round => round,
        };
        let recorded = self.index.streams.get(key).map(Vec::as_slice).unwrap_or_default();
        recorded.iter().filter(move |stream| stream.round <= until).map(move |stream| self.open_stream(key, *stream))
    }
}

/// The time and host of a recording. Reads only its beginning: the rest may be damaged.
pub(crate) fn header_of(path: &Path) -> Result<Header, TapeError> {
    let (fd, shown) = open_file(path)?;
    index::header(&fd, &shown)
}

/// Reads the header of a recording in an open file.
pub(crate) fn header_of_file(file: std::fs::File, path: &Path) -> Result<Header, TapeError> {
    index::header(&file.into(), &escape_bytes(path.as_os_str().as_encoded_bytes()))
}

fn open_file(path: &Path) -> Result<(Fd, Box<str>), TapeError> {
    let shown = escape_bytes(path.as_os_str().as_encoded_bytes());
    // Opening a FIFO without a writer does not wait.
    let fd = fs::open_without_waiting(path).map_err(TapeError::Io)?;
    let stat =
        fs::stat_fd(&fd).map_err(|errno| TapeError::Io(SysError { call: "fstat", object: shown.clone(), errno }))?;
    if stat.is_file() { Ok((fd, shown)) } else { Err(TapeError::NotAFile { path: shown }) }
}

/// The stream to replay as number `count` of `round`. `recorded` contains the streams of one key in the order of their
/// rounds.
fn choose(recorded: &[Stream], round: usize, count: usize) -> Option<Stream> {
    if round == 0 {
        return recorded.get(count).or(recorded.last()).copied();
    }
    let before = recorded.partition_point(|stream| stream.round < round);
    let until = recorded.partition_point(|stream| stream.round <= round);
    let here = recorded.get(before..until).unwrap_or_default();
    let at = here.get(count).or(here.last());
    at.or_else(|| recorded.get(before.checked_sub(1)?)).or(recorded.first()).copied()
}

/// The blocks of one recorded stream.
#[derive(Debug)]
pub(crate) struct ReplayBlocks<'t> {
    tape: &'t TapeReader,
    key: Box<str>,
    /// The last frame that was read.
    at: FrameId,
    block: Vec<u8>,
    ended: bool,
}

impl ReplayBlocks<'_> {
    fn read_error(&self, errno: Errno) -> SysError {
        SysError::on_bytes("replay", self.key.as_bytes(), errno)
    }

    // The error with which opening failed in the recording. If the frame is of a different kind, it stays unread.
    fn read_refusal(&mut self) -> Result<Option<SysError>, SysError> {
        let before = self.at;
        match self.step() {
            Ok(frame) if frame.kind == FrameKind::Refused => {
                self.load(frame)?;
                Ok(Some(self.recorded_error()))
            }
            // The file is truncated right here: `next` will report it.
            _ => {
                self.at = before;
                Ok(None)
            }
        }
    }

    // Moves to this stream's next frame.
    fn step(&mut self) -> Result<Frame, Errno> {
        #[cfg(test)]
        self.tape.looked_at.set(self.tape.looked_at.get() + 1);
        let (at, frame) = self.tape.index.next(self.at).ok_or(Errno::RECORDING_BROKEN)?;
        self.at = at;
        Ok(frame)
    }

    // Appends a frame's payload to the block.
    fn load(&mut self, frame: Frame) -> Result<(), SysError> {
        let (length, before) = (frame.length as usize, self.block.len());
        if length > PAYLOAD_MAX || before + length > BLOCK_MAX {
            return Err(self.read_error(Errno::RECORDING_BROKEN));
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(before + length, 0);
        let read = self.read_exactly(frame.payload, block.get_mut(before..).unwrap_or_default());
        self.block = block;
        read.map_err(|errno| self.read_error(errno))
    }

    fn read_exactly(&self, mut at: u64, mut into: &mut [u8]) -> Result<(), Errno> {
        while !into.is_empty() {
            let got = fs::read_at(&self.tape.fd, into, at)?;
            if got == 0 {
                return Err(Errno::RECORDING_BROKEN);
            }
            at += got as u64;
            into = into.get_mut(got..).unwrap_or_default();
        }
        Ok(())
    }

    fn recorded_error(&self) -> SysError {
        let mut parts = Parts(&self.block);
        let errno = parts.array().map_or(Errno::IO, |bytes| Errno(i32::from_le_bytes(bytes)));
        let call = parts.text().unwrap_or_default();
        let object = parts.text().unwrap_or_default();
        SysError::on_bytes(known_call(&call), object.as_bytes(), errno)
    }
}

impl Blocks for ReplayBlocks<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        if self.ended {
            return Ok(None);
        }
        self.block.clear();
        loop {
            let frame = self.step().map_err(|errno| self.read_error(errno))?;
            match frame.kind {
                FrameKind::Block => {
                    self.load(frame)?;
                    return Ok(Some(&self.block));
                }
                FrameKind::Part => self.load(frame)?,
                // The preceding parts are not a whole block.
                _ if !self.block.is_empty() => return Err(self.read_error(Errno::RECORDING_BROKEN)),
                FrameKind::Stopped => return Err(self.read_error(Errno::NOT_RECORDED)),
                FrameKind::Error | FrameKind::Refused => {
                    self.ended = true;
                    self.load(frame)?;
                    return Err(self.recorded_error());
                }
                _ => {
                    self.ended = true;
                    return Ok(None);
                }
            }
        }
    }
}

// An error names its call with a static text, so that live errors cost nothing; a recorded name is looked up among the
// names that this crate and its callers use.
fn known_call(name: &str) -> &'static str {
    const CALLS: &[&str] = &[
        "openat",
        "read",
        "pread64",
        "readlinkat",
        "fstatat",
        "fstat",
        "getdents64",
        "socket",
        "sendto",
        "recvmsg",
        "setsockopt",
        "getsockname",
        "setns",
        "capget",
        "ioctl",
        "write",
        "unshare",
        "bind",
        "connect",
        "replay",
    ];
    CALLS.iter().find(|call| **call == name).unwrap_or(&"read")
}
