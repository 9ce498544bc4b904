//! The first pass over a recording: verifies every checksum and finds every stream.
use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::error::{Integrity, TapeError};
use super::frame::{
    FILE_HEAD, FRAME_HEAD, FRAME_TAIL, FrameHead, FrameKind, MAGIC, PAYLOAD_MAX, Parts, VERSION, VERSION_MIN,
};
use crate::clock::WallTime;
use crate::errno::{Errno, SysError, escape_bytes};
use crate::fd::Fd;
use crate::fs;
use crate::kernel::Kernel;
use crc32fast::Hasher;

/// Maximum size of a control frame, which is held in memory while it is processed; ours contain at most two texts and
/// a number.
const CONTROL_MAX: usize = 2 * (2 + u16::MAX as usize) + 16;

/// Number of bytes read at once during the pass.
const READ_BYTES: usize = 64 << 10;

/// Where and when a recording was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The time when it began.
    pub time: WallTime,
    /// The recorded machine's kernel.
    pub kernel: Kernel,
    /// True for a recording of everything, false for a recording of one command's reading and for recordings of earlier
    /// versions.
    pub holds_everything: bool,
}

/// The contents of the good part of a file. Memory is linear in the file's size: 24 bytes per frame, plus the texts.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) header: Header,
    /// Key → its streams in the order in which they were recorded, which is also the order of their rounds.
    pub(crate) streams: HashMap<Box<str>, Vec<Stream>>,
    /// Frames of streams, in the order of the file; frames of the same stream are chained.
    frames: Vec<Frame>,
    /// (key, note) of the streams with a note, without repetitions: readers look through all of them in every round.
    pub(crate) notes: Vec<(Box<str>, Box<str>)>,
    /// Table → the fields that were requested. Empty in recordings of version 1.
    pub(crate) asked: HashMap<Box<str>, HashSet<Box<str>>>,
    pub(crate) rounds: Vec<WallTime>,
    pub(crate) integrity: Integrity,
}

/// A recorded stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// The round in which it was read, from 1. Streams read before the first round count as part of it.
    pub(crate) round: usize,
    /// Its OPEN frame.
    pub(crate) open: FrameId,
}

/// An index into [`Index::frames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameId(u32);

impl FrameId {
    /// The end of a stream's chain.
    const NONE: FrameId = FrameId(u32::MAX);
}

/// A frame that was found complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Offset of the payload.
    pub(crate) payload: u64,
    pub(crate) length: u32,
    /// The next frame of the same stream.
    next: FrameId,
    pub(crate) kind: FrameKind,
}

impl Index {
    /// The frame after `of` in the same stream. Constant time.
    pub(crate) fn next(&self, of: FrameId) -> Option<(FrameId, Frame)> {
        let next = self.frames.get(of.0 as usize)?.next;
        Some((next, *self.frames.get(next.0 as usize)?))
    }
}

/// The reason why the pass ended.
enum StopReason {
    Trailer { frames: u64 },
    Cut,
    Garbled(&'static str),
}

/// Reads only the beginning of the file.
pub(crate) fn header(fd: &Fd, path: &str) -> Result<Header, TapeError> {
    IndexPass { input: Input::new(fd), good: 0, frames: 0 }.header(path)
}

/// Makes the pass over the file.
pub(crate) fn index(fd: &Fd, path: &str) -> Result<Index, TapeError> {
    let mut pass = IndexPass { input: Input::new(fd), good: 0, frames: 0 };
    let header = pass.header(path)?;
    let mut index = Index {
        header,
        streams: HashMap::new(),
        frames: Vec::new(),
        notes: Vec::new(),
        asked: HashMap::new(),
        rounds: Vec::new(),
        integrity: Integrity::Whole,
    };
    let failed = |errno| TapeError::Io(SysError::new("read", path, errno));
    let mut seen = EarlierFrames::default();
    let stop = loop {
        match pass.frame().map_err(failed)? {
            Ok((head, payload)) => {
                if let Some(stop) = index.index_frame(&pass, head, &payload, &mut seen) {
                    break stop;
                }
            }
            Err(stop) => break stop,
        }
    };
    index.integrity = pass.check_integrity(&stop).map_err(failed)?;
    Ok(index)
}

/// Stream id → its last frame so far, for the streams that have not ended.
type OpenStreams = HashMap<u32, FrameId>;

/// The pass's memory of earlier frames.
#[derive(Default)]
struct EarlierFrames {
    open: OpenStreams,
    notes: HashSet<(Box<str>, Box<str>)>,
}

impl Index {
    // Records a good frame; `Some` ends the pass.
    fn index_frame(
        &mut self,
        pass: &IndexPass<'_>,
        head: FrameHead,
        payload: &[u8],
        seen: &mut EarlierFrames,
    ) -> Option<StopReason> {
        let mut parts = Parts(payload);
        let kind = FrameKind::from_number(head.kind)?;
        match kind {
            FrameKind::Open => {
                let (Some(key), Some(note)) = (parts.text(), parts.text()) else {
                    return Some(StopReason::Garbled("a stream without a key"));
                };
                if !note.is_empty() {
                    // Both come from a file of unknown origin and will be displayed.
                    let noted = (escape_bytes(key.as_bytes()), escape_bytes(note.as_bytes()));
                    if seen.notes.insert(noted.clone()) {
                        self.notes.push(noted);
                    }
                }
                let Some(first) = self.add(pass, head, kind) else { return Some(StopReason::Garbled(TOO_MANY)) };
                seen.open.insert(head.stream, first);
                let round = self.rounds.len().max(1);
                self.streams.entry(key).or_default().push(Stream { round, open: first });
            }
            FrameKind::Round => match read_time(&mut parts) {
                Some(at) => self.rounds.push(at),
                None => return Some(StopReason::Garbled("a round without a time")),
            },
            FrameKind::Trailer => {
                return Some(match parts.array() {
                    Some(frames) => StopReason::Trailer { frames: u64::from_le_bytes(frames) },
                    None => StopReason::Garbled("a trailer without a count"),
                });
            }
            FrameKind::Header => return Some(StopReason::Garbled("a second header")),
            FrameKind::Asked => {
                let Some(table) = parts.text() else { return Some(StopReason::Garbled("a question without a table")) };
                self.asked.entry(table).or_default().extend(std::iter::from_fn(|| parts.text()));
            }
            FrameKind::Block
            | FrameKind::Part
            | FrameKind::End
            | FrameKind::Stopped
            | FrameKind::Error
            | FrameKind::Refused => {
                return self.link(pass, head, kind, &mut seen.open);
            }
        }
        None
    }

    // Appends a frame to the chain of its stream. A frame of a stream that was never opened, or has ended, is ignored:
    // no chain leads to it.
    fn link(
        &mut self,
        pass: &IndexPass<'_>,
        head: FrameHead,
        kind: FrameKind,
        open: &mut OpenStreams,
    ) -> Option<StopReason> {
        let last = open.get(&head.stream).copied()?;
        let Some(added) = self.add(pass, head, kind) else { return Some(StopReason::Garbled(TOO_MANY)) };
        if let Some(last) = self.frames.get_mut(last.0 as usize) {
            last.next = added;
        }
        match kind.is_data() {
            true => open.insert(head.stream, added),
            false => open.remove(&head.stream),
        };
        None
    }

    fn add(&mut self, pass: &IndexPass<'_>, head: FrameHead, kind: FrameKind) -> Option<FrameId> {
        let id = u32::try_from(self.frames.len()).ok().map(FrameId).filter(|id| *id != FrameId::NONE)?;
        let payload = pass.good.saturating_sub(FRAME_TAIL as u64 + u64::from(head.length));
        self.frames.push(Frame { payload, length: head.length, next: FrameId::NONE, kind });
        Some(id)
    }
}

/// More than 2^32 - 1 frames: at the minimum size of a frame, that is a file of 52 GiB.
const TOO_MANY: &str = "too many frames to distinguish";

struct IndexPass<'f> {
    input: Input<'f>,
    /// Offset after the last good frame.
    good: u64,
    /// Number of good frames.
    frames: u64,
}

impl IndexPass<'_> {
    fn header(&mut self, path: &str) -> Result<Header, TapeError> {
        let io = |errno| TapeError::Io(SysError::new("read", path, errno));
        let mut start = [0; FILE_HEAD];
        let got = self.input.fill(&mut start).map_err(io)?;
        let magic_got = got.min(MAGIC.len());
        if start.get(..magic_got) != MAGIC.get(..magic_got) || got == 0 {
            return Err(TapeError::NotATape { path: path.into() });
        }
        if got < FILE_HEAD {
            return Err(TapeError::NoHeader { path: path.into() });
        }
        let version = u16::from_le_bytes([start[FILE_HEAD - 2], start[FILE_HEAD - 1]]);
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(TapeError::Version { path: path.into(), version });
        }
        self.good = FILE_HEAD as u64;
        match self.frame().map_err(io)? {
            Ok((head, payload)) if head.kind == FrameKind::Header as u8 => parse_header(&payload, path),
            _ => Err(TapeError::NoHeader { path: path.into() }),
        }
    }

    /// The next frame with its payload (empty for blocks, which are only checksummed), or the reason why the pass
    /// ends.
    fn frame(&mut self) -> Result<Result<(FrameHead, Vec<u8>), StopReason>, Errno> {
        let mut bytes = [0; FRAME_HEAD];
        if self.input.fill(&mut bytes)? < FRAME_HEAD {
            return Ok(Err(StopReason::Cut));
        }
        let head = FrameHead::parse(&bytes);
        let length = head.length as usize;
        let is_block = FrameKind::from_number(head.kind).is_some_and(FrameKind::is_data);
        let known = FrameKind::from_number(head.kind).is_some();
        if length > PAYLOAD_MAX || (known && !is_block && length > CONTROL_MAX) {
            return Ok(Err(StopReason::Garbled("a frame longer than any we write")));
        }
        let mut crc = Hasher::new();
        crc.update(&bytes);
        let mut payload = Vec::new();
        let keep = if known && !is_block { Some(&mut payload) } else { None };
        if self.input.read_through(length, &mut crc, keep)? < length {
            return Ok(Err(StopReason::Cut));
        }
        let mut tail = [0; FRAME_TAIL];
        if self.input.fill(&mut tail)? < FRAME_TAIL {
            return Ok(Err(StopReason::Cut));
        }
        if u32::from_le_bytes(tail) != crc.finalize() {
            return Ok(Err(StopReason::Garbled("a wrong checksum")));
        }
        self.good += (FRAME_HEAD + length + FRAME_TAIL) as u64;
        self.frames += 1;
        Ok(Ok((head, payload)))
    }

    fn check_integrity(&mut self, stop: &StopReason) -> Result<Integrity, Errno> {
        let (byte, frames) = (self.good, self.frames);
        Ok(match *stop {
            StopReason::Cut => Integrity::CutAt { byte, frames },
            StopReason::Garbled(what) => Integrity::Garbled { byte, frames, what },
            // The trailer does not count itself.
            StopReason::Trailer { frames: told } if told + 1 != frames => {
                Integrity::Garbled { byte, frames, what: "frames are missing" }
            }
            StopReason::Trailer { .. } if self.input.fill(&mut [0])? > 0 => {
                Integrity::Garbled { byte, frames, what: "something follows the end" }
            }
            StopReason::Trailer { .. } => Integrity::Whole,
        })
    }
}

fn parse_header(payload: &[u8], path: &str) -> Result<Header, TapeError> {
    let mut parts = Parts(payload);
    let parsed = (|| Some((read_time(&mut parts)?, parts.array::<1>()?, parts.text()?, parts.text()?)))();
    let Some((time, [endian], release, machine)) = parsed else {
        return Err(TapeError::NoHeader { path: path.into() });
    };
    if (endian == 1) != cfg!(target_endian = "little") {
        return Err(TapeError::ByteOrder { path: path.into() });
    }
    let (release, machine) = (escape_bytes(release.as_bytes()), escape_bytes(machine.as_bytes()));
    let holds_everything = parts.array() == Some([1]);
    Ok(Header { time, kernel: Kernel { release, machine }, holds_everything })
}

fn read_time(parts: &mut Parts<'_>) -> Option<WallTime> {
    let seconds = i64::from_le_bytes(parts.array()?);
    let nanos = u32::from_le_bytes(parts.array()?);
    Some(WallTime { seconds, nanos: nanos.min(999_999_999) })
}

/// Buffered reading that distinguishes a truncated file from a failed read.
struct Input<'f> {
    fd: &'f Fd,
    buffer: Vec<u8>,
    at: usize,
}

impl<'f> Input<'f> {
    fn new(fd: &'f Fd) -> Input<'f> {
        Input { fd, buffer: Vec::with_capacity(READ_BYTES), at: 0 }
    }

    // The buffered bytes; empty only at the end of the file.
    fn fill_some(&mut self) -> Result<&[u8], Errno> {
        if self.at >= self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            fs::read_append(self.fd, &mut self.buffer, READ_BYTES)?;
        }
        Ok(self.buffer.get(self.at..).unwrap_or_default())
    }

    /// Fills `into` as far as the file reaches; returns the number of bytes.
    fn fill(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut filled = 0;
        while filled < into.len() {
            let mut some = self.fill_some()?;
            let taken = some.read(into.get_mut(filled..).unwrap_or_default()).unwrap_or(0);
            if taken == 0 {
                break;
            }
            self.at += taken;
            filled += taken;
        }
        Ok(filled)
    }

    /// Reads `count` bytes, adds them to the checksum and optionally keeps them; returns how many there were.
    fn read_through(&mut self, count: usize, crc: &mut Hasher, mut keep: Option<&mut Vec<u8>>) -> Result<usize, Errno> {
        let mut done = 0;
        while done < count {
            let some = self.fill_some()?;
            let some = some.get(..count - done).unwrap_or(some);
            if some.is_empty() {
                break;
            }
            crc.update(some);
            if let Some(keep) = keep.as_mut() {
                keep.extend_from_slice(some);
            }
            let taken = some.len();
            self.at += taken;
            done += taken;
        }
        Ok(done)
    }
}
