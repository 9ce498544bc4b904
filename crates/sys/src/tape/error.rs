//! Errors of recordings.
use std::fmt;

use super::frame::{VERSION, VERSION_MIN};
use crate::errno::SysError;

/// How much of a recording can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Integrity {
    /// It ends with its trailer and every checksum is correct.
    Whole,
    /// It is truncated: everything before `byte` is good.
    CutAt {
        /// Offset after the last good frame.
        byte: u64,
        /// Number of good frames.
        frames: u64,
    },
    /// It is corrupt: everything before `byte` is good.
    Garbled {
        /// Offset after the last good frame.
        byte: u64,
        /// Number of good frames.
        frames: u64,
        /// Description of the damage.
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

/// A recording that could not be written, or not be read (completely).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TapeError {
    /// The file could not be opened or read.
    Io(SysError),
    /// Writing failed; recording stopped there, the run continued.
    Write(SysError),
    /// The file is not a recording.
    NotATape {
        /// The file.
        path: Box<str>,
    },
    /// The output file is not one that may be emptied and made private.
    NotOurs {
        /// The file.
        path: Box<str>,
        /// Reason for refusing the file, and the remedy.
        what: Box<str>,
    },
    /// The recording reached its maximum size; recording stopped there.
    Full {
        /// The file.
        path: Box<str>,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// A pipe or a device: a recording is read twice, so it must be a file.
    NotAFile {
        /// Its path.
        path: Box<str>,
    },
    /// The file ends before the end of its header: nothing can be replayed.
    NoHeader {
        /// The file.
        path: Box<str>,
    },
    /// It was made by a version that writes a different format.
    Version {
        /// The file.
        path: Box<str>,
        /// Its format version.
        version: u16,
    },
    /// It comes from a machine with a different byte order, in which the kernel's messages are encoded.
    ByteOrder {
        /// The file.
        path: Box<str>,
    },
    /// The replay is incomplete because the file is.
    Broken {
        /// The file.
        path: Box<str>,
        /// Place and kind of the damage.
        integrity: Integrity,
    },
    /// The file is compressed and cannot be decompressed.
    Packed {
        /// The file.
        path: Box<str>,
        /// Reason for the failure.
        why: Box<str>,
    },
    /// A replay cannot be recorded again.
    Replaying {
        /// The output file.
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
                write!(f, "{path} reached its maximum size of {limit} bytes: the recording stopped there (--max-size)")
            }
            TapeError::NotATape { path } => write!(f, "{path} is not a recording (make one with --record FILE)"),
            TapeError::NotAFile { path } => write!(f, "{path} is not a regular file (save the recording to one first)"),
            TapeError::NoHeader { path } => write!(f, "{path} is cut inside its header: nothing to replay"),
            TapeError::Version { path, version } => {
                write!(f, "{path} has recording format {version}, this version reads {VERSION_MIN} to {VERSION}")
            }
            TapeError::ByteOrder { path } => {
                write!(f, "{path} was recorded on a machine with the other byte order (replay it on such a machine)")
            }
            TapeError::Broken { path, integrity } => {
                write!(f, "{path} is {integrity}; only the intact part is shown")
            }
            TapeError::Packed { path, why } => write!(f, "cannot decompress {path}: {why}"),
            TapeError::Replaying { path } => {
                write!(f, "cannot record to {path} while replaying (copy the replayed file instead)")
            }
        }
    }
}

impl std::error::Error for TapeError {}
