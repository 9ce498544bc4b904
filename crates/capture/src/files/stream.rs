//! The rows of `capture --read`.

use record::rows::{CapturedPacket, CapturedPackets, LinkType, PacketAim};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, Stream, StreamState};

use super::blocks::COMMENT;
use super::error::FileError;
use super::packet::FilePacket;
use super::reader::{FileFormat, PacketFile, SkippedRecords};
use crate::row::complete;

const BACKEND: &str = "file";
/// Maximum number of rows in a batch, after which they are written and `stop` is called.
const BATCH_MAX: u64 = 1024;
/// Maximum wait for a packet from a pipe.
const IDLE_MS: i32 = 100;

/// Decides whether a packet of a file passes; the second argument is true if its section has the other byte order.
pub type PassesInFile<'p> = dyn Fn(&CapturedPacket<'_>, bool) -> bool + 'p;

/// The file, filter and end of a [`FilePackets`].
pub struct ReadPackets<'h> {
    /// The file.
    pub file: PacketFile,
    /// Maximum number of bytes to read of each packet; `None` for all that the file has.
    pub snaplen: Option<u32>,
    /// Decides for each packet whether it passes, given also whether its section has the other byte order.
    pub passes: Option<&'h PassesInFile<'h>>,
    /// Returns true to end the run.
    pub stop: &'h dyn Fn() -> bool,
}

/// The packets of a file as rows, in the order of the file. A broken file yields the packets before the fault.
pub struct FilePackets<'h> {
    file: PacketFile,
    snaplen: usize,
    passes: Option<&'h PassesInFile<'h>>,
    filtered: u64,
    stop: &'h dyn Fn() -> bool,
    seen: u64,
    comments: u64,
    fault: Option<FileError>,
    info: Vec<u8>,
}

impl<'h> FilePackets<'h> {
    /// Reads no more than the file's header yet.
    pub fn new(mut read: ReadPackets<'h>) -> FilePackets<'h> {
        read.file.fail_instead_of_waiting();
        FilePackets {
            file: read.file,
            snaplen: read.snaplen.map_or(usize::MAX, |bytes| bytes as usize),
            passes: read.passes,
            filtered: 0,
            stop: read.stop,
            seen: 0,
            comments: 0,
            fault: None,
            info: Vec::with_capacity(256),
        }
    }

    /// Returns what rows leave out: the number of comments on packets that passed so far, and other records.
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
}

impl<'f> FilePacket<'f> {
    /// The row of the packet, with at most `snaplen` of its bytes. Its headers are not decoded yet.
    #[inline]
    pub fn row(&self, snaplen: usize) -> CapturedPacket<'f> {
        let row = CapturedPacket {
            time_ns: self.time_ns,
            odd_time: self.odd_time,
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
fn aim_of_cooked(row: &CapturedPacket<'_>) -> Option<PacketAim> {
    match (row.link_type, row.frame) {
        (LinkType::SLL, [0, aim, ..]) => PacketAim::of(*aim),
        (LinkType::SLL2, frame) => PacketAim::of(*frame.get(10)?),
        _ => None,
    }
}

impl Stream<CapturedPackets> for FilePackets<'_> {
    fn offer(&self, _: &Demand<CapturedPackets>) -> Offer {
        let format = match self.file.format() {
            FileFormat::Pcap => "pcap",
            FileFormat::Pcapng => "pcapng",
        };
        let line = format!("packets of {}, {format}", self.file.name());
        Offer { backend: BACKEND, explain: vec![line], ..Offer::default() }
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
            Ok(state) => Ok(state),
            // Shows the rows so far; the next call continues with this packet.
            Err(fault) if fault.is_interrupted() || fault.is_starved() => Ok(StreamState::Open),
            Err(fault) => {
                self.fault = Some(fault);
                Ok(StreamState::Ended)
            }
        }
    }

    fn close(&mut self) -> Accounting {
        let mut stats = Accounting {
            seen: self.seen,
            filtered: self.filtered,
            incomplete: self.fault.is_some(),
            ..Accounting::default()
        };
        stats.used(BACKEND);
        if let Some(fault) = self.fault.take() {
            stats.add_reason(0, fault.to_string());
        }
        stats
    }
}
