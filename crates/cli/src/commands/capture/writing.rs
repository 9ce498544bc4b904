//! `-w`: writes packets to a file, each completely or not at all.

use super::copying::OTHER_TIMES;
use super::figures::{Figures, Written};
use super::rotation::Rotation;
use capture::{CaptureReport, PacketStream};
use engine::{CellsOf, Disposition, Ended, FixedLookups, Plan, RowSink, Run, RunError, StreamFeed};
use record::rows::{CapturedFrame, CapturedFrames, CapturedPacket, CapturedPackets, LinkType, OddTime};
use record::{Columns, Lookups, Next, RowCells, SourceError, SourceFault, Stream, StreamState};
use runtime::messages::say;
use runtime::packet_files::{BegunFile, OutputFile, Packing, is_pcap, words_of};
use shipping::packet_notes::{ConnectionNotes, NoteFields};
use sinks::packets::{CapturedPcap, CapturedPcapNg, IfaceOfSection, IfaceStatistics, PacketNotes};
use std::io;
use std::path::Path;
use std::rc::Rc;

enum Format {
    Pcap(CapturedPcap),
    Pcapng(CapturedPcapNg),
}

impl Format {
    fn of(path: &Path) -> Format {
        if is_pcap(path) { Format::Pcap(CapturedPcap::new()) } else { Format::Pcapng(CapturedPcapNg::new()) }
    }

    /// Maximum size of the end of the file, including the description of one more interface.
    fn end_bytes(&self) -> usize {
        match self {
            Format::Pcap(_) => 0,
            Format::Pcapng(pcapng) => pcapng.end_bytes(),
        }
    }
}

/// Maximum number of bytes in a record in addition to the packet.
const RECORD_BYTES: usize = 64;
/// Reason for leaving out a packet whose link type is not the file's.
const OTHER_LINK_TYPE: &str = "a pcap file has a single link type: name the file .pcapng";

/// A file that packets are written to.
pub(super) struct PacketWriter {
    file: OutputFile,
    format: Format,
    /// `--comment`
    notes: Option<ConnectionNotes>,
    /// `None` if all packets belong in this file.
    rotation: Option<Rotation>,
    written: Written,
    /// Packets that have another time in the file.
    other_times: u64,
    /// Number of packets received.
    taken: u64,
    /// The capture's counts, if packets come from an interface.
    figures: Option<Rc<Figures>>,
    is_closed: bool,
    has_said: bool,
}

impl PacketWriter {
    /// Creates the file, or empties an existing one; `-` is standard output.
    pub(super) fn create(path: &Path) -> io::Result<PacketWriter> {
        Ok(PacketWriter::new(path, OutputFile::create_packed(path)?, None))
    }

    /// Creates the first file of a series.
    pub(super) fn begin(path: &Path, mut rotation: Rotation, packing: Option<Packing>) -> io::Result<PacketWriter> {
        let BegunFile { file, path: begun } = rotation.begin()?;
        let file = OutputFile::new(file, begun.display().to_string())?.packed(packing);
        Ok(PacketWriter::new(path, file, Some(rotation)))
    }

    fn new(path: &Path, file: OutputFile, rotation: Option<Rotation>) -> PacketWriter {
        let format = Format::of(path);
        PacketWriter {
            file,
            format,
            notes: None,
            rotation,
            written: Written::default(),
            other_times: 0,
            taken: 0,
            figures: None,
            is_closed: false,
            has_said: false,
        }
    }

    /// Returns the writer whose files say that packets were cut to `snaplen` bytes (0: not at all), and in pcap, that
    /// frames have checksums as `link_bits` say.
    pub(super) fn with_header(self, snaplen: u32, link_bits: u32) -> PacketWriter {
        let format = match self.format {
            Format::Pcap(pcap) => Format::Pcap(pcap.cut_to(snaplen).with_link_bits(link_bits)),
            Format::Pcapng(pcapng) => Format::Pcapng(pcapng.cut_to(snaplen)),
        };
        PacketWriter { format, ..self }
    }

    /// True if pcap is written.
    pub(super) fn is_pcap(&self) -> bool {
        matches!(self.format, Format::Pcap(_))
    }

    /// Reports counts to `figures`, and reads the interfaces' counts from it.
    pub(super) fn tell(&mut self, figures: Rc<Figures>) {
        figures.set_written(0, Written::default());
        self.figures = Some(figures);
    }

    /// Returns the writer with comments of the plan's columns.
    pub(super) fn with_notes(self, columns: &Columns) -> PacketWriter {
        PacketWriter { notes: Some(ConnectionNotes::new(NoteFields::of_columns(columns, 0))), ..self }
    }

    fn put(&mut self, row: &CapturedPacket<'_>, cells: &mut dyn RowCells) {
        if self.notes.is_none() {
            return self.put_captured(&row.captured());
        }
        // This may start a new file, in which no notes have been written yet.
        self.begin_packet(row.frame.len());
        if let (Format::Pcapng(pcapng), Some(notes)) = (&mut self.format, &mut self.notes) {
            let fields = &notes.of(row, cells.all())[..];
            pcapng.write_noted(&row.captured(), PacketNotes { text: &[], fields }, &mut self.file.buffer);
        }
        self.end_packet();
    }

    /// Writes packets with equal metadata, all at once if none of them can start a new file.
    fn put_alike(&mut self, packets: &CapturedFrames<'_>) {
        if self.rotation.is_some() {
            return packets.iter().for_each(|packet| self.put_captured(&packet));
        }
        let count = packets.places.len() as u64;
        self.taken += count;
        let (buffer, ends) = self.file.waiting();
        match &mut self.format {
            Format::Pcap(pcap) => {
                if !pcap.write_alike(packets, ends, buffer) {
                    return self.refuse(count, OTHER_LINK_TYPE);
                }
            }
            Format::Pcapng(pcapng) => pcapng.write_alike(packets, ends, buffer),
        }
        if self.file.is_full() {
            self.write_out();
        }
    }

    #[inline]
    fn put_captured(&mut self, packet: &CapturedFrame<'_>) {
        self.begin_packet(packet.frame.len());
        match &mut self.format {
            Format::Pcap(pcap) => {
                if !pcap.write(packet, &mut self.file.buffer) {
                    return self.refuse(1, OTHER_LINK_TYPE);
                }
                self.other_times += u64::from(!CapturedPcap::holds_time_of(packet));
            }
            Format::Pcapng(pcapng) => {
                pcapng.write(packet, &mut self.file.buffer);
                self.other_times += u64::from(packet.odd_time == Some(OddTime::Missing));
            }
        }
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
        match &mut self.format {
            Format::Pcap(pcap) => pcap.begin_file(),
            Format::Pcapng(pcapng) => pcapng.begin_section(),
        }
        if let Some(notes) = &mut self.notes {
            notes.begin_file();
        }
        self.file.replace(begun.file, begun.path.display().to_string());
        if let Some(rotation) = &mut self.rotation {
            rotation.moved_to(begun.path);
        }
    }

    /// Counts packets that are not written, and reports the first reason.
    fn refuse(&mut self, packets: u64, why: &str) {
        self.written.not_written += packets;
        if !std::mem::replace(&mut self.has_said, true) {
            say(&format!("{}: packets are not written: {why}", self.file.name));
        }
    }

    /// Writes waiting data. After a failure, later packets describe their interfaces again, because the lost data may
    /// have contained these blocks.
    fn write_out(&mut self) {
        let (packets, failure) = self.file.write_out();
        self.written.packets += packets;
        let Some(failure) = failure else { return };
        self.is_closed = failure.is_closed;
        match &mut self.format {
            Format::Pcapng(pcapng) => pcapng.begin_section(),
            Format::Pcap(pcap) if self.file.is_empty() => pcap.begin_file(),
            Format::Pcap(_) => {}
        }
        if let Some(rotation) = self.rotation.as_mut().filter(|_| self.file.is_empty()) {
            rotation.state.forget_packets();
        }
        self.refuse(failure.packets, &failure.why);
    }

    /// Writes the rest of the file, with the latest counts of each interface.
    fn end_file(&mut self) {
        let report = self.figures.as_ref().map(|figures| figures.report());
        let counts =
            |iface: &IfaceOfSection<'_>| report.as_ref().map_or_else(Default::default, |report| of(iface, report));
        match &mut self.format {
            Format::Pcap(pcap) => pcap.begin(LinkType::ETHERNET, &mut self.file.buffer),
            Format::Pcapng(pcapng) => pcapng.finish_with(sys::clock::wall_ns(), &counts, &mut self.file.buffer),
        }
        if !self.is_closed {
            self.write_out();
        }
    }
}

impl RowSink<CapturedPackets> for PacketWriter {
    fn row(&mut self, row: &CapturedPacket<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        self.put(row, cells);
        if self.is_closed { Disposition::Closed } else { Disposition::Emitted }
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
            figures.set_written(self.taken, self.written);
        }
    }
}

/// The counts of an interface since the capture began.
fn of(iface: &IfaceOfSection<'_>, report: &CaptureReport) -> IfaceStatistics {
    let name = sys::escaped(iface.name);
    let dropped = report.dropped_by_ifaces.iter().filter(|drops| drops.iface == name).map(|drops| drops.packets).sum();
    IfaceStatistics {
        dropped_by_iface: Some(dropped),
        dropped_by_system: Some(report.dropped_by_ring).filter(|_| iface.is_only),
        ..IfaceStatistics::default()
    }
}

/// The error for a file that cannot be created.
pub(super) fn not_made(path: &Path, error: &io::Error) -> RunError {
    let cause = format!("cannot write {}: {}", path.display(), words_of(error)).into();
    RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause })
}

/// Writes the packets of the stream until it ends. [`finished`] writes the waiting rest.
pub(super) fn written(
    writer: &mut PacketWriter,
    plan: &Plan<CapturedPackets>,
    stream: &mut dyn Stream<CapturedPackets>,
    lookups: Lookups<'_>,
) -> Result<Run, RunError> {
    plan.run_rows(&mut StreamFeed::new(stream, &mut FixedLookups(lookups), &|| false), writer)
}

/// Writes all packets of a capture directly from the ring, until the capture ends or the reader closes the output.
pub(super) fn all_written(writer: &mut PacketWriter, stream: &mut PacketStream<'_>) -> Result<Run, RunError> {
    let (mut ended, mut failed) = (Ended::Whole, None);
    writer.flush();
    loop {
        let state = stream.next_captured(&mut |packets| {
            writer.put_alike(packets);
            if writer.is_closed { Next::Stop } else { Next::More }
        });
        writer.flush();
        match state {
            _ if writer.is_closed => {
                ended = Ended::Closed;
                break;
            }
            Ok(StreamState::Open) => {}
            Ok(StreamState::Ended) => break,
            Err(error) if writer.taken == 0 => return Err(RunError::Source(error)),
            Err(error) => {
                failed = Some(error.to_string());
                break;
            }
        }
    }
    let mut stats = stream.close();
    stats.emitted = writer.taken;
    if let Some(text) = failed {
        stats.incomplete(0, text);
    }
    Ok(Run { stats, ended })
}

/// Writes the end of the file; returns the message about it.
pub(super) fn finished(mut writer: PacketWriter, run: &mut Run) -> String {
    writer.end_file();
    let PacketWriter { file, written, other_times, rotation, .. } = writer;
    let name = match rotation {
        Some(rotation) => rotation.finish(file, &mut run.stats),
        None => file.name,
    };
    if written.not_written > 0 {
        run.stats.lost += written.not_written;
        run.stats.add_reason(written.not_written, format!("packets not written to {name}"));
    }
    if other_times > 0 {
        run.stats.incomplete(other_times, OTHER_TIMES);
    }
    let Written { packets, not_written } = written;
    format!("{packets} written to {name}, {not_written} not written")
}
