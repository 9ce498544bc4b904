//! Writing a recording.
use std::path::Path;

use super::error::TapeError;
use super::frame::{FRAME_HEAD, Head, Kind, MAGIC, PAYLOAD_MAX, VERSION, put_text, sum};
use crate::clock::{self, WallTime};
use crate::errno::{Errno, SysError};
use crate::kernel::Kernel;
use crate::out::{Out, OutError};

/// One write per 64 KiB: two kernel blocks.
const BUFFER: usize = 64 << 10;

/// Appends frames to a file. The first failure is kept and ends the recording, not the run.
#[derive(Debug)]
pub(crate) struct Writer {
    out: Out,
    buffer: Vec<u8>,
    frames: u64,
    next_stream: u32,
    failed: Option<SysError>,
    finished: bool,
}

impl Writer {
    pub(crate) fn create(path: &Path) -> Result<Writer, TapeError> {
        let out = Out::create(path).map_err(TapeError::Io)?;
        let mut writer = Writer {
            out,
            buffer: Vec::with_capacity(BUFFER + FRAME_HEAD),
            frames: 0,
            next_stream: 1,
            failed: None,
            finished: false,
        };
        writer.buffer.extend_from_slice(MAGIC);
        writer.buffer.extend_from_slice(&VERSION.to_le_bytes());
        let kernel = Kernel::running();
        let mut payload = moment(clock::wall());
        payload.push(if cfg!(target_endian = "little") { 1 } else { 2 });
        put_text(&mut payload, &kernel.release);
        put_text(&mut payload, &kernel.machine);
        writer.frame(Kind::Header, 0, &payload);
        Ok(writer)
    }

    /// Begins a stream; its id goes with everything that follows.
    pub(crate) fn open(&mut self, key: &str, note: &str) -> u32 {
        let id = self.next_stream;
        self.next_stream = self.next_stream.wrapping_add(1);
        let mut payload = Vec::with_capacity(4 + key.len() + note.len());
        put_text(&mut payload, key);
        put_text(&mut payload, note);
        self.frame(Kind::Open, id, &payload);
        id
    }

    pub(crate) fn block(&mut self, id: u32, bytes: &[u8]) {
        self.frame(Kind::Block, id, bytes);
    }

    /// A frame without payload: END or STOPPED.
    pub(crate) fn mark(&mut self, kind: Kind, id: u32) {
        self.frame(kind, id, &[]);
    }

    /// ERROR or REFUSED.
    pub(crate) fn error(&mut self, kind: Kind, id: u32, error: &SysError) {
        let mut payload = error.errno.0.to_le_bytes().to_vec();
        put_text(&mut payload, error.call);
        put_text(&mut payload, &error.object);
        self.frame(kind, id, &payload);
    }

    pub(crate) fn round(&mut self, at: WallTime) {
        self.frame(Kind::Round, 0, &moment(at));
    }

    /// Writes the trailer and tells the first failure, if there was one.
    pub(crate) fn finish(&mut self) -> Result<(), TapeError> {
        if !self.finished {
            let frames = self.frames.to_le_bytes();
            self.frame(Kind::Trailer, 0, &frames);
            self.flush();
            self.finished = true;
        }
        match &self.failed {
            Some(error) => Err(TapeError::Write(error.clone())),
            None => Ok(()),
        }
    }

    fn frame(&mut self, kind: Kind, stream: u32, payload: &[u8]) {
        // A stream dropped after `finish` has nothing to add: the trailer stays the last frame.
        if self.failed.is_some() || self.finished {
            return;
        }
        if payload.len() > PAYLOAD_MAX {
            self.failed = Some(SysError::new("write", self.out.name(), Errno::MSGSIZE));
            return;
        }
        // Checked just above: it fits.
        let head = Head { kind: kind as u8, stream, length: payload.len() as u32 }.bytes();
        let tail = sum(&head, payload);
        self.put(&head);
        self.put(payload);
        self.put(&tail);
        self.frames += 1;
    }

    fn put(&mut self, bytes: &[u8]) {
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
        if self.failed.is_some() || size == 0 {
            return;
        }
        self.failed = match how(&mut self.out, &self.buffer) {
            Ok(()) => None,
            // A recording into a pipe whose reader has gone is as lost as one on a full disk.
            Err(OutError::Closed) => Some(SysError::new("write", self.out.name(), Errno::PIPE)),
            Err(OutError::Failed(error)) => Some(error),
        };
    }
}

impl Drop for Writer {
    // Without `finish` there is no trailer, so the file will be known as cut; what was read is still worth keeping.
    fn drop(&mut self) {
        if !self.finished {
            self.flush();
        }
    }
}

fn moment(at: WallTime) -> Vec<u8> {
    let mut payload = at.seconds.to_le_bytes().to_vec();
    payload.extend_from_slice(&at.nanos.to_le_bytes());
    payload
}
