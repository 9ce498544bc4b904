//! Pieces of memory that carry batches of datagrams from the reader's thread to the thread that makes rows, and back.
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use sys::SysError;

use crate::events::netlink::batch::{BATCH_HEADER, BatchHeader, DatagramFrame, FRAME};

/// Bytes of a chunk: some 1,000 messages.
const CHUNK_BYTES: usize = 256 << 10;
/// Free bytes that a chunk must have to receive one more datagram. An event has 200 to 400 bytes, 1 KiB with every
/// attribute.
const DATAGRAM_BYTES_MAX: usize = 16 << 10;
/// Most chunks of a reader: 64 MiB, some 260,000 messages that wait while rows are written.
pub(crate) const CHUNKS_MAX: usize = 256;

/// A batch: its header, then a frame for each datagram.
pub(crate) struct Chunk {
    bytes: Box<[u8]>,
    filled: usize,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { bytes: vec![0; CHUNK_BYTES].into(), filled: BATCH_HEADER }
    }

    /// The batch.
    pub(crate) fn batch(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// True if it holds no datagram.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled <= BATCH_HEADER
    }

    /// True if it may be too full for one more datagram.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() < self.filled + FRAME + DATAGRAM_BYTES_MAX
    }

    /// Offset of the next frame.
    pub(crate) fn next_frame(&self) -> usize {
        self.filled
    }

    /// Where the messages of the next frame are to be received.
    pub(crate) fn messages_of_next_frame(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.filled + FRAME..).unwrap_or_default()
    }

    /// Completes the next frame, whose messages lie in its place already: they are `bytes` long.
    pub(crate) fn push_frame(&mut self, netns_id: u64, wall_ns: u64, nsid: Option<i32>, bytes: usize) {
        let header = self.bytes.get_mut(self.filled..).unwrap_or_default();
        DatagramFrame::put(header, netns_id, wall_ns, nsid, bytes);
        self.filled += FRAME + bytes;
    }

    /// Replaces the namespace in the frame at offset `at`.
    pub(crate) fn set_netns_id(&mut self, at: usize, netns_id: u64) {
        DatagramFrame::put_netns_id(self.bytes.get_mut(at..).unwrap_or_default(), netns_id);
    }
}

/// The reader's end of the two queues: filled chunks out, empty ones back.
pub(crate) struct ChunkSender {
    filled: SyncSender<Result<Chunk, SysError>>,
    empty: Receiver<Chunk>,
    /// Chunks allocated so far.
    chunks: usize,
    chunks_max: usize,
}

/// The other end.
pub(crate) struct ChunkReceiver {
    pub(crate) filled: Receiver<Result<Chunk, SysError>>,
    empty: Sender<Chunk>,
}

/// Both ends, and the first chunk. At most `chunks_max` chunks will exist.
pub(crate) fn chunk_queue(chunks_max: usize) -> (ChunkSender, ChunkReceiver, Chunk) {
    let ((filled, filled_rx), (empty_tx, empty)) = (sync_channel(chunks_max), channel());
    let sender = ChunkSender { filled, empty, chunks: 1, chunks_max };
    (sender, ChunkReceiver { filled: filled_rx, empty: empty_tx }, Chunk::new())
}

impl ChunkSender {
    /// Sends `chunk` under `header` and puts an empty one in its place, waiting for one if all are in use. False if the
    /// other end has gone: then nothing more can be sent.
    pub(crate) fn send(&mut self, chunk: &mut Chunk, header: &BatchHeader) -> bool {
        if let Some(place) = chunk.bytes.get_mut(..BATCH_HEADER) {
            place.copy_from_slice(&header.bytes());
        }
        let filled = std::mem::replace(chunk, Chunk { bytes: Box::default(), filled: BATCH_HEADER });
        if self.filled.send(Ok(filled)).is_err() {
            return false;
        }
        let next = match self.empty.try_recv() {
            Ok(chunk) => Some(chunk),
            Err(_) if self.chunks < self.chunks_max => {
                self.chunks += 1;
                Some(Chunk::new())
            }
            Err(_) => self.empty.recv().ok(),
        };
        let Some(next) = next else { return false };
        *chunk = Chunk { filled: BATCH_HEADER, ..next };
        true
    }

    /// Sends the reason why the reader ends before it was asked to.
    pub(crate) fn fail(&self, error: SysError) {
        let _ = self.filled.send(Err(error));
    }
}

impl ChunkReceiver {
    /// Gives a chunk back to the reader.
    pub(crate) fn give_back(&self, chunk: Chunk) {
        // The thread may have ended: then no chunk is needed.
        let _ = self.empty.send(chunk);
    }

    /// Closes both queues: a thread that waits for an empty chunk or for room in the queue wakes and ends.
    pub(crate) fn close(&mut self) {
        self.filled = sync_channel(0).1;
        self.empty = channel().0;
    }
}
