//! Errors of a packet file that cannot be read, or not to its end.

use std::{error, fmt, io};

use sys::Errno;

/// The fault of a file, and where it is.
#[derive(Debug)]
pub struct FileError {
    /// Name of the file, escaped; `standard input` for `-`.
    pub file: Box<str>,
    /// Offset of the broken record in the unpacked file, in bytes.
    pub offset: u64,
    /// The fault.
    pub fault: FileFault,
}

/// The faults of a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileFault {
    /// The file cannot be opened or read, or its compressed data is broken.
    Io(io::Error),
    /// The file is empty.
    Empty,
    /// The file does not start like a packet file.
    UnknownFormat {
        /// Its first bytes.
        magic: [u8; 4],
    },
    /// A pcap file of this version, which is not supported.
    Version(u16, u16),
    /// The file ends within a part.
    Truncated {
        /// The incomplete part: `a packet`.
        what: &'static str,
        /// Bytes that the header needs, or the data after it if the header is complete.
        needed: u64,
        /// Bytes that the file has of it.
        got: u64,
    },
    /// The header of a packet claims more bytes than any packet has.
    PacketTooLong {
        /// The claimed number of bytes.
        claims: u32,
    },
    /// A block has an invalid length.
    BlockLength(u32),
    /// The two lengths of a block differ.
    LengthsDiffer(u32, u32),
    /// The fields of a block do not fit into it.
    BlockTooShort {
        /// The block's type.
        kind: u32,
    },
    /// The packet's interface is not described in the section.
    UnknownIface(u32),
    /// A section describes more interfaces than the limit.
    ManyIfaces,
}

impl FileError {
    /// True if a signal that asks the program to stop ended the wait for a pipe. No data was lost.
    pub fn is_interrupted(&self) -> bool {
        matches!(&self.fault, FileFault::Io(error) if error.kind() == io::ErrorKind::Interrupted)
    }

    /// True if the call failed because it would have waited for a pipe. The caller may repeat it.
    pub(super) fn is_starved(&self) -> bool {
        matches!(&self.fault, FileFault::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            FileFault::Io(_) if self.offset == 0 => write!(f, "{}: {}", self.file, self.fault),
            FileFault::Empty | FileFault::UnknownFormat { .. } => write!(f, "{}: {}", self.file, self.fault),
            fault => write!(f, "{}, byte {}: {fault}", self.file, self.offset),
        }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The kernel's error text, without the additions of std.
            FileFault::Io(error) => match error.raw_os_error() {
                Some(errno) => Errno(errno).fmt(f),
                None => error.fmt(f),
            },
            FileFault::Empty => f.write_str("the file is empty"),
            FileFault::UnknownFormat { magic } => {
                let [a, b, c, d] = magic;
                write!(f, "neither pcap nor pcapng: it begins with {a:02x} {b:02x} {c:02x} {d:02x}")
            }
            FileFault::Version(major, minor) => {
                write!(f, "unknown pcap version {major}.{minor}")
            }
            FileFault::Truncated { what, needed, got } => {
                write!(f, "the file ends within {what}: {got} of {needed} bytes")
            }
            FileFault::PacketTooLong { claims } => write!(f, "a packet claims a length of {claims} bytes"),
            FileFault::BlockLength(length) => write!(f, "a block claims a length of {length} bytes"),
            FileFault::LengthsDiffer(first, last) => {
                write!(f, "a block has a length of {first} bytes at its start and {last} at its end")
            }
            FileFault::BlockTooShort { kind } => write!(f, "a block of type {kind} is shorter than its contents"),
            FileFault::UnknownIface(number) => {
                write!(f, "a packet of interface {number}, which the file does not describe")
            }
            FileFault::ManyIfaces => f.write_str("too many interfaces"),
        }
    }
}

impl error::Error for FileError {}
