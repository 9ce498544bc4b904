//! Pieces of memory that carry batches of datagrams from the reader's thread to the thread that makes rows, and back.
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use sys::SysError;

use super::batch::{BATCH_HEADER, BatchHeader, DatagramFrame, FRAME};

/// How large chunks are, and how many there may be.
#[derive(Debug, Clone, Copy)]
pub struct ChunkSizes {
    /// Bytes of a chunk.
    pub bytes: usize,
    /// Free bytes that a chunk must have to receive one more datagram.
    pub datagram_bytes_max: usize,
    /// Most chunks: what waits while rows are written.
    pub chunks_max: usize,
}

/// A batch: its header, then a frame for each datagram.
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

    /// One without room.
    pub(super) fn none() -> Chunk {
        Chunk { bytes: Box::default(), filled: BATCH_HEADER, datagram_bytes_max: 0 }
    }

    /// Empties it, and gives its memory back until something is received again.
    pub(super) fn give_back(&mut self) {
        self.clear();
        sys::memory::zero(&mut self.bytes);
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.filled = BATCH_HEADER;
    }

    /// Takes back the frames from offset `at` on.
    pub fn cut(&mut self, at: usize) {
        self.filled = self.filled.min(at).max(BATCH_HEADER);
    }

    /// Puts the counts before the frames.
    pub(super) fn set_header(&mut self, header: &BatchHeader) {
        if let Some(place) = self.bytes.get_mut(..BATCH_HEADER) {
            place.copy_from_slice(&header.bytes());
        }
    }

    /// The batch.
    pub fn batch(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// True if it holds no datagram.
    pub fn is_empty(&self) -> bool {
        self.filled <= BATCH_HEADER
    }

    /// True if it may be too full for one more datagram.
    pub fn is_full(&self) -> bool {
        self.bytes.len() < self.filled + FRAME + self.datagram_bytes_max
    }

    /// Offset of the next frame.
    pub fn next_frame(&self) -> usize {
        self.filled
    }

    /// Where the messages of the next frame are to be received.
    pub fn messages_of_next_frame(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.filled + FRAME..).unwrap_or_default()
    }

    /// Completes the next frame, whose messages lie in its place already: they are `bytes` long.
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

/// The reader's end of the two queues: filled chunks out, empty ones back.
pub struct ChunkSender {
    filled: SyncSender<Result<Chunk, SysError>>,
    empty: Receiver<Chunk>,
    /// Chunks allocated so far.
    chunks: usize,
    sizes: ChunkSizes,
}

/// The other end.
pub(super) struct ChunkReceiver {
    pub(super) filled: Receiver<Result<Chunk, SysError>>,
    empty: Sender<Chunk>,
}

/// Both ends. The sender has one chunk already.
pub(super) fn chunk_queue(sizes: ChunkSizes) -> (ChunkSender, ChunkReceiver) {
    let ((filled, filled_rx), (empty_tx, empty)) = (sync_channel(sizes.chunks_max), channel());
    let sender = ChunkSender { filled, empty, chunks: 1, sizes };
    (sender, ChunkReceiver { filled: filled_rx, empty: empty_tx })
}

impl ChunkSender {
    /// Sends `chunk` under `header` and puts an empty one in its place, waiting for one if all are in use. False if the
    /// other end has gone: then nothing more can be sent.
    pub fn send(&mut self, chunk: &mut Chunk, header: &BatchHeader) -> bool {
        chunk.set_header(header);
        let filled = std::mem::replace(chunk, Chunk::none());
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

    /// Makes a chunk of one without room.
    pub(super) fn fill_in(&self, chunk: &mut Chunk) {
        if chunk.bytes.is_empty() {
            *chunk = Chunk::new(self.sizes);
        }
    }

    /// Frees the empty chunks that have come back.
    pub(super) fn free_spares(&mut self) {
        self.chunks -= self.empty.try_iter().count();
    }

    /// Sends the reason why the reader ends before it was asked to.
    pub fn fail(&self, error: SysError) {
        let _ = self.filled.send(Err(error));
    }
}

impl ChunkReceiver {
    /// Gives a chunk back to the reader.
    pub(super) fn give_back(&self, chunk: Chunk) {
        // The thread may have ended: then no chunk is needed.
        let _ = self.empty.send(chunk);
    }

    /// Closes both queues: a thread that waits for an empty chunk or for room in the queue wakes and ends.
    pub(super) fn close(&mut self) {
        self.filled = sync_channel(0).1;
        self.empty = channel().0;
    }
}
