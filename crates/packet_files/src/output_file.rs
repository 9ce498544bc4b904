//! A file that packets are written to, each completely or not at all.

use super::packing::Packing;
use std::fs::{self, File, Metadata};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
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
}

/// The number of packets not written, and the reason.
pub struct UnwrittenPackets {
    pub packets: u64,
    /// The kernel's error text.
    pub why: String,
    /// True if the reader has closed its end.
    pub is_closed: bool,
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
        // Other programs may also write to standard output, so it is never truncated.
        Ok(OutputFile { is_regular: made.is_regular && !is_stdout, has_reader: made.has_reader || is_stdout, ..made })
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
        })
    }

    /// Continues with another, empty file; waiting data must have been written before.
    pub fn replace(&mut self, file: File, name: String) {
        let facts = file.metadata();
        self.is_regular = facts.as_ref().is_ok_and(Metadata::is_file);
        self.has_reader = facts.as_ref().is_ok_and(has_reader);
        (self.file, self.name, self.bytes) = (file, name, 0);
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

    /// Writes waiting data; returns the number of packets written. On an error, truncates a partial record, so that
    /// the file ends with a whole record.
    pub fn write_out(&mut self) -> (u64, Option<UnwrittenPackets>) {
        let (mut at, mut failure, mut end) = (0, None, None);
        let bytes = match &mut self.packing {
            Some(packing) if !self.buffer.is_empty() => {
                packing.pack(&self.buffer, &mut self.packed);
                &self.packed
            }
            _ => &self.buffer,
        };
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(0) => failure = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    failure = wait_for_reader(&self.file, &mut end).err();
                }
                Err(error) => failure = Some(error),
            }
            if failure.is_some() {
                break;
            }
        }
        self.last = Instant::now();
        let whole = match &failure {
            None => self.ends.len(),
            // A part of a packed write is useless.
            Some(_) if self.packing.is_some() => 0,
            Some(_) => self.ends.partition_point(|end| *end <= at),
        };
        self.bytes += at as u64;
        let failure = failure.map(|error| {
            let torn = at - whole.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0).min(at);
            self.take_back(torn as u64);
            UnwrittenPackets {
                packets: (self.ends.len() - whole) as u64,
                why: words_of(&error),
                is_closed: error.kind() == io::ErrorKind::BrokenPipe,
            }
        });
        self.buffer.clear();
        self.ends.clear();
        (whole as u64, failure)
    }

    /// Truncates a partial record.
    fn take_back(&mut self, torn: u64) {
        self.bytes = self.bytes.saturating_sub(torn);
        if self.is_regular {
            let cut = self.file.set_len(self.bytes);
            let _ = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)));
        }
    }
}

/// The kernel's text for an error, or std's.
pub fn words_of(error: &io::Error) -> String {
    error.raw_os_error().map_or(error.to_string(), |errno| sys::Errno(errno).to_string())
}

/// The message for a file that cannot be created.
pub fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), words_of(error))
}

/// True if both names refer to the same file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let identity =
        |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file).map(|facts| (facts.dev(), facts.ino()));
    identity(one).is_some_and(|of_one| identity(other) == Some(of_one))
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
