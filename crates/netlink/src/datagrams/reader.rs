//! A thread that receives datagrams, and its batches as blocks.
use std::os::unix::net::UnixStream;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sys::{Blocks, Errno, SysError};

use super::batch::BATCH_HEADER;
use super::chunks::{Chunk, ChunkReceiver, ChunkSender, ChunkSizes, chunk_queue};

/// Interval at which the caller is asked whether the run must end.
pub(super) const STOP_CHECK_MS: u64 = 50;
/// After this many intervals without a datagram, a block without frames is handed out, so that the reader can handle
/// timeouts.
pub(super) const IDLE_CHECKS: u32 = 4;

/// The batches that a thread receives, as blocks.
pub struct DatagramReader<'h> {
    input: ChunkReceiver,
    /// The batch that the caller reads.
    chunk: Option<Chunk>,
    /// The header of the last batch.
    idle: Vec<u8>,
    stop: &'h dyn Fn() -> bool,
    /// Closing it stops the thread; `None` once the thread was asked to stop.
    stopper: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl<'h> DatagramReader<'h> {
    /// Starts a thread called `name` that runs `receive`, which fills the chunk, sends it, and ends once the stream is
    /// readable. `stop` is called about twenty times a second and returns true once the run must end.
    pub fn start(
        name: &str,
        sizes: ChunkSizes,
        stop: &'h dyn Fn() -> bool,
        receive: impl FnOnce(ChunkSender, Chunk, UnixStream) + Send + 'static,
    ) -> Result<DatagramReader<'h>, SysError> {
        let failed = |error: std::io::Error| {
            SysError::new("socketpair", "the reader of events", Errno(error.raw_os_error().unwrap_or(0)))
        };
        let (stopper, stopped) = UnixStream::pair().map_err(failed)?;
        let ((output, input), chunk) = (chunk_queue(sizes), Chunk::new(sizes));
        let thread = Builder::new().name(name.into()).spawn(move || receive(output, chunk, stopped)).map_err(failed)?;
        Ok(DatagramReader { input, chunk: None, idle: Vec::new(), stop, stopper: Some(stopper), thread: Some(thread) })
    }
}

impl Blocks for DatagramReader<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        if let Some(chunk) = self.chunk.take() {
            self.idle.clear();
            self.idle.extend_from_slice(chunk.batch().get(..BATCH_HEADER).unwrap_or_default());
            self.input.return_chunk(chunk);
        }
        let mut checks = 0;
        loop {
            if self.stopper.is_some() && (self.stop)() {
                self.stopper = None;
            }
            match self.input.filled.recv_timeout(Duration::from_millis(STOP_CHECK_MS)) {
                Ok(chunk) => return Ok(Some(self.chunk.insert(chunk?).batch())),
                Err(RecvTimeoutError::Timeout) => checks += 1,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            if checks >= IDLE_CHECKS && !self.idle.is_empty() {
                return Ok(Some(&self.idle));
            }
        }
    }
}

impl Drop for DatagramReader<'_> {
    fn drop(&mut self) {
        self.stopper = None;
        self.input.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
