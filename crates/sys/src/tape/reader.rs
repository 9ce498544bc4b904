//! Replaying a recording: streams by key, in the order in which they were recorded.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;

use super::error::{Integrity, TapeError};
use super::frame::{FRAME_HEAD, FRAME_TAIL, Head, Kind, PAYLOAD_MAX, Parts};
use super::index::{self, Header, Index};
use crate::clock::WallTime;
use crate::errno::{Errno, SysError, escaped};
use crate::fd::Fd;
use crate::fs;
use crate::host::Blocks;

/// A checked recording.
#[derive(Debug)]
pub(crate) struct Reader {
    fd: Fd,
    path: Box<str>,
    index: Index,
    /// Key → how many of its streams were played.
    played: RefCell<HashMap<Box<str>, usize>>,
    /// Rounds begun.
    begun: Cell<usize>,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Reader, TapeError> {
        let shown = escaped(path.as_os_str().as_encoded_bytes());
        // Before opening: a pipe without a writer would make us wait for ever.
        if !fs::stat(path).map_err(TapeError::Io)?.is_file() {
            return Err(TapeError::NotAFile { path: shown });
        }
        let fd = fs::open(path).map_err(TapeError::Io)?;
        let index = index::index(&fd, &shown)?;
        Ok(Reader { fd, path: shown, index, played: RefCell::default(), begun: Cell::new(0) })
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

    /// The error that a run on this recording has to end with, if it is not whole.
    pub(crate) fn verdict(&self) -> Result<(), TapeError> {
        match self.index.integrity {
            Integrity::Whole => Ok(()),
            integrity => Err(TapeError::Broken { path: self.path.clone(), integrity }),
        }
    }

    /// Begins the next recorded round; false if there is none. A recording without rounds has one.
    pub(crate) fn begin_round(&self) -> bool {
        let begun = self.begun.get();
        self.begun.set(begun + 1);
        begun < self.index.rounds.len().max(1)
    }

    /// The time of the round that runs, or of the beginning.
    pub(crate) fn now(&self) -> WallTime {
        let round = self.begun.get().checked_sub(1);
        round.and_then(|n| self.index.rounds.get(n)).copied().unwrap_or(self.index.header.time)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.index.streams.contains_key(key)
    }

    /// The next stream of `key`; the last one again when all were played.
    pub(crate) fn stream(&self, key: &str) -> Result<ReplayBlocks<'_>, SysError> {
        let missing = || SysError::on_bytes("replay", key.as_bytes(), Errno::NOT_RECORDED);
        let recorded = self.index.streams.get(key).ok_or_else(missing)?;
        let mut played = self.played.borrow_mut();
        let count = played.entry(key.into()).or_insert(0);
        let (id, at) = *recorded.get(*count).or(recorded.last()).ok_or_else(missing)?;
        *count += 1;
        let mut blocks = ReplayBlocks { tape: self, key: key.into(), id, at, block: Vec::new(), ended: false };
        match blocks.refusal()? {
            Some(error) => Err(error),
            None => Ok(blocks),
        }
    }
}

/// The blocks of one recorded stream.
#[derive(Debug)]
pub(crate) struct ReplayBlocks<'t> {
    tape: &'t Reader,
    key: Box<str>,
    id: u32,
    at: u64,
    block: Vec<u8>,
    ended: bool,
}

impl ReplayBlocks<'_> {
    fn failed(&self, errno: Errno) -> SysError {
        SysError::on_bytes("replay", self.key.as_bytes(), errno)
    }

    // The error with which opening failed in the recording. The frame stays unread if it is another.
    fn refusal(&mut self) -> Result<Option<SysError>, SysError> {
        let before = self.at;
        match self.find() {
            Ok((head, _)) if head.kind == Kind::Refused as u8 => {
                self.load(head)?;
                Ok(Some(self.recorded_error()))
            }
            // A file cut right here: `next` will say so.
            _ => {
                self.at = before;
                Ok(None)
            }
        }
    }

    // The head of this stream's next frame and the offset of its payload; `at` moves behind the frame.
    fn find(&mut self) -> Result<(Head, u64), Errno> {
        loop {
            if self.at >= self.tape.index.good {
                return Err(Errno::RECORDING_BROKEN);
            }
            let mut bytes = [0; FRAME_HEAD];
            self.read_exactly(self.at, &mut bytes)?;
            let head = Head::parse(&bytes);
            let payload = self.at + FRAME_HEAD as u64;
            self.at = payload + u64::from(head.length) + FRAME_TAIL as u64;
            if head.stream == self.id {
                return Ok((head, payload));
            }
        }
    }

    // Reads the payload of the frame that `find` has just passed.
    fn load(&mut self, head: Head) -> Result<(), SysError> {
        let length = head.length as usize;
        if length > PAYLOAD_MAX {
            // The first pass checked this: the file has changed since.
            return Err(self.failed(Errno::RECORDING_BROKEN));
        }
        let start = self.at - u64::from(head.length) - FRAME_TAIL as u64;
        let mut block = std::mem::take(&mut self.block);
        block.resize(length, 0);
        let read = self.read_exactly(start, &mut block);
        self.block = block;
        read.map_err(|errno| self.failed(errno))
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
        loop {
            let (head, _) = self.find().map_err(|errno| self.failed(errno))?;
            match Kind::of(head.kind) {
                Some(Kind::Block) => {
                    self.load(head)?;
                    return Ok(Some(&self.block));
                }
                Some(Kind::End) => {
                    self.ended = true;
                    return Ok(None);
                }
                Some(Kind::Stopped) => return Err(self.failed(Errno::NOT_RECORDED)),
                Some(Kind::Error | Kind::Refused) => {
                    self.ended = true;
                    self.load(head)?;
                    return Err(self.recorded_error());
                }
                // Kinds of a later version.
                _ => {}
            }
        }
    }
}

// An error names its call by a static text, so that live ones cost nothing; a recorded name is
// looked up among those this crate and its callers use.
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
