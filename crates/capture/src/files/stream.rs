//! The rows of `capture --read`.

use record::rows::{CapturedPacket, CapturedPackets, LinkType, PktType};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, Stream, StreamState};

use super::blocks::COMMENT;
use super::error::FileError;
use super::packet::FilePacket;
use super::reader::{FileFormat, PacketFile, SkippedRecords, UnreadFile};
use crate::row::complete;
use std::collections::VecDeque;

const BACKEND: &str = "file";
/// Maximum number of rows in a batch, after which they are written and `stop` is called.
const BATCH_MAX: u64 = 1024;
/// Maximum wait for a packet from a pipe.
const IDLE_MS: i32 = 100;

/// Decides whether a packet of a file passes; the second argument is true if its section has the other byte order.
pub type PassesInFile<'p> = dyn Fn(&CapturedPacket<'_>, bool) -> bool + 'p;

/// The files, filter and end of a [`FilePackets`].
pub struct ReadPackets<'h> {
    /// The first file.
    pub file: PacketFile,
    /// The files after it. Those that cannot be opened or are not packet files are skipped and reported.
    pub others: VecDeque<Result<UnreadFile, FileError>>,
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
    others: VecDeque<Result<UnreadFile, FileError>>,
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

    /// Opens the next file; false if there are no more.
    fn open_next(&mut self) -> bool {
        while let Some(opened) = self.others.pop_front() {
            match opened.and_then(UnreadFile::read) {
                Ok(mut file) => {
                    let ended = self.end_file();
                    self.stats.add(&ended);
                    file.fail_instead_of_waiting();
                    (self.file, self.comments) = (file, 0);
                    return true;
                }
                Err(error) => self.stats.incomplete(0, error.to_string()),
            }
        }
        false
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
            packet_type: self.aim,
            len: self.len,
            frame: self.bytes.get(..snaplen).unwrap_or(self.bytes),
            ..CapturedPacket::default()
        };
        CapturedPacket { packet_type: row.packet_type.or_else(|| aim_of_cooked(&row)), ..row }
    }
}

/// The packet type in a "cooked" header: two bytes at its start, or one byte after the hardware type.
fn aim_of_cooked(row: &CapturedPacket<'_>) -> Option<PktType> {
    match (row.link_type, row.frame) {
        (LinkType::SLL, [0, aim, ..]) => PktType::from_number(*aim),
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
        if !self.others.is_empty() {
            explain.push(format!("then packets of {} more files", self.others.len()));
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
        let goes_on = !(self.stop)() && self.open_next();
        Ok(if goes_on { StreamState::Open } else { StreamState::Ended })
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.stats);
        stats.add(&self.end_file());
        stats
    }
}
