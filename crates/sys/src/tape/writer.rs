//! Writing a recording.
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::error::TapeError;
use super::frame::{
    BLOCK_MAX, FRAME_HEAD, FRAME_TAIL, FrameHead, FrameKind, MAGIC, PAYLOAD_MAX, TEXT_MAX, VERSION, put_text, sum,
};
use crate::clock::{self, WallTime};
use crate::errno::{Errno, SysError, escape_bytes};
use crate::fd::Fd;
use crate::kernel::Kernel;
use crate::out::{Out, OutError};
use crate::outfile;
use crate::signal;

/// Size of the write buffer: two kernel blocks.
const BUFFER: usize = 64 << 10;

/// Maximum time that a frame waits in the buffer.
pub(crate) const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Size of the trailer: its frame with a count.
const TRAILER: u64 = (FRAME_HEAD + 8 + FRAME_TAIL) as u64;

/// Appends frames to a file. The first failure is stored and ends the recording, not the run.
///
/// Frames wait in a buffer, which a thread empties every [`FLUSH_EVERY`].
#[derive(Debug)]
pub(crate) struct TapeWriter {
    shared: Arc<Shared>,
    flusher: Option<JoinHandle<()>>,
}

/// State that the flushing thread shares with the run.
#[derive(Debug)]
struct Shared {
    file: Mutex<File>,
    over: Condvar,
}

impl Shared {
    // A panic while the lock is held leaves at worst an incomplete frame, which the reader detects by its checksum.
    fn lock(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush_until_over(&self) {
        let mut file = self.lock();
        while !file.over {
            let waited = self.over.wait_timeout(file, FLUSH_EVERY);
            file = waited.unwrap_or_else(PoisonError::into_inner).0;
            file.flush();
        }
    }
}

impl TapeWriter {
    /// Creates the file and writes at most `limit` bytes to it. For `holds_everything` see [`super::Header`].
    pub(crate) fn create(path: &Path, limit: u64, holds_everything: bool) -> Result<TapeWriter, TapeError> {
        let shown = escape_bytes(path.as_os_str().as_encoded_bytes());
        let file = outfile::replace(path).map_err(|error| match error.raw_os_error() {
            Some(errno) => TapeError::Io(SysError { call: "openat", object: shown.clone(), errno: Errno(errno) }),
            None => TapeError::NotOurs { path: shown.clone(), what: error.to_string().into() },
        })?;
        let fd = Fd::from(file);
        let shared =
            Arc::new(Shared { file: Mutex::new(File::new(Out::from_fd(fd, &shown), limit)), over: Condvar::new() });
        let flushed = Arc::clone(&shared);
        let flusher = std::thread::Builder::new().name("netwren-tape".into()).spawn(move || {
            signal::block_all_on_this_thread();
            flushed.flush_until_over();
        });
        let writer = TapeWriter { shared, flusher: flusher.ok() };
        let mut file = writer.shared.lock();
        file.eager = writer.flusher.is_none();
        file.begin(holds_everything);
        drop(file);
        Ok(writer)
    }

    /// Begins a stream; all following frames of the stream carry its id.
    pub(crate) fn open(&self, key: &str, note: &str) -> u32 {
        let mut file = self.shared.lock();
        let id = file.next_stream;
        file.next_stream = id.wrapping_add(1);
        let mut payload = Vec::with_capacity(4 + key.len() + note.len());
        put_text(&mut payload, key);
        put_text(&mut payload, note);
        file.frame(FrameKind::Open, id, &payload);
        id
    }

    /// Writes a block; a block larger than a frame is split into several.
    pub(crate) fn block(&self, id: u32, bytes: &[u8]) {
        let mut file = self.shared.lock();
        if bytes.len() > BLOCK_MAX {
            file.fail(Errno::MSGSIZE);
        }
        let mut rest = bytes;
        while let Some((part, after)) = rest.split_at_checked(PAYLOAD_MAX).filter(|(_, after)| !after.is_empty()) {
            file.frame(FrameKind::Part, id, part);
            rest = after;
        }
        file.frame(FrameKind::Block, id, rest);
    }

    /// Writes a frame without payload: END or STOPPED.
    pub(crate) fn mark(&self, kind: FrameKind, id: u32) {
        self.shared.lock().frame(kind, id, &[]);
    }

    /// Writes ERROR or REFUSED.
    pub(crate) fn error(&self, kind: FrameKind, id: u32, error: &SysError) {
        let mut payload = error.errno.0.to_le_bytes().to_vec();
        put_text(&mut payload, error.call);
        put_text(&mut payload, &error.object);
        self.shared.lock().frame(kind, id, &payload);
    }

    pub(crate) fn round(&self, at: WallTime) {
        self.shared.lock().frame(FrameKind::Round, 0, &time_bytes(at));
    }

    /// Writes ASKED. The same content is not repeated in every round.
    pub(crate) fn write_requested(&self, table: &str, fields: &mut dyn Iterator<Item = &str>) {
        let mut payload = Vec::new();
        put_text(&mut payload, table);
        // A control frame has room for twice this; the names of the fields are some hundreds of short words.
        for field in fields.take_while(|field| field.len() < TEXT_MAX) {
            if payload.len() + field.len() > TEXT_MAX {
                break;
            }
            put_text(&mut payload, field);
        }
        let mut file = self.shared.lock();
        if !file.asked.contains(&payload) {
            file.frame(FrameKind::Asked, 0, &payload);
            file.asked.insert(payload);
        }
    }

    /// True once nothing more is written to the file, because it is full or could not be written.
    pub(crate) fn has_stopped(&self) -> bool {
        self.shared.lock().stopped.is_some()
    }

    /// Writes the trailer and returns the first failure, if there was one.
    pub(crate) fn finish(&self) -> Result<(), TapeError> {
        self.shared.lock().finish()
    }
}

impl Drop for TapeWriter {
    // Without `finish` the file has no trailer, so it is recognized as truncated; the data read so far is still worth
    // keeping.
    fn drop(&mut self) {
        let mut file = self.shared.lock();
        file.flush();
        file.over = true;
        drop(file);
        self.shared.over.notify_all();
        if let Some(flusher) = self.flusher.take() {
            // It does not panic; if it did, everything is flushed already.
            let _ = flusher.join();
        }
    }
}

/// The file and the data waiting to be written to it.
#[derive(Debug)]
struct File {
    out: Out,
    buffer: Vec<u8>,
    /// Size of all frames so far in bytes, including those in the buffer.
    size: u64,
    limit: u64,
    frames: u64,
    next_stream: u32,
    /// The ASKED frames that were written: a run has one or two per table.
    asked: HashSet<Vec<u8>>,
    stopped: Option<TapeError>,
    finished: bool,
    /// True without a flushing thread: every frame is then written immediately.
    eager: bool,
    over: bool,
}

impl File {
    fn new(out: Out, limit: u64) -> File {
        File {
            out,
            buffer: Vec::with_capacity(BUFFER + FRAME_HEAD),
            size: 0,
            limit,
            frames: 0,
            next_stream: 1,
            asked: HashSet::new(),
            stopped: None,
            finished: false,
            eager: false,
            over: false,
        }
    }

    fn begin(&mut self, holds_everything: bool) {
        self.put(MAGIC);
        self.put(&VERSION.to_le_bytes());
        let kernel = Kernel::read_running();
        let mut payload = time_bytes(clock::wall());
        payload.push(if cfg!(target_endian = "little") { 1 } else { 2 });
        put_text(&mut payload, &kernel.release);
        put_text(&mut payload, &kernel.machine);
        payload.push(u8::from(holds_everything));
        self.frame(FrameKind::Header, 0, &payload);
    }

    fn finish(&mut self) -> Result<(), TapeError> {
        if !self.finished {
            let frames = self.frames.to_le_bytes();
            if self.stopped.is_none() {
                self.write_frame(FrameKind::Trailer, 0, &frames);
            }
            self.flush();
            self.finished = true;
        }
        self.stopped.clone().map_or(Ok(()), Err)
    }

    fn frame(&mut self, kind: FrameKind, stream: u32, payload: &[u8]) {
        // A stream that is dropped after `finish` has nothing to add: the trailer stays the last frame.
        if self.stopped.is_some() || self.finished {
            return;
        }
        let size = (FRAME_HEAD + payload.len() + FRAME_TAIL) as u64;
        if self.size.saturating_add(size).saturating_add(TRAILER) > self.limit {
            // The frames that fit stay intact; the trailer is missing, so a replay knows that the recording is
            // incomplete.
            self.flush();
            self.stopped.get_or_insert(TapeError::Full { path: self.out.name().into(), limit: self.limit });
            return;
        }
        self.write_frame(kind, stream, payload);
        if self.eager {
            self.flush();
        }
    }

    fn write_frame(&mut self, kind: FrameKind, stream: u32, payload: &[u8]) {
        if payload.len() > PAYLOAD_MAX {
            return self.fail(Errno::MSGSIZE);
        }
        // It fits, as checked just above.
        let head = FrameHead { kind: kind as u8, stream, length: payload.len() as u32 }.bytes();
        let tail = sum(&head, payload);
        self.put(&head);
        self.put(payload);
        self.put(&tail);
        self.frames += 1;
    }

    // Ends the recording. Earlier data is still written, so that it is not lost together with the rest.
    fn fail(&mut self, errno: Errno) {
        self.flush();
        let error = SysError::new("write", self.out.name(), errno);
        self.stopped.get_or_insert(TapeError::Write(error));
    }

    fn put(&mut self, bytes: &[u8]) {
        self.size = self.size.saturating_add(bytes.len() as u64);
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush();
        }
        if bytes.len() > BUFFER {
            self.write(bytes.len(), |out, _| out.write_all(bytes));
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn flush(&mut self) {
        self.write(self.buffer.len(), |out, buffer| out.write_all(buffer));
        self.buffer.clear();
    }

    fn write(&mut self, size: usize, how: impl FnOnce(&mut Out, &[u8]) -> Result<(), OutError>) {
        if self.stopped.is_some() || size == 0 {
            return;
        }
        self.stopped = match how(&mut self.out, &self.buffer) {
            Ok(()) => None,
            // A regular file has no reader that could close its end.
            Err(OutError::Closed) => Some(TapeError::Write(SysError::new("write", self.out.name(), Errno::PIPE))),
            Err(OutError::Failed(error)) => Some(TapeError::Write(error)),
        };
    }
}

fn time_bytes(at: WallTime) -> Vec<u8> {
    let mut payload = at.seconds.to_le_bytes().to_vec();
    payload.extend_from_slice(&at.nanos.to_le_bytes());
    payload
}
