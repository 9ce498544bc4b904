//! Selects the writer for each table and format.

use super::gate::{RepeatRequest, RowGate};
use super::ipfix::{Connections, NatSessions};
use super::pending_batch::PendingBatch;
use super::repeats::KeyedGate;
use super::row_writer::{RowWriter, Shipped};
use super::text_cache::CachingWriter;
use super::tuning::UlogdTuning;
use super::ulogd::OfGroup;
use engine::ReadRows;
use export::{Format, Target};
use packet_files::formats::{CapturedPcapNg, CookedPcap, PacketNotes, Pcap, PcapNg};
use packet_files::notes::{ConnectionNotes, NoteFields};
use record::rows::{
    CapturedPacket, CapturedPackets, DropEvent, DropEvents, FlowEvent, FlowEvents, LogRecord, LogRecords, NatEvent,
    NatEvents, SocketEvent, SocketEvents,
};
use record::{Columns, LookupId, Lookups, NANOS, NUMBERS, Next, NumberKind, RowCells, RowShape, ShapeColumn};
use sinks::JsonRows;

const NS_PER_SECOND: u64 = 1_000_000_000;

impl Shipped for SocketEvents {
    fn time_ns(row: &SocketEvent) -> u64 {
        row.time_ns
    }

    fn msgid(row: &SocketEvent) -> &'static str {
        row.kind.name()
    }

    fn own_writer(
        format: Format,
        _: Option<&UlogdTuning>,
        _: Option<NoteFields>,
    ) -> Option<Box<dyn RowWriter<SocketEvents>>> {
        (format == Format::Ipfix).then(|| Box::new(Connections) as Box<dyn RowWriter<SocketEvents>>)
    }
}

impl Shipped for FlowEvents {
    fn time_ns(row: &FlowEvent) -> u64 {
        row.time_ns
    }

    fn msgid(_: &FlowEvent) -> &'static str {
        "flow"
    }
}

impl Shipped for NatEvents {
    fn time_ns(row: &NatEvent<'_>) -> u64 {
        row.time_ns
    }

    fn msgid(row: &NatEvent<'_>) -> &'static str {
        row.kind.name()
    }

    fn own_writer(
        format: Format,
        _: Option<&UlogdTuning>,
        _: Option<NoteFields>,
    ) -> Option<Box<dyn RowWriter<NatEvents>>> {
        (format == Format::Ipfix).then(|| Box::new(NatSessions) as Box<dyn RowWriter<NatEvents>>)
    }

    fn gate(request: &RepeatRequest) -> Option<Box<dyn RowGate<NatEvents>>> {
        Some(Box::new(KeyedGate::<NatEvents>::new(request)?))
    }
}

impl Shipped for DropEvents {
    fn time_ns(row: &DropEvent<'_>) -> u64 {
        row.time_ns
    }

    fn msgid(_: &DropEvent<'_>) -> &'static str {
        "drop"
    }
}

impl Shipped for LogRecords {
    const LOOKUPS: &'static [LookupId] = &[LookupId::Ifaces];

    fn time_ns(row: &LogRecord<'_>) -> u64 {
        row.time_ns
    }

    fn msgid(row: &LogRecord<'_>) -> &'static str {
        row.hook_name()
    }

    #[inline]
    fn shape<'r>(row: &'r LogRecord<'_>) -> Option<RowShape<'r>> {
        row.shape()
    }

    fn shape_column(column: &str) -> ShapeColumn {
        LogRecord::shape_column(column)
    }

    fn number_kind(number: usize) -> NumberKind {
        LogRecord::number_kind(number)
    }

    fn varied(
        row: &LogRecord<'_>,
        numbers: &[u32; NUMBERS],
        memory: &mut Vec<u8>,
        then: &mut dyn FnMut(&LogRecord<'_>),
    ) {
        memory.clear();
        memory.extend_from_slice(row.payload);
        row.put_numbers(numbers, memory);
        let time_ns = row.time_ns / NS_PER_SECOND * NS_PER_SECOND + u64::from(numbers[NANOS]);
        then(&LogRecord { time_ns, payload: memory, packet: packet::read_headers(memory), ..*row });
    }

    fn class(row: &LogRecord<'_>) -> u16 {
        rule_class(row.netns_id, row.group, row.prefix)
    }

    fn gate(request: &RepeatRequest) -> Option<Box<dyn RowGate<LogRecords>>> {
        Some(Box::new(KeyedGate::<LogRecords>::new(request)?))
    }

    fn own_writer(
        format: Format,
        tuning: Option<&UlogdTuning>,
        notes: Option<NoteFields>,
    ) -> Option<Box<dyn RowWriter<LogRecords>>> {
        match format {
            // ulogd2's plugin writes all records, also records that are not IP.
            Format::Pcap if tuning.is_some() => Some(Box::new(Pcap::new())),
            Format::Pcap => Some(Box::new(IpRecords(Pcap::new()))),
            Format::Pcapng => Some(Box::new(NotedRecords { pcapng: PcapNg::new(), notes })),
            _ => super::ulogd::writer(format, tuning),
        }
    }

    fn chosen(writer: Box<dyn RowWriter<LogRecords>>, tuning: &UlogdTuning) -> Box<dyn RowWriter<LogRecords>> {
        Box::new(OfGroup { group: tuning.group, writer })
    }

    fn text_writer(tuning: Option<&UlogdTuning>) -> Option<Box<dyn RowWriter<LogRecords>>> {
        Some(super::ulogd::text_writer(tuning))
    }
}

impl Shipped for CapturedPackets {
    fn time_ns(row: &CapturedPacket<'_>) -> u64 {
        row.time_ns
    }

    fn msgid(row: &CapturedPacket<'_>) -> &'static str {
        row.proto_name()
    }

    fn own_writer(
        format: Format,
        _: Option<&UlogdTuning>,
        notes: Option<NoteFields>,
    ) -> Option<Box<dyn RowWriter<CapturedPackets>>> {
        match format {
            Format::Pcapng => {
                let notes = notes.map(ConnectionNotes::new);
                Some(Box::new(NotedPackets { pcapng: CapturedPcapNg::new(), notes }))
            }
            Format::Pcap => Some(Box::new(CookedPcap::new())),
            _ => None,
        }
    }
}

/// A number for a rule, from its namespace, group and prefix. It is the same in every run, because messages may wait
/// on disk. Users who can write rules in their own namespace can choose prefixes that collide with the number of
/// another rule, so with `--all-netns` shares do not protect against them.
#[inline]
fn rule_class(netns_id: u64, group: u16, prefix: &[u8]) -> u16 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(ODD).rotate_left(29);
    let chunks = prefix.chunks_exact(8);
    let rest = match (prefix.last_chunk(), prefix.len() % 8) {
        (_, 0) => 0,
        // Reads the rest in one load if the prefix has at least eight bytes.
        (Some(last), more) => u64::from_be_bytes(*last) & ((1 << (8 * more)) - 1),
        _ => prefix.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    let sum = chunks
        .filter_map(|chunk| chunk.first_chunk())
        .fold(mix(mix(ODD, netns_id), group.into()), |sum, chunk| mix(sum, u64::from_le_bytes(*chunk)));
    let sum = mix(sum, rest ^ (prefix.len() as u64) << 56);
    (sum >> 48) as u16 ^ sum as u16
}

/// True for formats in which a row can state that it stands for others. ulogd2's formats and packet files cannot,
/// because they must match the bytes of other programs.
pub fn has_words(format: Format) -> bool {
    match format {
        Format::Json | Format::Syslog | Format::Syslog5424 | Format::Syslog3164 | Format::Logemu => true,
        Format::ClickHouse | Format::Otlp | Format::Postgres => true,
        #[cfg(feature = "sqlite")]
        Format::Sqlite => true,
        _ => false,
    }
}

/// The writer of the target's format for rows of `table`, which are `T`'s, with these columns; the error lists the
/// available formats. `comment` names the columns for packet comments in pcapng.
pub(crate) fn writer<T: Shipped>(
    table: &str,
    target: &Target,
    tuning: Option<&UlogdTuning>,
    columns: &Columns,
    comment: Option<&str>,
) -> Result<Box<dyn RowWriter<T>>, String> {
    let common = || match target.format {
        Format::Json => Some(Box::new(JsonRows::new(columns)) as Box<dyn RowWriter<T>>),
        Format::Syslog | Format::Syslog5424 | Format::Syslog3164 => {
            Some(super::syslog::writer(table, target, tuning, columns))
        }
        #[cfg(feature = "sqlite")]
        Format::Sqlite => Some(super::database::writer(table, target, columns)),
        Format::ClickHouse | Format::Otlp | Format::Postgres => Some(super::database::writer(table, target, columns)),
        _ => None,
    };
    let notes = comment.map(|fields| NoteFields::of(columns, fields));
    let writer = T::own_writer(target.format, tuning, notes).or_else(common);
    let writer = writer.map(|writer| match target.format {
        // LOGEMU shows no cells.
        Format::Logemu => CachingWriter::wrap(writer, &Columns(Vec::new())),
        Format::Json => CachingWriter::wrap(writer, columns),
        _ => writer,
    });
    let writer = writer.map(|writer| match tuning {
        Some(tuning) => T::chosen(writer, tuning),
        None => writer,
    });
    writer.ok_or_else(|| {
        let word = target.format.word();
        format!(
            "{word} does not support the table {table}: json, syslog, syslog-rfc3164 and databases support all \
            tables"
        )
    })
}

impl<T: Shipped> RowWriter<T> for JsonRows {
    fn write(&mut self, _: &T::Row<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>, out: &mut Vec<u8>) {
        self.put(cells.all_cells(), out);
    }
}

impl RowWriter<LogRecords> for Pcap {
    fn file_header(&mut self) -> Vec<u8> {
        self.header()
    }

    #[inline]
    fn write(&mut self, row: &LogRecord<'_>, _: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        Pcap::write(self, row, lookups, out);
    }
}

/// Log records of IP packets as pcap, which has one link type: that of IP.
struct IpRecords(Pcap);

impl RowWriter<LogRecords> for IpRecords {
    fn chooses(&self) -> bool {
        true
    }

    fn takes(&self, row: &LogRecord<'_>) -> bool {
        Pcap::is_for(row)
    }

    fn lacks_place(&self) -> Option<&'static str> {
        Some("they are not IP (but ARP, for example), and pcap has a single link type: ship them as pcapng")
    }

    fn file_header(&mut self) -> Vec<u8> {
        self.0.header()
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.0.write(row, lookups, out);
    }

    fn write_rows(&mut self, read: &mut ReadRows<'_, LogRecords>, to: &mut PendingBatch) -> Option<u64> {
        let mut rows = 0;
        read(&mut |row| {
            if Pcap::is_for(row) {
                self.0.write(row, &Lookups::empty(), to.batch.bytes_mut());
                to.end_message(LogRecords::class(row));
            } else {
                to.left_out += 1;
            }
            rows += 1;
            Next::More
        });
        Some(rows)
    }
}

/// Writes log records as pcapng. Each batch is a section, so that it is readable in any file where it ends up.
struct NotedRecords {
    pcapng: PcapNg,
    notes: Option<NoteFields>,
}

impl RowWriter<LogRecords> for NotedRecords {
    fn begin_batch(&mut self) {
        self.pcapng.begin_section();
    }

    fn write(&mut self, row: &LogRecord<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        let fields = self.notes.as_mut().map(|notes| notes.fill(cells.all_cells())).unwrap_or_default();
        self.pcapng.write(row, &fields, lookups, out);
    }
}

/// Writes captured packets as pcapng, with a section per batch.
struct NotedPackets {
    pcapng: CapturedPcapNg,
    notes: Option<ConnectionNotes>,
}

impl RowWriter<CapturedPackets> for NotedPackets {
    fn begin_batch(&mut self) {
        self.pcapng.begin_section();
        self.notes.iter_mut().for_each(ConnectionNotes::begin_file);
    }

    fn write(&mut self, row: &CapturedPacket<'_>, cells: &mut dyn RowCells, _: &Lookups<'_>, out: &mut Vec<u8>) {
        let fields = self.notes.as_mut().map(|notes| notes.of(row, cells.all_cells())).unwrap_or_default();
        self.pcapng.write_noted(&row.to_frame(), PacketNotes { text: &[], fields: &fields }, out);
    }
}

impl RowWriter<CapturedPackets> for CookedPcap {
    fn file_header(&mut self) -> Vec<u8> {
        CookedPcap::header()
    }

    fn write(&mut self, row: &CapturedPacket<'_>, _: &mut dyn RowCells, _: &Lookups<'_>, out: &mut Vec<u8>) {
        CookedPcap::write(self, row, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Spools of earlier versions contain these numbers.
        #[test]
        fn classes_are_the_same_in_every_version(
            netns_id: u64, group: u16, prefix in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            let whole = prefix.len() / 8 * 8;
            let mut sum = mix(mix(0x9e37_79b9_7f4a_7c15, netns_id), group.into());
            for word in prefix[..whole].chunks(8) {
                sum = mix(sum, word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
            }
            let rest = prefix[whole..].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            sum = mix(sum, rest ^ (prefix.len() as u64) << 56);
            prop_assert_eq!(rule_class(netns_id, group, &prefix), (sum >> 48) as u16 ^ sum as u16);
        }
    }
}
