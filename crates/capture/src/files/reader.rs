//! One packet of a file after the other.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use sys::{escaped, wait_any};

use super::error::{FileError, FileFault};
use super::input::Input;
use super::interface::FileIface;
use super::packed::unpacked;
use super::packet::FilePacket;
use super::pcap::PcapHeader;
use super::pcapng::{PcapngSection, SECTION_HEADER};

/// The format of a file of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// pcap
    Pcap,
    /// pcapng
    Pcapng,
}

/// A file of packets that is read from its begin to its end, in constant memory.
pub struct PacketFile {
    name: Box<str>,
    input: Input,
    kind: FileKind,
    is_packed: bool,
    /// Standard input, which may be a pipe that waits.
    is_stdin: bool,
}

/// A file that is open and of which nothing was read: what its bytes may do is decided before.
pub struct UnreadFile {
    file: File,
    name: Box<str>,
    is_stdin: bool,
}

impl UnreadFile {
    /// Opens a file, `-` for standard input.
    pub fn open(path: &Path) -> Result<UnreadFile, FileError> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "standard input".into() } else { escaped(path.as_os_str().as_encoded_bytes()) };
        let open = || match is_stdin {
            true => Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?)),
            false => File::open(path),
        };
        match open() {
            Ok(file) => Ok(UnreadFile { file, name, is_stdin }),
            Err(error) => Err(FileError { file: name, offset: 0, fault: FileFault::Io(error) }),
        }
    }

    /// Reads its header.
    pub fn read(self) -> Result<PacketFile, FileError> {
        let UnreadFile { file, name, is_stdin } = self;
        Ok(PacketFile { is_stdin, ..PacketFile::read(name, Box::new(file))? })
    }
}

enum FileKind {
    Pcap(Box<PcapHeader>),
    Pcapng(PcapngSection),
}

impl PacketFile {
    /// Opens a file, `-` for standard input, and reads its header. Packed ones (gzip, zstd) are unpacked on the way.
    pub fn open(path: &Path) -> Result<PacketFile, FileError> {
        UnreadFile::open(path)?.read()
    }

    /// The same with what `reader` gives; `name` stands in errors.
    pub fn read(name: Box<str>, reader: Box<dyn Read>) -> Result<PacketFile, FileError> {
        let failed = |fault, offset| FileError { file: name.clone(), offset, fault };
        let (reader, is_packed) = unpacked(reader).map_err(|error| failed(FileFault::Io(error), 0))?;
        let mut input = Input::new(reader);
        let mut kind = kind(&mut input).map_err(|fault| failed(fault, 0))?;
        if let FileKind::Pcapng(section) = &mut kind {
            section.begin(&mut input).map_err(|fault| failed(fault, input.offset()))?;
        }
        Ok(PacketFile { name, input, kind, is_packed, is_stdin: false })
    }

    /// Its name in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// pcap or pcapng.
    pub fn format(&self) -> FileFormat {
        match self.kind {
            FileKind::Pcap(_) => FileFormat::Pcap,
            FileKind::Pcapng(_) => FileFormat::Pcapng,
        }
    }

    /// The interfaces that the current section has described so far, the first one at least unless there is none; the
    /// only one of pcap.
    pub fn ifaces(&self) -> &[FileIface] {
        match &self.kind {
            FileKind::Pcap(header) => std::slice::from_ref(&header.iface),
            FileKind::Pcapng(section) => &section.ifaces,
        }
    }

    /// True if the current section was written in the other byte order than this machine's.
    pub fn is_swapped(&self) -> bool {
        let read = match &self.kind {
            FileKind::Pcap(header) => header.read,
            FileKind::Pcapng(section) => section.read,
        };
        read.is_big_endian() != cfg!(target_endian = "big")
    }

    /// Bytes of the file, unpacked, before the next record.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The next packet; `None` at the end. After an error the file has no more, unless a signal interrupted the call
    /// ([`FileError::is_interrupted`]): then nothing was lost.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<FilePacket<'_>>, FileError> {
        let found = match &mut self.kind {
            FileKind::Pcap(header) => header.next(&mut self.input),
            FileKind::Pcapng(section) => section.next(&mut self.input),
        };
        let found = match found {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(fault) => return Err(FileError { file: self.name.clone(), offset: self.input.offset(), fault }),
        };
        let iface_name: &[u8] = match &self.kind {
            FileKind::Pcap(_) => b"",
            FileKind::Pcapng(section) => {
                section.ifaces.get(found.packet.iface as usize).map_or(b"", |iface| &iface.name)
            }
        };
        let bytes = self.input.take(found.record).get(found.at..found.at + found.bytes).unwrap_or_default();
        Ok(Some(FilePacket { iface_name, bytes, ..found.packet }))
    }

    /// False if the next packet would have to be waited for, and has not come in so many ms: a pipe has no more for
    /// now.
    pub fn has_more(&self, timeout_ms: i32) -> bool {
        !self.is_stdin || self.is_packed || self.input.waiting() > 0 || stdin_is_ready(timeout_ms)
    }
}

/// False if standard input has had nothing to read for so many ms.
pub fn stdin_is_ready(timeout_ms: i32) -> bool {
    let mut ready = Vec::new();
    wait_any(&[io::stdin().as_fd()], timeout_ms, &mut ready).is_err() || !ready.is_empty()
}

/// What the first bytes say.
fn kind(input: &mut Input) -> Result<FileKind, FileFault> {
    let got = input.fill(4).map_err(FileFault::Io)?;
    if got == 0 {
        return Err(FileFault::Empty);
    }
    let mut magic = [0; 4];
    magic.iter_mut().zip(input.peek(got)).for_each(|(to, from)| *to = *from);
    if let Some(header) = PcapHeader::of(input, magic) {
        return Ok(FileKind::Pcap(Box::new(header?)));
    }
    match u32::from_le_bytes(magic) {
        SECTION_HEADER => Ok(FileKind::Pcapng(PcapngSection::new())),
        _ => Err(FileFault::UnknownFormat { magic }),
    }
}
