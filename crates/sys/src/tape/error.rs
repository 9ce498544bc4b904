//! What can go wrong with a recording.
use std::fmt;

use super::frame::{VERSION, VERSION_MIN};
use crate::errno::SysError;

/// How much of a recording can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Integrity {
    /// It ends with its trailer and every sum is right.
    Whole,
    /// It breaks off: everything before `byte` is good.
    CutAt {
        /// Offset behind the last good frame.
        byte: u64,
        /// Good frames.
        frames: u64,
    },
    /// It holds something wrong: everything before `byte` is good.
    Garbled {
        /// Offset behind the last good frame.
        byte: u64,
        /// Good frames.
        frames: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

impl fmt::Display for Integrity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Integrity::Whole => f.write_str("whole"),
            Integrity::CutAt { byte, frames } => write!(f, "cut at byte {byte} (after {frames} whole frames)"),
            Integrity::Garbled { byte, frames, what } => {
                write!(f, "garbled at byte {byte} (after {frames} whole frames): {what}")
            }
        }
    }
}

/// A recording that could not be written, or not be (wholly) read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TapeError {
    /// The file could not be opened or read.
    Io(SysError),
    /// Writing failed; recording stopped there, the run went on.
    Write(SysError),
    /// The file is no recording.
    NotATape {
        /// The file.
        path: Box<str>,
    },
    /// The file that was to be written is not one that may be emptied and kept private.
    NotOurs {
        /// The file.
        path: Box<str>,
        /// Reason for refusing the file, and the remedy.
        what: Box<str>,
    },
    /// The recording reached the size that it was allowed; recording stopped there.
    Full {
        /// The file.
        path: Box<str>,
        /// The largest size in bytes.
        limit: u64,
    },
    /// A pipe or a device: a recording is read twice, so it must be a file.
    NotAFile {
        /// What it is called.
        path: Box<str>,
    },
    /// The file breaks off before the end of its header: nothing can be replayed.
    NoHeader {
        /// The file.
        path: Box<str>,
    },
    /// Made by a version that writes another format.
    Version {
        /// The file.
        path: Box<str>,
        /// Its format version.
        version: u16,
    },
    /// Numbers in the kernel's messages have the other byte order here.
    ByteOrder {
        /// The file.
        path: Box<str>,
    },
    /// The replay is incomplete because the file is.
    Broken {
        /// The file.
        path: Box<str>,
        /// Where and how.
        integrity: Integrity,
    },
    /// The file is packed and cannot be unpacked.
    Packed {
        /// The file.
        path: Box<str>,
        /// Reason for the failure.
        why: Box<str>,
    },
    /// A replay cannot be recorded again.
    Replaying {
        /// The file that was to be written.
        path: Box<str>,
    },
}

impl fmt::Display for TapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TapeError::Io(error) => error.fmt(f),
            TapeError::Write(error) => {
                write!(f, "cannot record to {}: {} (the recording is incomplete)", error.object, error.errno)
            }
            TapeError::NotOurs { path, what } => {
                write!(f, "cannot record to {path}: {what}")
            }
            TapeError::Full { path, limit } => {
                write!(f, "{path} reached its largest size of {limit} bytes: what came later is not in it (--max-size)")
            }
            TapeError::NotATape { path } => write!(f, "{path} is no recording (make one with --record FILE)"),
            TapeError::NotAFile { path } => write!(f, "{path} is no regular file (save the recording to one first)"),
            TapeError::NoHeader { path } => write!(f, "{path} is cut inside its header: nothing to replay"),
            TapeError::Version { path, version } => {
                write!(f, "{path} has recording format {version}, this version reads {VERSION_MIN} to {VERSION}")
            }
            TapeError::ByteOrder { path } => {
                write!(f, "{path} was recorded on a machine of the other byte order (replay it on such a one)")
            }
            TapeError::Broken { path, integrity } => {
                write!(f, "{path} is {integrity}; what is shown is what the whole part holds")
            }
            TapeError::Packed { path, why } => write!(f, "cannot unpack {path}: {why}"),
            TapeError::Replaying { path } => {
                write!(f, "cannot record to {path} while replaying (copy the replayed file instead)")
            }
        }
    }
}

impl std::error::Error for TapeError {}
