//! Which writer makes messages of which table's rows.

use export::Format;
use record::rows::{FlowEvents, LogRecord, LogRecords, NatEvents, SocketEvents};
use record::{Columns, LookupId, Lookups, Table, Value};
use sinks::JsonRows;
use sinks::packets::{Pcap, PcapNg};

/// Makes messages of rows.
pub(crate) trait RowWriter<T: Table> {
    /// True if it writes the planned cells.
    fn wants_cells(&self) -> bool {
        false
    }

    /// What a new file begins with.
    fn file_header(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// What stands before the first message of a batch, and goes with it.
    fn begin_batch(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Appends the message of one row.
    fn write(&mut self, row: &T::Row<'_>, cells: &[Value<'_>], lookups: &Lookups<'_>, out: &mut Vec<u8>);
}

/// A table whose rows can be shipped.
pub(crate) trait Shipped: Table {
    /// What its own formats look up, whichever columns are asked for.
    const LOOKUPS: &'static [LookupId] = &[];

    /// The writer of a format that this table has and others have not.
    fn own_writer(format: Format) -> Option<Box<dyn RowWriter<Self>>>
    where
        Self: Sized,
    {
        let _ = format;
        None
    }
}

impl Shipped for SocketEvents {}
impl Shipped for FlowEvents {}
impl Shipped for NatEvents {}

impl Shipped for LogRecords {
    const LOOKUPS: &'static [LookupId] = &[LookupId::Ifaces];

    fn own_writer(format: Format) -> Option<Box<dyn RowWriter<LogRecords>>> {
        match format {
            Format::Pcap => Some(Box::new(Pcap::new())),
            Format::Pcapng => Some(Box::new(PcapNg::new())),
            _ => None,
        }
    }
}

/// The writer of `format` for rows of `T` with these columns; the error says which formats there are.
pub(crate) fn writer<T: Shipped>(format: Format, columns: &Columns) -> Result<Box<dyn RowWriter<T>>, String> {
    let own = T::own_writer(format);
    let common = || match format {
        Format::Json => Some(Box::new(JsonRows::new(columns)) as Box<dyn RowWriter<T>>),
        _ => None,
    };
    own.or_else(common).ok_or_else(|| {
        let table = T::NAME;
        format!("{} is no format for the table {table}: json is for all", format.word())
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
    fn begin_batch(&mut self, _: &mut Vec<u8>) {
        self.begin_section();
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &[Value<'_>], lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        PcapNg::write(self, row, lookups, out);
    }
}
