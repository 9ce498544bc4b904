//! Which writer makes messages of which table's rows.

use super::row_writer::{RowWriter, Shipped};
use super::tuning::UlogdTuning;
use super::ulogd::OfGroup;
use export::{Format, Target};
use record::rows::{FlowEvent, FlowEvents, LogRecord, LogRecords, NatEvent, NatEvents, SocketEvent, SocketEvents};
use record::{Columns, LookupId, Lookups, Table, Value};
use sinks::JsonRows;
use sinks::packets::{Pcap, PcapNg};

impl Shipped for SocketEvents {
    fn time_ns(row: &SocketEvent) -> u64 {
        row.time_ns
    }

    fn msgid(row: &SocketEvent) -> &'static str {
        row.kind.name()
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
}

impl Shipped for LogRecords {
    const LOOKUPS: &'static [LookupId] = &[LookupId::Ifaces];

    fn time_ns(row: &LogRecord<'_>) -> u64 {
        row.time_ns
    }

    fn msgid(row: &LogRecord<'_>) -> &'static str {
        row.hook_name()
    }

    fn own_writer(format: Format, tuning: Option<&UlogdTuning>) -> Option<Box<dyn RowWriter<LogRecords>>> {
        match format {
            Format::Pcap => Some(Box::new(Pcap::new())),
            Format::Pcapng => Some(Box::new(PcapNg::new())),
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

/// The writer of the target's format for rows of `T` with these columns; the error says which formats there are.
pub(crate) fn writer<T: Shipped>(
    target: &Target,
    tuning: Option<&UlogdTuning>,
    columns: &Columns,
) -> Result<Box<dyn RowWriter<T>>, String> {
    let common = || match target.format {
        Format::Json => Some(Box::new(JsonRows::new(columns)) as Box<dyn RowWriter<T>>),
        Format::Syslog | Format::Syslog3164 => Some(super::syslog::writer(target, tuning, columns)),
        #[cfg(feature = "sqlite")]
        Format::Sqlite => Some(super::sqlite::writer(columns)),
        _ => None,
    };
    let writer = T::own_writer(target.format, tuning).or_else(common);
    let writer = writer.map(|writer| match tuning {
        Some(tuning) => T::chosen(writer, tuning),
        None => writer,
    });
    writer.ok_or_else(|| {
        let (table, word) = (T::NAME, target.format.word());
        format!("{word} is no format for the table {table}: json, syslog and syslog-rfc3164 are for all")
    })
}

impl<T: Table> RowWriter<T> for JsonRows {
    fn wants_cells(&self) -> bool {
        true
    }

    fn write(&mut self, _: &T::Row<'_>, cells: &[Value<'_>], _: &Lookups<'_>, out: &mut Vec<u8>) {
        self.put(cells, out);
    }
}

impl RowWriter<LogRecords> for Pcap {
    fn file_header(&mut self) -> Vec<u8> {
        self.header()
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &[Value<'_>], lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        Pcap::write(self, row, lookups, out);
    }
}

/// Each batch is a section of its own, so that it can be read whichever file it comes to lie in.
impl RowWriter<LogRecords> for PcapNg {
    fn begin_batch(&mut self) {
        self.begin_section();
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &[Value<'_>], lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        PcapNg::write(self, row, lookups, out);
    }
}
