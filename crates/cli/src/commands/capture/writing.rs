//! `-w`: packets into a file of their own, each whole or not in it.

use super::notes::Notes;
use super::output_file::{OutputFile, is_pcap, words_of};
use crate::messages::say;
use capture::CaptureReport;
use engine::{CellsOf, Disposition, Plan, RenewedLookups, RowSink, Run, RunError};
use record::rows::{CapturedPacket, CapturedPackets, LinkType};
use record::{Columns, Lookups, RowCells, SourceError, SourceFault, Stream};
use sinks::packets::{CapturedPcap, CapturedPcapNg, IfaceOfSection, IfaceStatistics};
use std::io;
use std::path::Path;

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
    file: OutputFile,
    format: Format,
    /// `--comment`
    notes: Option<Notes>,
    written: Written,
    is_closed: bool,
    has_said: bool,
}

impl PacketWriter {
    /// Makes the file, or empties the one that is there; `-` is standard output.
    pub(super) fn create(path: &Path) -> io::Result<PacketWriter> {
        let is_pcap = is_pcap(path);
        Ok(PacketWriter {
            file: OutputFile::create(path)?,
            format: if is_pcap { Format::Pcap(CapturedPcap::new()) } else { Format::Pcapng(CapturedPcapNg::new()) },
            notes: None,
            written: Written::default(),
            is_closed: false,
            has_said: false,
        })
    }

    /// The same with a comment of the plan's columns.
    pub(super) fn with_notes(self, columns: &Columns) -> PacketWriter {
        PacketWriter { notes: Some(Notes::new(columns)), ..self }
    }

    fn put(&mut self, row: &CapturedPacket<'_>, cells: &mut dyn RowCells) {
        let is_noted = self.notes.as_mut().is_some_and(|notes| notes.is_due(row, cells.all()));
        let has_place = match (&mut self.format, &mut self.notes) {
            (Format::Pcap(pcap), _) => pcap.write(row, &mut self.file.buffer),
            (Format::Pcapng(pcapng), Some(notes)) if is_noted => {
                let notes: Vec<(&str, &[u8])> = notes.of(cells.all()).collect();
                pcapng.write_noted(row, &notes, &mut self.file.buffer);
                true
            }
            (Format::Pcapng(pcapng), _) => {
                pcapng.write(row, &mut self.file.buffer);
                true
            }
        };
        if !has_place {
            return self.refuse(1, "pcap has one link type only: name the file .pcapng");
        }
        if self.file.end_packet() {
            self.write_out();
        }
    }

    /// Counts packets that are not written; the reason is said once.
    fn refuse(&mut self, packets: u64, why: &str) {
        self.written.not_written += packets;
        if !std::mem::replace(&mut self.has_said, true) {
            say(&format!("{}: packets are not written: {why}", self.file.name));
        }
    }

    /// Writes what waits. After a failure what follows names its interfaces anew: their blocks may be among what was
    /// taken back.
    fn write_out(&mut self) {
        let (packets, failure) = self.file.write_out();
        self.written.packets += packets;
        let Some(failure) = failure else { return };
        self.is_closed = failure.is_closed;
        match &mut self.format {
            Format::Pcapng(pcapng) => pcapng.begin_section(),
            Format::Pcap(pcap) if self.file.is_empty() => *pcap = CapturedPcap::new(),
            Format::Pcap(_) => {}
        }
        self.refuse(failure.packets, &failure.why);
    }

    /// Writes the rest, with the counts of each interface.
    fn finish(mut self, counts: &dyn Fn(&IfaceOfSection<'_>) -> IfaceStatistics) -> (Written, String) {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.begin(LinkType::ETHERNET, &mut self.file.buffer),
            Format::Pcapng(pcapng) => pcapng.finish_with(sys::clock::wall_ns(), counts, &mut self.file.buffer),
        }
        if !self.is_closed {
            self.write_out();
        }
        (self.written, self.file.name)
    }
}

impl RowSink<CapturedPackets> for PacketWriter {
    fn row(&mut self, row: &CapturedPacket<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        self.put(row, cells);
        if self.is_closed { Disposition::Closed } else { Disposition::Emitted }
    }

    fn end_batch(&mut self, _: &CellsOf<'_, CapturedPackets>) {}

    fn flush(&mut self) {
        if self.file.is_due() {
            self.write_out();
        }
    }
}

/// What is known before the first packet: names of namespaces.
struct KnownBefore<'l>(Lookups<'l>);

impl RenewedLookups for KnownBefore<'_> {
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>)) {
        then(&self.0);
    }
}

/// Makes the file of `-w`.
pub(super) fn open_output(path: &Path) -> Result<PacketWriter, RunError> {
    let failed = |error: io::Error| {
        let cause = format!("cannot write {}: {}", path.display(), words_of(&error)).into();
        RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause })
    };
    PacketWriter::create(path).map_err(failed)
}

/// Writes the packets of the stream until it ends. [`finished`] writes what then waits.
pub(super) fn written(
    writer: &mut PacketWriter,
    plan: &Plan<CapturedPackets>,
    stream: &mut dyn Stream<CapturedPackets>,
    lookups: Lookups<'_>,
) -> Result<Run, RunError> {
    plan.follow_rows(stream, &mut KnownBefore(lookups), writer, &|| false)
}

/// Writes the end of the file, with the counts of each interface where `report` has them; returns the line about it.
pub(super) fn finished(writer: PacketWriter, run: &mut Run, report: Option<&CaptureReport>) -> String {
    let dropped_by_system = report.map(|_| run.stats.lost);
    let counts = |iface: &IfaceOfSection<'_>| {
        let of_iface = |report: &CaptureReport| {
            let name = sys::escaped(iface.name);
            report.dropped_by_ifaces.iter().filter(|drops| drops.iface == name).map(|drops| drops.packets).sum()
        };
        IfaceStatistics {
            dropped_by_iface: report.map(of_iface),
            dropped_by_system: dropped_by_system.filter(|_| iface.is_only),
            ..IfaceStatistics::default()
        }
    };
    let (written, name) = writer.finish(&counts);
    if written.not_written > 0 {
        run.stats.lost += written.not_written;
        run.stats.add_reason(written.not_written, format!("packets not written to {name}"));
    }
    let Written { packets, not_written } = written;
    format!("{packets} written to {name}, {not_written} not written")
}
