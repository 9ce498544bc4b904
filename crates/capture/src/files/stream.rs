//! The rows of `capture --read`.

use record::rows::{CapturedPacket, CapturedPackets, LinkType, PktType};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, Stream, StreamState};

use super::blocks::COMMENT;
use super::error::FileError;
use super::packet::FilePacket;
use super::reader::{FileFormat, PacketFile, SkippedRecords, UnreadFile};
use crate::row::complete;
use std::collections::VecDeque;
use std::path::Path;

const BACKEND: &str = "file";
/// Maximum number of rows in a batch, after which they are written and `stop` is called.
const BATCH_MAX: u64 = 1024;
/// Maximum wait for a packet from a pipe.
const IDLE_MS: i32 = 100;

/// Decides whether a packet of a file passes; the second argument is true if its section has the other byte order.
pub type PassesInFile<'p> = dyn Fn(&CapturedPacket<'_>, bool) -> bool + 'p;

/// Files to read one after another. Those that cannot be opened or are not packet files are skipped and reported.
pub struct UnreadFiles {
    files: VecDeque<Result<UnreadFile, FileError>>,
    /// The faults of the skipped files.
    faults: Vec<FileError>,
}

/// The next file of [`UnreadFiles`].
pub enum NextFile {
    /// The file, whose header was read.
    Opened(PacketFile),
    /// The next file is a pipe that has no data yet.
    Waiting,
    /// There are no more files.
    None,
}

impl UnreadFiles {
    /// Opens all files; `-` is standard input. Waits for no writer of a FIFO. If none can be opened, returns their
    /// faults.
    pub fn open<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<UnreadFiles, Vec<FileError>> {
        let files: VecDeque<_> = paths.into_iter().map(UnreadFile::open).collect();
        match files.iter().any(Result::is_ok) {
            true => Ok(UnreadFiles { files, faults: Vec::new() }),
            false => Err(files.into_iter().filter_map(Result::err).collect()),
        }
    }

    /// False if the next file is a pipe that has no data and gets none within `timeout_ms`.
    pub fn is_ready(&self, timeout_ms: i32) -> bool {
        self.files.front().is_none_or(|file| file.as_ref().map_or(true, |file| file.is_ready(timeout_ms)))
    }

    /// Reads the header of the next file that is a packet file.
    pub fn read_next(&mut self, timeout_ms: i32) -> NextFile {
        while self.is_ready(timeout_ms) {
            let Some(file) = self.files.pop_front() else { return NextFile::None };
            match file.and_then(UnreadFile::read) {
                Ok(file) => return NextFile::Opened(file),
                Err(fault) => self.faults.push(fault),
            }
        }
        NextFile::Waiting
    }

    /// Returns the faults of the files that were skipped so far.
    pub fn into_faults(self) -> Vec<FileError> {
        self.faults
    }
}

/// The files, filter and end of a [`FilePackets`].
pub struct ReadPackets<'h> {
    /// The first file that can be read.
    pub file: PacketFile,
    /// The files after it, and the faults of those before it.
    pub others: UnreadFiles,
    /// Maximum number of bytes to read of each packet; `None` for all that the file has.
    pub snaplen: Option<u32>,
    /// Decides for each packet whether it passes, given also whether its section has the other byte order.
    pub passes: Option<&'h PassesInFile<'h>>,
    /// Returns true to end the run.
    pub stop: &'h dyn Fn() -> bool,
}

/// The packets of files as rows, in the order of each file, one file after the other. A broken file yields the packets
/// before the fault.
pub struct FilePackets<'h> {
    file: PacketFile,
    /// True once the file has ended.
    is_over: bool,
    others: UnreadFiles,
    snaplen: usize,
    passes: Option<&'h PassesInFile<'h>>,
    filtered: u64,
    stop: &'h dyn Fn() -> bool,
    seen: u64,
    comments: u64,
    fault: Option<FileError>,
    info: Vec<u8>,
    /// Counts of the previous files.
    stats: Accounting,
}

impl<'h> FilePackets<'h> {
    /// Reads no more than the file's header yet.
    pub fn new(mut read: ReadPackets<'h>) -> FilePackets<'h> {
        read.file.fail_instead_of_waiting();
        FilePackets {
            file: read.file,
            is_over: false,
            others: read.others,
            snaplen: read.snaplen.map_or(usize::MAX, |bytes| bytes as usize),
            passes: read.passes,
            filtered: 0,
            stop: read.stop,
            seen: 0,
            comments: 0,
            fault: None,
            info: Vec::with_capacity(256),
            stats: Accounting::default(),
        }
    }

    /// Returns what rows of the present file leave out: the number of comments on packets that passed so far, and other
    /// records.
    pub fn left_out(&self) -> (u64, SkippedRecords) {
        (self.comments, self.file.skipped)
    }

    /// Hands out the available packets, at most one batch.
    fn hand_out(&mut self, need: u64, each: &mut Each<'_, CapturedPackets>) -> Result<StreamState, FileError> {
        for _ in 0..BATCH_MAX {
            let is_swapped = self.file.is_swapped();
            let Some(packet) = self.file.next_packet()? else { return Ok(StreamState::Ended) };
            self.seen += 1;
            let row = packet.row(self.snaplen);
            if self.passes.is_some_and(|passes| !passes(&row, is_swapped)) {
                self.filtered += 1;
                continue;
            }
            if !packet.options.is_empty() {
                self.comments += u64::from(packet.options.has(COMMENT));
            }
            if each(&complete(row, need, &mut self.info)) == Next::Stop {
                break;
            }
        }
        Ok(StreamState::Open)
    }

    /// Ends the file; returns its counts.
    fn end_file(&mut self) -> Accounting {
        let fault = self.fault.take();
        let (seen, filtered) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.filtered));
        let mut stats = Accounting { seen, filtered, incomplete: fault.is_some(), ..Accounting::default() };
        stats.add_backend(BACKEND);
        if let Some(fault) = fault {
            stats.add_reason(0, fault.to_string());
        }
        stats
    }

    /// Continues with the next file, after a wait of at most [`IDLE_MS`] for its first bytes.
    fn begin_next(&mut self) -> StreamState {
        match self.others.read_next(IDLE_MS) {
            NextFile::None => StreamState::Ended,
            NextFile::Waiting => StreamState::Open,
            NextFile::Opened(mut file) => {
                let ended = self.end_file();
                self.stats.add(&ended);
                file.fail_instead_of_waiting();
                (self.file, self.is_over, self.comments) = (file, false, 0);
                StreamState::Open
            }
        }
    }
}

impl<'f> FilePacket<'f> {
    /// The row of the packet, with at most `snaplen` of its bytes. Its headers are not decoded yet.
    #[inline]
    pub fn row(&self, snaplen: usize) -> CapturedPacket<'f> {
        let row = CapturedPacket {
            time_ns: self.time_ns,
            unusual_time: self.unusual_time,
            ifindex: self.number,
            iface: self.iface_name,
            link_type: u16::try_from(self.link_type).map_or(LinkType::UNKNOWN, LinkType),
            packet_type: self.packet_type,
            len: self.len,
            frame: self.bytes.get(..snaplen).unwrap_or(self.bytes),
            ..CapturedPacket::default()
        };
        CapturedPacket { packet_type: row.packet_type.or_else(|| packet_type_of_cooked(&row)), ..row }
    }
}

/// The packet type in a "cooked" header: two bytes at its start, or one byte after the hardware type.
fn packet_type_of_cooked(row: &CapturedPacket<'_>) -> Option<PktType> {
    match (row.link_type, row.frame) {
        (LinkType::SLL, [0, packet_type, ..]) => PktType::from_number(*packet_type),
        (LinkType::SLL2, frame) => PktType::from_number(*frame.get(10)?),
        _ => None,
    }
}

impl Stream<CapturedPackets> for FilePackets<'_> {
    fn offer(&self, _: &Demand<CapturedPackets>) -> Offer {
        let format = match self.file.format() {
            FileFormat::Pcap => "pcap",
            FileFormat::Pcapng => "pcapng",
        };
        let mut explain = vec![format!("packets of {}, {format}", self.file.name())];
        if !self.others.files.is_empty() {
            explain.push(format!("then packets of {} more files", self.others.files.len()));
        }
        Offer { backend: BACKEND, explain, ..Offer::default() }
    }

    fn next(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        if (self.stop)() {
            return Ok(StreamState::Ended);
        }
        if self.is_over {
            return Ok(self.begin_next());
        }
        if !self.file.may_have_more(IDLE_MS) {
            return Ok(StreamState::Open);
        }
        match self.hand_out(demand.need, each) {
            Ok(StreamState::Open) => return Ok(StreamState::Open),
            Ok(StreamState::Ended) => {}
            // Shows the rows so far; the next call continues with this packet.
            Err(fault) if fault.is_interrupted() || fault.is_starved() => return Ok(StreamState::Open),
            Err(fault) => self.fault = Some(fault),
        }
        self.is_over = true;
        Ok(if self.others.files.is_empty() { StreamState::Ended } else { StreamState::Open })
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.stats);
        stats.add(&self.end_file());
        for fault in self.others.faults.drain(..) {
            stats.incomplete(0, fault.to_string());
        }
        stats
    }
}
