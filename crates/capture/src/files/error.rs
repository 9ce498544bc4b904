//! Why a file of packets ends before its end.

use std::{error, fmt, io};

use sys::Errno;

/// The fault of a file, and its place.
#[derive(Debug)]
pub struct FileError {
    /// Name of the file, escaped; `standard input` for `-`.
    pub file: Box<str>,
    /// Bytes from the begin of the file, unpacked, to the record that is broken.
    pub offset: u64,
    /// The fault.
    pub fault: FileFault,
}

/// The ways in which a file is broken.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileFault {
    /// It cannot be opened or read, or what it was packed with is broken.
    Io(io::Error),
    /// It has no byte.
    Empty,
    /// It begins like no file of packets.
    UnknownFormat {
        /// Its first bytes.
        magic: [u8; 4],
    },
    /// A pcap file of this version.
    Version(u16, u16),
    /// It ends within something.
    Truncated {
        /// The part that is not whole: `a packet`.
        what: &'static str,
        /// Bytes of its header, or of what follows that, whichever is not whole.
        needed: u64,
        /// Those that are there.
        got: u64,
    },
    /// The header of a packet claims more bytes than any packet has.
    PacketTooLong {
        /// The bytes that it claims.
        claims: u32,
    },
    /// A block's length is none.
    BlockLength(u32),
    /// The two lengths of a block differ.
    LengthsDiffer(u32, u32),
    /// The fields of a block do not fit into it.
    BlockTooShort {
        /// The block's type.
        kind: u32,
    },
    /// A packet of an interface that the section does not describe.
    UnknownIface(u32),
    /// A section describes more interfaces than are remembered.
    ManyIfaces,
}

impl FileError {
    /// True if the call that failed may be repeated: a signal came.
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
            // The kernel's words, without what std adds.
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
                write!(f, "pcap of version {major}.{minor}, which nobody has described")
            }
            FileFault::Truncated { what, needed, got } => {
                write!(f, "the file ends within {what}: {got} bytes are there of {needed}")
            }
            FileFault::PacketTooLong { claims } => write!(f, "a packet claims to have {claims} bytes"),
            FileFault::BlockLength(length) => write!(f, "a block claims to have {length} bytes"),
            FileFault::LengthsDiffer(first, last) => {
                write!(f, "a block has {first} bytes by its begin and {last} by its end")
            }
            FileFault::BlockTooShort { kind } => write!(f, "a block of type {kind} is shorter than what is in it"),
            FileFault::UnknownIface(number) => write!(f, "a packet of interface {number}, which is not described"),
            FileFault::ManyIfaces => f.write_str("more interfaces than are remembered"),
        }
    }
}

impl error::Error for FileError {}
