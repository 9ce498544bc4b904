//! `-w`: writes packets to a file, each completely or not at all.

use super::copy::{LOST_CHECKSUM_LENGTH, ONE_LINK_TYPE, OTHER_TIMES, smaller_snaplen};
use super::figures::{Figures, WriteCounts};
use super::format::PacketFormat;
use super::formats::{IfaceStatistics, PacketNotes, SectionIface};
use super::notes::{ConnectionNotes, NoteFields};
use super::output_file::{OutputFile, cannot_write};
use super::packing::Packing;
use super::rotation::Rotation;
use super::series::NewFile;
use capture::{CaptureReport, FileIface, PacketStream, SkippedRecords};
use engine::{CellsOf, Disposition, EndReason, FixedLookups, Plan, RowSink, Run, RunError, StreamFeed};
use record::rows::{CapturedFrame, CapturedPacket, CapturedPackets, LinkType, SimilarFrames};
use record::{Columns, Lookups, Next, RowCells, SourceError, SourceFault, Stream, StreamState};
use runtime::messages::print_message;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Maximum number of bytes in a record in addition to the packet.
const RECORD_BYTES: usize = 64;

/// A file, or a series of files, that captured packets are written to.
pub struct PacketWriter {
    file: OutputFile,
    format: PacketFormat,
    /// `--comment`
    notes: Option<ConnectionNotes>,
    /// `None` if all packets belong in this file.
    rotation: Option<Rotation>,
    /// Packets that have another time in the file.
    other_times: u64,
    /// Number of packets received.
    taken: u64,
    /// The capture's counts, if packets come from an interface.
    figures: Option<Rc<Figures>>,
}

impl PacketWriter {
    /// Creates the file, or empties an existing one; `-` is standard output.
    pub fn create(path: &Path) -> io::Result<PacketWriter> {
        Ok(PacketWriter::new(path, OutputFile::create_packed(path)?, None))
    }

    /// Creates the first file of a series.
    pub(super) fn begin(path: &Path, mut rotation: Rotation, packing: Option<Packing>) -> io::Result<PacketWriter> {
        let NewFile { file, path: begun } = rotation.begin()?;
        let file = OutputFile::new(file, begun.display().to_string())?.with_packing(packing);
        Ok(PacketWriter::new(path, file, Some(rotation)))
    }

    fn new(path: &Path, file: OutputFile, rotation: Option<Rotation>) -> PacketWriter {
        PacketWriter {
            file,
            format: PacketFormat::from_name(path),
            notes: None,
            rotation,
            other_times: 0,
            taken: 0,
            figures: None,
        }
    }

    /// Returns the writer whose files say that packets were cut to `snaplen` bytes (0: not at all), and in pcap, that
    /// frames have checksums as `link_bits` say.
    pub fn with_header(self, snaplen: u32, link_bits: u32) -> PacketWriter {
        PacketWriter { format: self.format.with_header(snaplen, link_bits), ..self }
    }

    /// Returns the writer whose files have the header of the pcap file whose interfaces these are, or at least the
    /// snapshot length that the user requested, and a message about what of the header has no place there.
    pub fn with_header_of(self, ifaces: &[FileIface], snaplen: Option<u32>) -> (PacketWriter, Option<&'static str>) {
        let of_pcap = ifaces.first().and_then(|iface| Some((smaller_snaplen(iface, snaplen), iface.pcap_bits?)));
        let Some((snaplen, bits)) = of_pcap.or(snaplen.map(|snaplen| (snaplen, 0))) else { return (self, None) };
        let is_pcap = matches!(self.format, PacketFormat::Pcap(_));
        (self.with_header(snaplen, bits), (bits != 0 && !is_pcap).then_some(LOST_CHECKSUM_LENGTH))
    }

    /// Returns the writer that reports counts to `figures`, and reads the interfaces' counts from it.
    pub fn with_figures(self, figures: Rc<Figures>) -> PacketWriter {
        figures.set_write_counts(0, WriteCounts::default());
        PacketWriter { figures: Some(figures), ..self }
    }

    /// Returns the writer with comments of the plan's columns.
    pub fn with_notes(self, columns: &Columns) -> PacketWriter {
        PacketWriter { notes: Some(ConnectionNotes::new(NoteFields::of_columns(columns, 0))), ..self }
    }

    fn put(&mut self, row: &CapturedPacket<'_>, cells: &mut dyn RowCells) {
        if self.notes.is_none() {
            return self.put_captured(&row.to_frame());
        }
        // This may start a new file, in which no notes have been written yet.
        self.begin_packet(row.frame.len());
        if let (PacketFormat::Pcapng(pcapng), Some(notes)) = (&mut self.format, &mut self.notes) {
            let fields = &notes.of(row, cells.all_cells())[..];
            pcapng.write_noted(&row.to_frame(), PacketNotes { text: &[], fields }, &mut self.file.buffer);
        }
        self.end_packet();
    }

    /// Writes packets with equal metadata, all at once if none of them can start a new file.
    fn put_similar(&mut self, packets: &SimilarFrames<'_>) {
        if self.rotation.is_some() {
            return packets.iter().for_each(|packet| self.put_captured(&packet));
        }
        let count = packets.places.len() as u64;
        self.taken += count;
        let (buffer, ends) = self.file.waiting_records();
        match &mut self.format {
            PacketFormat::Pcap(pcap) => {
                if !pcap.write_similar(packets, ends, buffer) {
                    return self.file.refuse(count, ONE_LINK_TYPE);
                }
            }
            PacketFormat::Pcapng(pcapng) => pcapng.write_similar(packets, ends, buffer),
        }
        if self.file.is_full() {
            self.write_out();
        }
    }

    #[inline]
    fn put_captured(&mut self, packet: &CapturedFrame<'_>) {
        self.begin_packet(packet.frame.len());
        if !self.format.write(packet, &mut self.file.buffer) {
            return self.file.refuse(1, ONE_LINK_TYPE);
        }
        self.other_times += u64::from(!self.format.holds_time_of(packet));
        self.end_packet();
    }

    #[inline]
    fn begin_packet(&mut self, bytes: usize) {
        self.taken += 1;
        if let Some(rotation) = &self.rotation {
            let more = bytes + RECORD_BYTES + self.format.end_bytes();
            if rotation.state.is_full(self.file.bytes() + more as u64) {
                self.rotate();
            }
        }
    }

    #[inline]
    fn end_packet(&mut self) {
        if let Some(rotation) = &mut self.rotation {
            rotation.state.add_packet();
        }
        if self.file.end_packet() {
            self.write_out();
        }
    }

    /// Switches to a new file, which is opened before the current one is ended. If that fails, continues in the
    /// current file.
    #[cold]
    fn rotate(&mut self) {
        // If the disk has no room for the packets of this file, it has none for a new file.
        self.write_out();
        if self.file.is_empty() {
            return;
        }
        let Some(begun) = self.rotation.as_mut().and_then(Rotation::begin_next) else { return };
        self.end_file();
        self.file.write_out();
        self.format.begin_file();
        if let Some(notes) = &mut self.notes {
            notes.begin_file();
        }
        self.file.replace(begun.file, begun.path.display().to_string());
        if let Some(rotation) = &mut self.rotation {
            rotation.moved_to(begun.path);
        }
    }

    /// Writes waiting data. After a failure, later packets describe their interfaces again, because the lost data may
    /// have contained these blocks.
    fn write_out(&mut self) {
        if self.file.write_out() {
            return;
        }
        match self.file.is_empty() {
            true => self.format.begin_file(),
            false => self.format.continue_file(),
        }
        if let Some(rotation) = self.rotation.as_mut().filter(|_| self.file.is_empty()) {
            rotation.state.reset_packets();
        }
    }

    /// Appends the end of the file, with the latest counts of each interface.
    fn end_file(&mut self) {
        let report = self.figures.as_ref().map(|figures| figures.report());
        let counts = |iface: &SectionIface<'_>| report.as_ref().map_or_else(Default::default, |r| statistics(iface, r));
        self.format.end_file(LinkType::ETHERNET, &counts, &mut self.file.buffer);
    }

    /// Writes the packets of the stream until it ends. [`PacketWriter::finish`] writes the waiting rest.
    pub fn write_rows(
        &mut self,
        plan: &Plan<CapturedPackets>,
        stream: &mut dyn Stream<CapturedPackets>,
        lookups: Lookups<'_>,
    ) -> Result<Run, RunError> {
        plan.run_rows(&mut StreamFeed::new(stream, &mut FixedLookups(lookups), &|| false), self)
    }

    /// Writes all packets of a capture directly from the ring, until the capture ends or the reader closes the output.
    pub fn write_all(&mut self, stream: &mut PacketStream<'_>) -> Result<Run, RunError> {
        let (mut ended, mut failed) = (EndReason::Whole, None);
        self.flush();
        loop {
            let state = stream.next_captured(&mut |packets| {
                self.put_similar(packets);
                if self.file.is_closed() { Next::Stop } else { Next::More }
            });
            self.flush();
            match state {
                _ if self.file.is_closed() => {
                    ended = EndReason::Closed;
                    break;
                }
                Ok(StreamState::Open) => {}
                Ok(StreamState::Ended) => break,
                Err(error) if self.taken == 0 => return Err(RunError::Source(error)),
                Err(error) => {
                    failed = Some(error.to_string());
                    break;
                }
            }
        }
        let mut stats = stream.close();
        stats.emitted = self.taken;
        if let Some(text) = failed {
            stats.incomplete(0, text);
        }
        Ok(Run { stats, ended })
    }

    /// Writes the end of the file; returns the message about it.
    pub fn finish(mut self, run: &mut Run) -> String {
        self.end_file();
        let PacketWriter { file, other_times, rotation, .. } = self;
        let mut end = file.finish();
        if let Some(rotation) = rotation {
            end.name = rotation.finish(end.name, &mut run.stats);
        }
        end.add_to(&mut run.stats);
        if other_times > 0 {
            run.stats.incomplete(other_times, OTHER_TIMES);
        }
        end.to_string()
    }
}

impl RowSink<CapturedPackets> for PacketWriter {
    fn row(&mut self, row: &CapturedPacket<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        self.put(row, cells);
        if self.file.is_closed() { Disposition::Closed } else { Disposition::Emitted }
    }

    fn end_batch(&mut self, _: &CellsOf<'_, CapturedPackets>) {}

    fn flush(&mut self) {
        if self.rotation.as_mut().is_some_and(Rotation::is_due) {
            self.rotate();
        }
        if self.file.is_due() {
            self.write_out();
        }
        if let Some(figures) = &self.figures {
            figures.set_write_counts(self.taken, self.file.counts());
        }
    }
}

/// The counts of an interface since the capture began.
fn statistics(iface: &SectionIface<'_>, report: &CaptureReport) -> IfaceStatistics {
    let name = sys::escape_bytes(iface.name);
    let dropped = report.dropped_by_ifaces.iter().filter(|drops| drops.iface == name).map(|drops| drops.packets).sum();
    IfaceStatistics {
        dropped_by_iface: Some(dropped),
        dropped_by_system: Some(report.dropped_by_ring).filter(|_| iface.is_only),
        ..IfaceStatistics::default()
    }
}

/// The error for a file that cannot be created.
pub(super) fn not_created(path: &Path, error: &io::Error) -> RunError {
    let cause = cannot_write(path, error).into();
    RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause })
}

/// Reports which parts of the input file a file of its packets lacks.
pub fn say_left_out((comments, skipped): (u64, SkippedRecords)) {
    let SkippedRecords { descriptions, others } = skipped;
    if comments + descriptions + others > 0 {
        print_message(&format!(
            "not written: {comments} packet comments, {descriptions} descriptions of interfaces and sections, and \
             {others} blocks with names, counts or secrets: `netwren capture cut FILE --write OUTPUT` copies them"
        ));
    }
}
