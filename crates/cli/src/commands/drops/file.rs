//! `-w`: writes dropped packets to a pcapng file, each with notes on the reason and the location.

use engine::{Disposition, Plan, RowSink, Run, RunError};
use packet_files::formats::{CapturedPcapNg, PacketNotes};
use packet_files::notes::NoteFields;
use packet_files::{FileEnd, OutputFile, cannot_write};
use record::rows::{CapturedFrame, DropEvent, DropEvents, DroppedFrame, LinkType};
use record::{Lookups, RowCells, SourceError, SourceFault, Value};
use std::path::Path;

/// Default columns for comments. The first column is the interface, which is in no comment.
pub(super) const COLUMNS: &str = "iface,reason,place,hook";

/// A file that dropped packets are written to.
pub(super) struct DropFile {
    file: OutputFile,
    pcapng: CapturedPcapNg,
    notes: NoteFields,
    /// Number of packets whose bytes are missing from the file.
    without_bytes: u64,
}

impl DropFile {
    /// Creates the file, or empties an existing one; `-` is standard output. The columns come from the plan.
    pub(super) fn create(path: &Path, plan: &Plan<DropEvents>) -> Result<DropFile, RunError> {
        let file = OutputFile::create_packed(path).map_err(|error| {
            let cause = cannot_write(path, &error).into();
            RunError::Source(SourceError { what: "dropped packets", fault: SourceFault::Io, cause })
        })?;
        Ok(DropFile {
            file,
            pcapng: CapturedPcapNg::new(),
            notes: NoteFields::of_columns(plan.columns(), 1),
            without_bytes: 0,
        })
    }

    fn put(&mut self, event: &DropEvent<'_>, cells: &[Value<'_>]) {
        let frame = event.frame.unwrap_or(DroppedFrame { len: event.packet.first_bytes, link_type: None, bytes: &[] });
        let iface = cells.first().unwrap_or(&Value::Null);
        let packet = CapturedFrame {
            time_ns: event.time_ns,
            netns_id: event.packet.netns_id,
            ifindex: event.packet.ifindex,
            link_type: frame.link_type.unwrap_or(LinkType::RAW),
            len: frame.len,
            iface: if let Value::Bytes(name) = iface { name } else { &[] },
            frame: frame.bytes,
            ..CapturedFrame::default()
        };
        self.without_bytes += u64::from(frame.bytes.is_empty());
        let fields = &self.notes.fill(cells)[..];
        self.pcapng.write_noted(&packet, PacketNotes { text: &[], fields }, &mut self.file.buffer);
        if self.file.end_packet() {
            self.write_out();
        }
    }

    /// Writes waiting data. After a failure, later packets describe their interfaces again, because the lost data may
    /// have contained these blocks.
    fn write_out(&mut self) {
        if !self.file.write_out() {
            self.pcapng.begin_section();
        }
    }

    /// Writes the end of the file; returns the message about it.
    pub(super) fn finish(mut self, run: &mut Run) -> String {
        self.pcapng.finish(sys::clock::wall_ns(), None, &mut self.file.buffer);
        let end = self.file.finish();
        end.add_to(&mut run.stats);
        if self.without_bytes > 0 {
            let text = "packets are in the file without their contents: their start in the buffer was unknown";
            run.stats.add_reason(self.without_bytes, text);
        }
        let FileEnd { name, packets, not_written, .. } = end;
        format!("{packets} dropped packets written to {name}, {not_written} not written")
    }
}

impl RowSink<DropEvents> for DropFile {
    fn row(&mut self, event: &DropEvent<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>) -> Disposition {
        self.put(event, cells.all_cells());
        if self.file.is_closed() { Disposition::Closed } else { Disposition::Emitted }
    }

    fn flush(&mut self) {
        if self.file.is_due() {
            self.write_out();
        }
    }
}
