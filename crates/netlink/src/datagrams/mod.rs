//! Receiving datagrams that the kernel sends unasked, on a thread that does nothing else.
//!
//! The kernel drops what finds the receive buffer full. So nothing is decoded or written where datagrams are received:
//! they go as they are into [`Chunk`]s, and chunks through a bounded queue to the thread that makes rows of them. If
//! the queue is full, the reader waits, the kernel's buffer fills up, and the kernel counts what it drops: datagrams
//! are lost in one place, and their number is known.
mod batch;
mod chunks;
mod reader;

pub use batch::{BATCH_HEADER, BatchHeader, DUPLICATE, DatagramFrame, DatagramFrames, FRAME, UNKNOWN_NETNS};
pub use chunks::{Chunk, ChunkSender, ChunkSizes};
pub use reader::DatagramReader;
