//! A file that packets are written to, each completely or not at all.

use super::figures::WriteCounts;
use super::packing::Packing;
use record::Accounting;
use runtime::messages::print_message;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};
use sys::outfile::{self, Contents, OutfileOptions};

/// Bytes per write, which fit into a processor's cache. A pipe gets fewer, as soon as no more packets are available.
const CHUNK: usize = 128 << 10;
/// The device /dev/null: major number 1, minor number 3 (drivers/char/mem.c).
const DEV_NULL: u64 = 0x103;
/// The longest time a packet waits before it is written, and the time a reader has to take the rest at the end.
const WAIT: Duration = Duration::from_secs(1);
/// Interval at which a wait for a reader checks whether the run must end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The file, and the data waiting to be written.
pub struct OutputFile {
    /// Its name, for messages.
    pub name: String,
    /// Records waiting to be written, concatenated.
    pub buffer: Vec<u8>,
    file: File,
    is_regular: bool,
    /// How each write is packed; `None` if it is not.
    packing: Option<Packing>,
    /// Buffer for a packed write, reused to save allocations.
    packed: Vec<u8>,
    /// True if a reader may be waiting for packets.
    has_reader: bool,
    /// The end offset of each packet in the buffer.
    ends: Vec<usize>,
    /// Bytes of the file that form whole records.
    bytes: u64,
    last: Instant,
    counts: WriteCounts,
    /// Prints a message for the user.
    print: fn(&str),
    /// The first failure of a write, or of the close of an earlier file.
    failure: Option<WriteFailure>,
    /// True if the file ends with a partial record that cannot be removed: nothing can follow it.
    is_torn: bool,
    /// True once the reader has closed its end.
    is_closed: bool,
}

/// The file that lacks data, and the kernel's error text.
struct WriteFailure {
    name: String,
    why: String,
}

/// The result of writing a file, or a series of files, once it is closed.
#[must_use]
pub struct FileEnd {
    /// The name of the last file.
    pub name: String,
    /// Number of packets written.
    pub packets: u64,
    /// Number of packets that could not be written, or that do not fit into a pcap file.
    pub not_written: u64,
    /// Reports a file that lacks data other than packets, or whose data may be lost; `None` if it is complete, packets
    /// were counted, or its reader closed it.
    pub missing_data: Option<String>,
    /// True if the reader closed its end, which is not an error.
    pub is_closed: bool,
}

/// The numbers of packets, with the name.
impl fmt::Display for FileEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileEnd { name, packets, not_written, .. } = self;
        write!(f, "{packets} written to {name}, {not_written} not written")
    }
}

impl FileEnd {
    /// Adds what is missing to the statistics of the run.
    pub fn add_to(&self, stats: &mut Accounting) {
        if self.not_written > 0 {
            stats.lost += self.not_written;
            stats.add_reason(self.not_written, format!("packets not written to {}", self.name));
        }
        if let Some(text) = &self.missing_data {
            stats.incomplete(0, text.clone());
        }
    }
}

fn is_dev_null(facts: &Metadata) -> bool {
    facts.file_type().is_char_device() && facts.rdev() == DEV_NULL
}

/// True for pipes and similar files.
fn has_reader(facts: &Metadata) -> bool {
    !facts.is_file() && !is_dev_null(facts)
}

/// Waits until a pipe accepts bytes. Fails if a signal has requested the end and the reader took no bytes for a second.
fn wait_for_reader(file: &File, end: &mut Option<Instant>) -> io::Result<()> {
    outfile::wait_writable(file, CHECK_INTERVAL)?;
    if sys::signal::is_requested() && end.get_or_insert_with(|| Instant::now() + WAIT) <= &mut Instant::now() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "its reader does not read"));
    }
    Ok(())
}

impl OutputFile {
    /// Creates the file, or empties an existing file; `-` is standard output. Waits until a FIFO has a reader.
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        let is_stdout = path == Path::new("-");
        let file = match is_stdout {
            true => File::from(io::stdout().as_fd().try_clone_to_owned()?),
            false => outfile::open_waiting(path, OutfileOptions::stream(Contents::Emptied))?,
        };
        let name = if is_stdout { "standard output".to_owned() } else { path.display().to_string() };
        let made = OutputFile::new(file, name)?;
        Ok(OutputFile { has_reader: made.has_reader || is_stdout, ..made })
    }

    /// Creates the file like [`OutputFile::create`], and packs it if the name ends in `.gz` or `.zst`. Starts a
    /// process for `.zst`: call it before rights are given up.
    pub fn create_packed(path: &Path) -> io::Result<OutputFile> {
        let packing = Packing::from_path(path)?;
        Ok(OutputFile { packing, ..OutputFile::create(path)? })
    }

    /// Returns the file, packed from now on.
    pub(super) fn with_packing(self, packing: Option<Packing>) -> OutputFile {
        OutputFile { packing, ..self }
    }

    /// Wraps an open, empty file.
    pub fn new(file: File, name: String) -> io::Result<OutputFile> {
        let facts = file.metadata()?;
        Ok(OutputFile {
            buffer: Vec::with_capacity(CHUNK + (256 << 10)),
            is_regular: facts.is_file(),
            packing: None,
            packed: Vec::new(),
            has_reader: has_reader(&facts),
            name,
            file,
            ends: Vec::new(),
            bytes: 0,
            last: Instant::now(),
            counts: WriteCounts::default(),
            print: print_message,
            failure: None,
            is_torn: false,
            is_closed: false,
        })
    }

    /// Continues with another, empty file; waiting data must have been written before.
    pub fn replace(&mut self, file: File, name: String) {
        let facts = file.metadata();
        self.is_regular = facts.as_ref().is_ok_and(Metadata::is_file);
        self.has_reader = facts.as_ref().is_ok_and(has_reader);
        let complete = std::mem::replace(&mut self.file, file);
        if let Err(error) = outfile::close(complete) {
            self.failure.get_or_insert_with(|| WriteFailure::new(&self.name, &error));
        }
        (self.name, self.bytes, self.is_torn) = (name, 0, false);
    }

    /// Returns the file that reports failures with `print`.
    pub fn with_messages(self, print: fn(&str)) -> OutputFile {
        OutputFile { print, ..self }
    }

    /// Writes waiting data and closes the file. The close reports errors of file systems that store data later (NFS,
    /// FUSE).
    pub fn finish(mut self) -> FileEnd {
        self.write_out();
        let OutputFile { name, file, counts, mut failure, is_closed, .. } = self;
        if let Err(error) = outfile::close(file) {
            failure.get_or_insert_with(|| WriteFailure::new(&name, &error));
        }
        let WriteCounts { packets, not_written } = counts;
        let failure = failure.filter(|_| not_written == 0 && !is_closed);
        let missing_data = failure.map(|WriteFailure { name, why }| format!("{name} is incomplete: {why}"));
        FileEnd { name, packets, not_written, missing_data, is_closed }
    }

    /// Size of the file in bytes, including waiting data.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    /// The waiting records, and the end offset of each packet in them.
    #[inline]
    pub fn waiting_records(&mut self) -> (&mut Vec<u8>, &mut Vec<usize>) {
        (&mut self.buffer, &mut self.ends)
    }

    /// Notes that the buffer ends with a whole packet; true if the buffer should be written.
    #[inline]
    pub fn end_packet(&mut self) -> bool {
        self.ends.push(self.buffer.len());
        self.is_full()
    }

    /// True if the buffer should be written.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= CHUNK
    }

    /// True if waiting data should be written now, even if no more packets arrive.
    pub fn is_due(&self) -> bool {
        !self.buffer.is_empty() && (self.has_reader || self.last.elapsed() > WAIT)
    }

    /// True if the file is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The counts of packets so far.
    pub(super) fn counts(&self) -> WriteCounts {
        self.counts
    }

    /// True once a write has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// True once the reader has closed its end.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Counts packets that are not written, and reports the first reason.
    pub fn refuse(&mut self, packets: u64, why: &str) {
        if self.counts.not_written == 0 && packets > 0 && !self.is_closed {
            let name = sys::escape_bytes(self.name.as_bytes());
            (self.print)(&format!("{name}: packets are not written: {why}"));
        }
        self.counts.not_written += packets;
    }

    /// Writes waiting data and counts its packets. On an error, removes a partial record, so that the file ends with a
    /// whole record, and returns false: the lost data may have contained descriptions that later packets need. If the
    /// partial record cannot be removed, no later packets are written to this file.
    pub fn write_out(&mut self) -> bool {
        let goes_on = !self.is_torn && !self.is_closed;
        let (at, failure) = if goes_on { self.write_waiting() } else { (0, None) };
        let is_written = goes_on && failure.is_none();
        let whole = match is_written {
            true => self.ends.len(),
            // A part of a packed write is useless.
            false if self.packing.is_some() => 0,
            false => self.ends.partition_point(|end| *end <= at),
        };
        let missing = self.ends.len() - whole;
        self.bytes += at as u64;
        self.counts.packets += whole as u64;
        if let Some(error) = failure {
            let end = whole.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
            self.is_torn = !self.take_back(at.saturating_sub(end) as u64);
            self.is_closed = error.kind() == io::ErrorKind::BrokenPipe;
            self.failure.get_or_insert_with(|| WriteFailure::new(&self.name, &error));
        }
        if missing > 0 {
            let why = self.failure.as_ref().map_or_else(String::new, |failure| failure.why.clone());
            self.refuse(missing as u64, &why);
        }
        self.buffer.clear();
        self.ends.clear();
        is_written
    }

    /// Writes the buffer; returns the number of bytes written, of packed ones if it is packed, and the error that ended
    /// this.
    fn write_waiting(&mut self) -> (usize, Option<io::Error>) {
        let (mut at, mut failure, mut end) = (0, None, None);
        let bytes = match &mut self.packing {
            Some(packing) if !self.buffer.is_empty() => {
                packing.pack(&self.buffer, &mut self.packed);
                &self.packed
            }
            _ => &self.buffer,
        };
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty() && failure.is_none()) {
            match self.file.write(rest) {
                Ok(0) => failure = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    failure = wait_for_reader(&self.file, &mut end).err();
                }
                Err(error) => failure = Some(error),
            }
        }
        self.last = Instant::now();
        (at, failure)
    }

    /// Removes the last `torn` bytes, a partial record, and returns false if that is impossible. Other programs may
    /// also write to standard output: bytes that follow ours are never removed.
    fn take_back(&mut self, torn: u64) -> bool {
        if torn == 0 {
            return true;
        }
        self.bytes = self.bytes.saturating_sub(torn);
        let mut cut = || {
            let end = self.file.stream_position()?;
            if !self.is_regular || self.file.metadata()?.len() != end {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let whole = end.saturating_sub(torn);
            self.file.set_len(whole)?;
            self.file.seek(SeekFrom::Start(whole))
        };
        cut().is_ok()
    }
}

impl WriteFailure {
    fn new(name: &str, error: &io::Error) -> WriteFailure {
        WriteFailure { name: sys::escape_bytes(name.as_bytes()).to_string(), why: sys::io_error_text(error) }
    }
}

/// The message for a file that cannot be created.
pub fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), sys::io_error_text(error))
}

/// True if the output is one of the inputs, under any name: it would be overwritten, or read without end. `-` is
/// standard input or output.
pub fn is_input<'p>(inputs: impl IntoIterator<Item = &'p Path>, output: &Path) -> bool {
    let facts_of = |path: &Path, standard: BorrowedFd<'_>| match path == Path::new("-") {
        true => File::from(standard.try_clone_to_owned().ok()?).metadata().ok(),
        false => fs::metadata(path).ok(),
    };
    let identity = |facts: Option<Metadata>| facts.filter(Metadata::is_file).map(|facts| (facts.dev(), facts.ino()));
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let written = identity(facts_of(output, stdout.as_fd()));
    written.is_some() && inputs.into_iter().any(|input| identity(facts_of(input, stdin.as_fd())) == written)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The reader of a stream gets packets immediately; files and /dev/null get them in chunks.
    #[test]
    fn only_a_reader_gets_packets_before_there_are_many() {
        let folder = tempfile::tempdir().unwrap();
        let (stream, _reader) = std::os::unix::net::UnixStream::pair().unwrap();
        let stream = File::from(std::os::fd::OwnedFd::from(stream));
        let stream = OutputFile::new(stream, "a stream".to_owned()).unwrap();
        let null = OutputFile::create(Path::new("/dev/null")).unwrap();
        let file = OutputFile::create(&folder.path().join("packets")).unwrap();
        for (mut output, is_due) in [(stream, true), (null, false), (file, false)] {
            assert!(!output.is_due(), "nothing waits");
            output.buffer.extend_from_slice(b"packet");
            output.end_packet();
            assert_eq!(output.is_due(), is_due, "{}", output.name);
        }
    }
}
