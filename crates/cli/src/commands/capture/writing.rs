//! `-w`: packets into a file of their own, each whole or not in it.

use crate::commands::capture::Capture;
use crate::messages::say;
use engine::{CellsOf, Disposition, Plan, RenewedLookups, RowSink, Run, RunError};
use record::rows::{CapturedPacket, CapturedPackets, LinkType};
use record::{Lookups, RowCells, SourceError, SourceFault, Stream};
use sinks::packets::{CapturedPcap, CapturedPcapNg};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that are written at one time; a pipe gets less, as soon as there are no more packets for now.
const CHUNK: usize = 1 << 20;
/// How long a packet waits at most before it is written into a file.
const WAIT: Duration = Duration::from_secs(1);

/// What became of the packets.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) packets: u64,
    /// Those that found no room, or no place in a pcap file.
    pub(super) not_written: u64,
}

enum Format {
    Pcap(CapturedPcap),
    Pcapng(CapturedPcapNg),
}

/// A file that packets are written into.
pub(super) struct PacketWriter {
    file: File,
    name: String,
    is_regular: bool,
    format: Format,
    /// What waits, and where in it each packet ends.
    buffer: Vec<u8>,
    ends: Vec<usize>,
    /// Bytes of the file that are whole records.
    bytes: u64,
    written: Written,
    last: Instant,
    is_closed: bool,
    has_said: bool,
}

/// The file at `path`, empty. One that somebody else put there first is refused: who owns it may read the packets, and
/// a link may lead to a file that nobody meant.
fn emptied(path: &Path) -> io::Result<File> {
    let belongs = |facts: &Metadata, whose: &str| match facts.uid() {
        uid if uid == 0 || uid == sys::caps::euid() => Ok(()),
        uid => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{whose} user {uid}: remove it, or name another file"),
        )),
    };
    if let Some(link) = fs::symlink_metadata(path).ok().filter(Metadata::is_symlink) {
        belongs(&link, "it is a link of")?;
    }
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o640).open(path)?;
    let facts = file.metadata()?;
    belongs(&facts, "it belongs to")?;
    if facts.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

impl PacketWriter {
    /// Makes the file, or empties the one that is there; `-` is standard output.
    pub(super) fn create(path: &Path) -> io::Result<PacketWriter> {
        let is_stdout = path == Path::new("-");
        let file = match is_stdout {
            true => File::from(io::stdout().as_fd().try_clone_to_owned()?),
            false => emptied(path)?,
        };
        let is_pcap = path.extension().is_some_and(|ending| ending == "pcap");
        Ok(PacketWriter {
            is_regular: !is_stdout && file.metadata()?.is_file(),
            name: if is_stdout { "standard output".to_owned() } else { path.display().to_string() },
            format: if is_pcap { Format::Pcap(CapturedPcap::new()) } else { Format::Pcapng(CapturedPcapNg::new()) },
            file,
            buffer: Vec::with_capacity(CHUNK + (256 << 10)),
            ends: Vec::new(),
            bytes: 0,
            written: Written::default(),
            last: Instant::now(),
            is_closed: false,
            has_said: false,
        })
    }

    fn put(&mut self, row: &CapturedPacket<'_>) {
        let has_place = match &mut self.format {
            Format::Pcap(pcap) => pcap.write(row, &mut self.buffer),
            Format::Pcapng(pcapng) => {
                pcapng.write(row, &mut self.buffer);
                true
            }
        };
        match has_place {
            true => self.ends.push(self.buffer.len()),
            false => self.refuse(1, "pcap has one link type only: name the file .pcapng"),
        }
        if self.buffer.len() >= CHUNK {
            self.write_out();
        }
    }

    /// Counts packets that are not written; the reason is said once.
    fn refuse(&mut self, packets: u64, why: &str) {
        self.written.not_written += packets;
        if !std::mem::replace(&mut self.has_said, true) {
            say(&format!("{}: packets are not written: {why}", self.name));
        }
    }

    /// Writes what waits. What finds no room is counted and taken back, so that the file ends with a whole record.
    fn write_out(&mut self) {
        let (mut at, mut failure) = (0, None);
        while let Some(rest) = self.buffer.get(at..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(0) => failure = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => failure = Some(error),
            }
            if failure.is_some() {
                break;
            }
        }
        self.last = Instant::now();
        let whole = self.ends.partition_point(|end| *end <= at);
        self.written.packets += whole as u64;
        self.bytes += at as u64;
        if let Some(error) = failure {
            self.is_closed = error.kind() == io::ErrorKind::BrokenPipe;
            let torn = at - whole.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0).min(at);
            self.take_back(torn as u64);
            let why = error.raw_os_error().map_or(error.to_string(), |errno| sys::Errno(errno).to_string());
            self.refuse((self.ends.len() - whole) as u64, &why);
        }
        self.buffer.clear();
        self.ends.clear();
    }

    /// Takes torn bytes off the file. What follows names its interfaces anew: their blocks may be among those.
    fn take_back(&mut self, torn: u64) {
        self.bytes = self.bytes.saturating_sub(torn);
        if self.is_regular {
            let cut = self.file.set_len(self.bytes);
            let _ = cut.and_then(|()| io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.bytes)));
        }
        match &mut self.format {
            Format::Pcapng(pcapng) => pcapng.begin_section(),
            Format::Pcap(pcap) if self.bytes == 0 => *pcap = CapturedPcap::new(),
            Format::Pcap(_) => {}
        }
    }

    /// Writes the rest, with the figures of each interface; `dropped` packets found no room in the ring.
    pub(super) fn finish(mut self, time_ns: u64, dropped: Option<u64>) -> (Written, String) {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.begin(LinkType::ETHERNET, &mut self.buffer),
            Format::Pcapng(pcapng) => pcapng.finish(time_ns, dropped, &mut self.buffer),
        }
        if !self.is_closed {
            self.write_out();
        }
        (self.written, self.name)
    }
}

impl RowSink<CapturedPackets> for PacketWriter {
    fn row(&mut self, row: &CapturedPacket<'_>, _: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        self.put(row);
        if self.is_closed { Disposition::Closed } else { Disposition::Emitted }
    }

    fn end_batch(&mut self, _: &CellsOf<'_, CapturedPackets>) {}

    fn flush(&mut self) {
        if !self.buffer.is_empty() && (!self.is_regular || self.last.elapsed() > WAIT) {
            self.write_out();
        }
    }
}

/// The filter of `-w` tests what is in packets.
struct NoLookups;

impl RenewedLookups for NoLookups {
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>)) {
        then(&Lookups::none());
    }
}

/// Makes the file of `-w`.
pub(super) fn open_output(path: &Path) -> Result<PacketWriter, RunError> {
    let failed = |error: io::Error| {
        let words = error.raw_os_error().map_or(error.to_string(), |errno| sys::Errno(errno).to_string());
        let cause = format!("cannot write {}: {words}", path.display()).into();
        RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause })
    };
    PacketWriter::create(path).map_err(failed)
}

/// Writes the packets of the stream until it ends; returns the line about the file.
pub(super) fn written(
    mut writer: PacketWriter,
    capture: &Capture,
    plan: &Plan<CapturedPackets>,
    stream: &mut dyn Stream<CapturedPackets>,
) -> Result<(Run, String), RunError> {
    let mut run = plan.follow_rows(stream, &mut NoLookups, &mut writer, &|| false)?;
    let dropped = capture.file.is_none().then_some(run.stats.lost);
    let (written, name) = writer.finish(sys::clock::wall_ns(), dropped);
    if written.not_written > 0 {
        run.stats.lost += written.not_written;
        run.stats.add_reason(written.not_written, format!("packets not written to {name}"));
    }
    let Written { packets, not_written } = written;
    Ok((run, format!("{packets} written to {name}, {not_written} not written")))
}
