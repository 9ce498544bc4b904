//! The tape: a file that contains everything a run has read, so that the run can be repeated anywhere.
//!
//! It knows no netlink and no /proc, only named streams of blocks. [`crate::Host`] decides what is recorded.
//!
//! # Format (version 2, all numbers little endian)
//! ```text
//! file    = magic version frame*                 magic "NETWREN-TAPE", version u16
//! frame   = kind u8, stream u32, length u32, payload[length], crc32 u32     crc of everything before it
//!
//! kind        stream  payload
//! 1 HEADER    0       seconds i64, nanos u32, endian u8 (1 little, 2 big), text release, text machine,
//!                     everything u8 (1: yes)
//! 2 OPEN      new id  text key, text note
//! 3 BLOCK     id      one block as it was read, in the byte order of the recorded machine
//! 4 END       id      empty: the stream was read to its end
//! 5 STOPPED   id      empty: the reader stopped early, the stream may have had more
//! 6 ERROR     id      errno i32, text call, text object: reading failed here
//! 7 REFUSED   id      like ERROR: the stream could not be opened at all
//! 8 ROUND     0       seconds i64, nanos u32: a round of `--watch` begins
//! 9 TRAILER   0       frames u64 (without this one): a file is complete only if it ends with a trailer
//! 10 PART     id      a part of a block that is larger than a frame: the next frame of the stream continues it
//! 11 ASKED    0       text table, then texts: the fields of this table that the run requested from the kernel
//! text    = length u16, bytes
//! ```
//! HEADER comes first, TRAILER last. Frames of different streams may be interleaved; within a stream they are in
//! order. A reader skips frames of unknown kinds and ignores any bytes after the known part of a payload, so small
//! additions need no new version. Version 1 lacks PART and ASKED: the fields that its runs requested are unknown.
//!
//! # Durability
//! A separate thread passes the buffered frames to the kernel twice a second (`writer::FLUSH_EVERY`), because the
//! reading thread may wait for events for hours. So a run that is killed, or loses its terminal, leaves a file that is
//! complete up to a frame of that time.
//!
//! A truncated or corrupt file is used as long as its frames are intact and in order; [`Integrity`] reports where that
//! ends. The rest is ignored: a frame that happens to be found after corrupt bytes proves nothing.
mod error;
mod frame;
mod index;
mod reader;
mod writer;

pub use error::{Integrity, TapeError};
pub(crate) use frame::FrameKind;
pub use index::Header;
pub(crate) use reader::{TapeReader, header_of, header_of_file};
pub(crate) use writer::TapeWriter;

#[cfg(test)]
mod tests;
