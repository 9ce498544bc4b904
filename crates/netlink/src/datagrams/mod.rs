//! Receiving datagrams that the kernel sends unasked.
//!
//! The kernel drops what finds the receive buffer full. So nothing that holds up the making of rows may hold up
//! receiving: datagrams go as they are into [`Chunk`]s, and chunks through a bounded queue to the thread that makes
//! rows of them. If the queue is full, the reader waits, the kernel's buffer fills up, and the kernel counts what it
//! drops: datagrams are lost in one place, and their number is known. [`DatagramReader`] has a thread that does nothing
//! else; with a [`DirectReader`] a second thread receives only while the first one is held up.
mod batch;
mod chunks;
mod direct;
mod reader;

pub use batch::{BATCH_HEADER, BatchHeader, DUPLICATE, DatagramFrame, DatagramFrames, FRAME, UNKNOWN_NETNS};
pub use chunks::{Chunk, ChunkSender, ChunkSizes};
pub use direct::{DirectReader, Receive};
pub use reader::DatagramReader;
