//! Receives datagrams that the kernel sends unsolicited.
//!
//! The kernel drops datagrams that do not fit into the receive buffer. So a delay in making rows must not delay
//! receiving: datagrams go undecoded into [`Chunk`]s, and chunks go through a bounded queue to the thread that makes
//! rows of them. If the queue is full, the receiving thread waits, the kernel's buffer fills up, and the kernel counts
//! what it drops: datagrams are lost in only one place, and their number is known. [`DatagramReader`] has a thread
//! that does nothing else; with a [`DirectReader`] a second thread receives only while the first one is delayed.
mod batch;
mod chunks;
mod direct;
mod reader;

pub use batch::{BATCH_HEADER, BatchHeader, DUPLICATE, DatagramFrame, DatagramFrames, FRAME, UNKNOWN_NETNS};
pub use chunks::{Chunk, ChunkSender, ChunkSizes};
pub use direct::{DirectReader, ReceiveSockets};
pub use reader::DatagramReader;
