//! The tape: a file that holds everything a run has read, so that it can be run again anywhere.
//!
//! Knows no netlink, no /proc: only named streams of blocks. [`crate::Host`] decides what goes on it.
//!
//! # Format (version 2, all numbers little endian)
//! ```text
//! file    = magic version frame*                 magic "NETWREN-TAPE", version u16
//! frame   = kind u8, stream u32, length u32, payload[length], crc32 u32     crc of all before it
//!
//! kind        stream  payload
//! 1 HEADER    0       seconds i64, nanos u32, endian u8 (1 little, 2 big), text release, text machine,
//!                     everything u8 (1: yes)
//! 2 OPEN      new id  text key, text note
//! 3 BLOCK     id      one block as it was read, in the byte order of the recorded machine
//! 4 END       id      nothing: the stream was read to its end
//! 5 STOPPED   id      nothing: the reader wanted no more, there may have been more
//! 6 ERROR     id      errno i32, text call, text object: reading failed here
//! 7 REFUSED   id      the same: the stream could not be opened at all
//! 8 ROUND     0       seconds i64, nanos u32: a round of `--watch` begins
//! 9 TRAILER   0       frames u64 (without this one): only a file that ends with it is whole
//! 10 PART     id      a part of a block that is larger than a frame: the next frame of the stream continues it
//! 11 ASKED    0       text table, then texts: the fields of this table that the run asked the kernel for
//! text    = length u16, bytes
//! ```
//! HEADER comes first, TRAILER last. Frames of several streams may be mixed; within a stream they
//! are in order. A reader skips frames of kinds it does not know and ignores what follows the
//! known part of a payload, so small additions need no new version. Version 1 lacks PART and ASKED: what its runs asked
//! for is unknown.
//!
//! # What survives
//! The writer hands what it holds to the kernel twice a second (`writer::FLUSH_EVERY`), from a thread of its own,
//! because the thread that reads may wait for events for hours. So a run that is killed, or loses its terminal,
//! leaves a file that is whole up to a frame of that time.
//!
//! A file that was cut or garbled is used as far as its frames are whole and in order;
//! [`Integrity`] tells where that ends. What follows is not looked at: a frame found by luck
//! behind garbage is no evidence.
mod crc;
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
