//! Chunks of memory that carry batches of datagrams from the receiving thread to the thread that makes rows, and back.
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use sys::SysError;

use super::batch::{BATCH_HEADER, BatchHeader, DatagramFrame, FRAME};

/// Size and number of chunks.
#[derive(Debug, Clone, Copy)]
pub struct ChunkSizes {
    /// Size of a chunk in bytes.
    pub bytes: usize,
    /// Number of free bytes that a chunk needs to receive one more datagram.
    pub datagram_bytes_max: usize,
    /// Maximum number of chunks: they hold datagrams while rows are written.
    pub chunks_max: usize,
}

/// A batch: its header, followed by a frame for each datagram.
pub struct Chunk {
    bytes: Box<[u8]>,
    filled: usize,
    datagram_bytes_max: usize,
}

impl Chunk {
    pub(super) fn new(sizes: ChunkSizes) -> Chunk {
        let datagram_bytes_max = sizes.datagram_bytes_max;
        Chunk { bytes: vec![0; sizes.bytes].into(), filled: BATCH_HEADER, datagram_bytes_max }
    }

    /// A chunk without memory.
    pub(super) fn without_memory() -> Chunk {
        Chunk { bytes: Box::default(), filled: BATCH_HEADER, datagram_bytes_max: 0 }
    }

    /// Empties the chunk and returns its memory to the kernel until something is received again.
    pub(super) fn release(&mut self) {
        self.clear();
        sys::memory::zero(&mut self.bytes);
    }

    /// Empties the chunk.
    pub(super) fn clear(&mut self) {
        self.filled = BATCH_HEADER;
    }

    /// Removes the frames from offset `at` on.
    pub fn truncate(&mut self, at: usize) {
        self.filled = self.filled.min(at).max(BATCH_HEADER);
    }

    /// Writes the counts before the frames.
    pub(super) fn set_header(&mut self, header: &BatchHeader) {
        if let Some(place) = self.bytes.get_mut(..BATCH_HEADER) {
            place.copy_from_slice(&header.bytes());
        }
    }

    /// The bytes of the batch.
    pub fn batch(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// True if it contains no datagram.
    pub fn is_empty(&self) -> bool {
        self.filled <= BATCH_HEADER
    }

    /// True if one more datagram might not fit.
    pub fn is_full(&self) -> bool {
        self.bytes.len() < self.filled + FRAME + self.datagram_bytes_max
    }

    /// Offset of the next frame.
    pub fn next_frame(&self) -> usize {
        self.filled
    }

    /// Memory into which the messages of the next frame must be received.
    pub fn messages_of_next_frame(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.filled + FRAME..).unwrap_or_default()
    }

    /// Completes the next frame, whose messages are in place already and `bytes` bytes long.
    pub fn push_frame(&mut self, netns_id: u64, wall_ns: u64, nsid: Option<i32>, bytes: usize) {
        let header = self.bytes.get_mut(self.filled..).unwrap_or_default();
        DatagramFrame::put(header, netns_id, wall_ns, nsid, bytes);
        self.filled += FRAME + bytes;
    }

    /// Replaces the namespace in the frame at offset `at`.
    pub fn set_netns_id(&mut self, at: usize, netns_id: u64) {
        DatagramFrame::put_netns_id(self.bytes.get_mut(at..).unwrap_or_default(), netns_id);
    }
}

/// The receiving thread's end of two queues: filled chunks out, empty ones back.
pub struct ChunkSender {
    filled: SyncSender<Result<Chunk, SysError>>,
    empty: Receiver<Chunk>,
    /// Number of chunks allocated so far.
    chunks: usize,
    sizes: ChunkSizes,
}

/// The other end of the two queues.
pub(super) struct ChunkReceiver {
    pub(super) filled: Receiver<Result<Chunk, SysError>>,
    empty: Sender<Chunk>,
}

/// Creates both ends. The sender has one chunk already.
pub(super) fn chunk_queue(sizes: ChunkSizes) -> (ChunkSender, ChunkReceiver) {
    let ((filled, filled_rx), (empty_tx, empty)) = (sync_channel(sizes.chunks_max), channel());
    let sender = ChunkSender { filled, empty, chunks: 1, sizes };
    (sender, ChunkReceiver { filled: filled_rx, empty: empty_tx })
}

impl ChunkSender {
    /// Sends `chunk` with `header` and replaces it with an empty one, waiting for one if all are in use. Returns false
    /// if the other end was closed: then nothing more can be sent.
    pub fn send(&mut self, chunk: &mut Chunk, header: &BatchHeader) -> bool {
        chunk.set_header(header);
        let filled = std::mem::replace(chunk, Chunk::without_memory());
        if self.filled.send(Ok(filled)).is_err() {
            return false;
        }
        let next = match self.empty.try_recv() {
            Ok(chunk) => Some(chunk),
            Err(_) if self.chunks < self.sizes.chunks_max => {
                self.chunks += 1;
                Some(Chunk::new(self.sizes))
            }
            Err(_) => self.empty.recv().ok(),
        };
        let Some(next) = next else { return false };
        *chunk = Chunk { filled: BATCH_HEADER, ..next };
        true
    }

    /// Allocates the memory of a chunk that has none.
    pub(super) fn fill_in(&self, chunk: &mut Chunk) {
        if chunk.bytes.is_empty() {
            *chunk = Chunk::new(self.sizes);
        }
    }

    /// Frees the empty chunks that have been returned.
    pub(super) fn free_spares(&mut self) {
        self.chunks -= self.empty.try_iter().count();
    }

    /// Sends the error that ends the receiving thread early.
    pub fn fail(&self, error: SysError) {
        let _ = self.filled.send(Err(error));
    }
}

impl ChunkReceiver {
    /// Returns a chunk to the receiving thread.
    pub(super) fn return_chunk(&self, chunk: Chunk) {
        // If the thread has ended, it needs no chunk.
        let _ = self.empty.send(chunk);
    }

    /// Closes both queues: a thread that waits for an empty chunk or for space in the queue wakes up and ends.
    pub(super) fn close(&mut self) {
        self.filled = sync_channel(0).1;
        self.empty = channel().0;
    }
}
