//! Reads the packets of a file, one after the other.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use sys::escape_bytes;

use super::blocks;
use super::error::{FileError, FileFault};
use super::input::Input;
use super::interface::FileIface;
use super::options::FileOptions;
use super::packed::{Packing, unpack};
use super::packet::{FilePacket, FoundPacket};
use super::pcap::PcapHeader;
use super::pcapng::PcapngSection;
use super::pipe::{Pipe, is_ready};
use super::records::{FileRecord, FileStatistics, FoundRecord, OtherBlock};

/// The format of a packet file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// pcap
    Pcap,
    /// pcapng
    Pcapng,
}

/// A packet file that is read from start to end, in constant memory.
pub struct PacketFile {
    name: Box<str>,
    input: Input,
    kind: FileKind,
    is_packed: bool,
    is_zstd: bool,
    /// True after the first record was requested: the interface of a pcap file comes before all others.
    is_described: bool,
    /// The file, if its next bytes may not have arrived yet.
    pipe: Option<Pipe>,
    /// Records that [`PacketFile::next_packet`] skipped.
    pub(super) skipped: SkippedRecords,
}

/// Counts of what a reader of packets does not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedRecords {
    /// Sections with a comment, and interfaces of which more than name, link type and times is described.
    pub descriptions: u64,
    /// Blocks that describe neither a packet nor an interface nor a section.
    pub others: u64,
}

/// An open file before its first read, so that the caller can restrict the process before it handles the file's bytes.
pub struct UnreadFile {
    /// `Err` for a file whose bytes all exist; `Ok` for one whose next bytes may not have arrived yet.
    file: Result<Pipe, File>,
    name: Box<str>,
}

impl UnreadFile {
    /// Opens a file, `-` for standard input. Does not wait for the writer of a FIFO.
    pub fn open(path: &Path) -> Result<UnreadFile, FileError> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "standard input".into() } else { escape_bytes(path.as_os_str().as_encoded_bytes()) };
        let open = || match is_stdin {
            true => Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?)),
            false => sys::infile::open(path),
        };
        match open() {
            Ok(file) => Ok(UnreadFile { file: Pipe::of(file).map_or_else(Err, Ok), name }),
            Err(error) => Err(FileError { file: name, offset: 0, fault: FileFault::Io(error) }),
        }
    }

    /// False if the pipe's writer has written nothing yet and writes nothing within `timeout_ms`.
    pub fn is_ready(&self, timeout_ms: i32) -> bool {
        self.file.as_ref().map_or(true, |pipe| is_ready(pipe, timeout_ms))
    }

    /// Reads the file's header. Waits for the data of a pipe; a signal that asks the program to stop ends the wait
    /// ([`FileError::is_interrupted`]).
    pub fn read(self) -> Result<PacketFile, FileError> {
        match self.file {
            Ok(pipe) => {
                let file = PacketFile::read(self.name, Box::new(pipe.clone()))?;
                Ok(PacketFile { pipe: Some(pipe), ..file })
            }
            Err(file) => PacketFile::read(self.name, Box::new(file)),
        }
    }
}

enum FileKind {
    Pcap(Box<PcapHeader>),
    Pcapng(PcapngSection),
}

impl PacketFile {
    /// Opens a file, `-` for standard input, and reads its header. Compressed files (gzip, zstd) are unpacked.
    pub fn open(path: &Path) -> Result<PacketFile, FileError> {
        UnreadFile::open(path)?.read()
    }

    /// Reads from `reader` instead; errors contain `name`.
    pub fn read(name: Box<str>, reader: Box<dyn Read>) -> Result<PacketFile, FileError> {
        let failed = |fault, offset| FileError { file: name.clone(), offset, fault };
        let (reader, packing) = unpack(reader).map_err(|error| failed(FileFault::Io(error), 0))?;
        let mut input = Input::new(reader);
        let mut kind = kind(&mut input).map_err(|fault| failed(fault, 0))?;
        if let FileKind::Pcapng(section) = &mut kind {
            section.begin(&mut input).map_err(|fault| failed(fault, input.offset()))?;
        }
        let skipped = SkippedRecords::default();
        let (is_packed, is_zstd) = (packing.is_some(), packing == Some(Packing::Zstd));
        Ok(PacketFile { name, input, kind, is_packed, is_zstd, is_described: false, pipe: None, skipped })
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

    /// The interfaces that the current section has described so far; before the first record, the first interface if
    /// there is one. For pcap its only interface.
    pub fn ifaces(&self) -> &[FileIface] {
        match &self.kind {
            FileKind::Pcap(header) => std::slice::from_ref(&header.iface),
            FileKind::Pcapng(section) => section.described(),
        }
    }

    /// True if the byte order of the current section differs from this machine's.
    pub fn is_swapped(&self) -> bool {
        let read = match &self.kind {
            FileKind::Pcap(header) => header.read,
            FileKind::Pcapng(section) => section.read,
        };
        read.is_big_endian() != cfg!(target_endian = "big")
    }

    /// Offset of the next record in the unpacked file, in bytes.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// True if the file is compressed with gzip or zstd.
    pub fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// The next packet; `None` at the end. After an error no more packets follow. A signal that asks the program to
    /// stop ends the wait for a pipe ([`FileError::is_interrupted`]).
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<FilePacket<'_>>, FileError> {
        let found = loop {
            match self.find()? {
                Some(FoundRecord::Packet(found)) => break found,
                Some(FoundRecord::Block { kind, length }) => self.skip(kind, length),
                None => return Ok(None),
            }
        };
        Ok(Some(packet(&self.kind, &mut self.input, found)))
    }

    /// Processes a block that does not contain a packet.
    fn skip(&mut self, kind: u32, length: usize) {
        let body = self.input.take(length).get(8..length - 4).unwrap_or_default();
        let FileKind::Pcapng(section) = &self.kind else { return };
        let options = || FileOptions::new(body.get(16..).unwrap_or_default(), section.read);
        let is_description = match kind {
            blocks::SECTION => options().has(blocks::COMMENT),
            blocks::INTERFACE => section.ifaces.last().is_some_and(|iface| iface.has_more),
            _ => return self.skipped.others += 1,
        };
        self.skipped.descriptions += u64::from(is_description);
    }

    /// The next record of any type; `None` at the end. Errors are the same as in [`PacketFile::next_packet`].
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<FileRecord<'_>>, FileError> {
        if !std::mem::replace(&mut self.is_described, true) && self.format() == FileFormat::Pcap {
            let iface = self.ifaces().first();
            return Ok(iface.map(|iface| FileRecord::Iface { number: 0, iface, options: FileOptions::NANOSECONDS }));
        }
        let (kind, length) = match self.find()? {
            None => return Ok(None),
            Some(FoundRecord::Packet(found)) => {
                return Ok(Some(FileRecord::Packet(packet(&self.kind, &mut self.input, found))));
            }
            Some(FoundRecord::Block { kind, length }) => (kind, length),
        };
        let FileKind::Pcapng(section) = &self.kind else { return Ok(None) };
        let body = self.input.take(length).get(8..length - 4).unwrap_or_default();
        let other = FileRecord::Other(OtherBlock::new(kind, body, section.read));
        let options = |at: usize| FileOptions::new(body.get(at..).unwrap_or_default(), section.read);
        Ok(Some(match kind {
            blocks::SECTION => FileRecord::Section(options(16)),
            blocks::INTERFACE => match section.ifaces.split_last() {
                Some((iface, before)) => FileRecord::Iface { number: before.len() as u32, iface, options: options(8) },
                None => other,
            },
            blocks::STATISTICS => FileStatistics::of_block(body, section.read).map_or(other, FileRecord::Statistics),
            _ => other,
        }))
    }

    #[inline]
    fn find(&mut self) -> Result<Option<FoundRecord>, FileError> {
        let found = match &mut self.kind {
            FileKind::Pcap(header) => header.next(&mut self.input).map(|found| found.map(FoundRecord::Packet)),
            FileKind::Pcapng(section) => section.next(&mut self.input),
        };
        found.map_err(|fault| FileError { file: self.name.clone(), offset: self.input.offset(), fault })
    }

    /// Makes a call that would wait for a pipe fail instead ([`FileError::is_starved`]), without losing data. Calls
    /// still wait for data packed with zstd, because its decoder returns no partial data.
    pub(super) fn fail_instead_of_waiting(&mut self) {
        if let Some(pipe) = self.pipe.as_ref().filter(|_| !self.is_zstd) {
            pipe.fail_instead_of_waiting();
        }
    }

    /// False if the last call failed because it would have waited, and no data arrives within `timeout_ms`.
    pub(super) fn may_have_more(&self, timeout_ms: i32) -> bool {
        self.pipe.as_ref().is_none_or(|pipe| pipe.may_have_more(timeout_ms))
    }
}

/// Takes the found packet from the input.
#[inline]
fn packet<'f>(kind: &'f FileKind, input: &'f mut Input, found: FoundPacket) -> FilePacket<'f> {
    let iface_name: &[u8] = match kind {
        FileKind::Pcap(_) => b"",
        FileKind::Pcapng(section) => section.ifaces.get(found.packet.iface as usize).map_or(b"", |iface| &iface.name),
    };
    let record = input.take(found.record);
    let bytes = record.get(found.at..found.at + found.bytes).unwrap_or_default();
    let options = record.get(found.options_at..record.len().saturating_sub(found.behind)).unwrap_or_default();
    FilePacket { iface_name, bytes, options: FileOptions::new(options, found.read), ..found.packet }
}

/// Detects the format from the first bytes.
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
        blocks::SECTION => Ok(FileKind::Pcapng(PcapngSection::new())),
        _ => Err(FileFault::UnknownFormat { magic }),
    }
}
