//! Tables whose rows can be shipped, and the writers of their messages.

use super::gate::{RepeatRequest, RowGate};
use super::pending_batch::PendingBatch;
use super::tuning::UlogdTuning;
use engine::ReadRows;
use export::Format;
use packet_files::notes::NoteFields;
use record::{LookupId, Lookups, NUMBERS, NumberKind, RowCells, RowShape, ShapeColumn, Table};

/// Writes rows as messages.
pub trait RowWriter<T: Table> {
    /// True if the writer skips some rows.
    fn chooses(&self) -> bool {
        false
    }

    /// False for a row that the writer skips.
    fn takes(&self, row: &T::Row<'_>) -> bool {
        let _ = row;
        true
    }

    /// True if a row that the writer skips is missed: the user asked for it, but the format has no place for it.
    fn misses(&self, row: &T::Row<'_>) -> bool {
        let _ = row;
        true
    }

    /// Why the format has no place for rows that are missed, for people; `None` if no row is.
    fn lacks_place(&self) -> Option<&'static str> {
        None
    }

    /// True if each message is one line of UTF-8 without control or deceptive characters.
    fn writes_lines(&self) -> bool {
        false
    }

    /// The first bytes of a new file.
    fn file_header(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Called before the first message of a batch, which may end up at any position in a file.
    fn begin_batch(&mut self) {}

    /// Appends the message of one row.
    fn write(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>);

    /// Appends the message of a row that stands for others. Human-readable text ends with `words`; other formats use
    /// the cells.
    fn write_noted(
        &mut self,
        row: &T::Row<'_>,
        cells: &mut dyn RowCells,
        lookups: &Lookups<'_>,
        words: &[u8],
        out: &mut Vec<u8>,
    ) {
        let _ = words;
        self.write(row, cells, lookups, out);
    }

    /// Appends the messages of all rows that `read`, called once, hands out, and returns how many they were; `None`
    /// without a call, where messages need more than rows. A writer that needs a few ns for a message would otherwise
    /// spend most of its time on calls. A writer that chooses rows counts those that it does not take itself.
    fn write_rows(&mut self, read: &mut ReadRows<'_, T>, to: &mut PendingBatch) -> Option<u64> {
        let _ = (read, to);
        None
    }
}

/// A table whose rows can be shipped.
pub trait Shipped: Table {
    /// Lookups that its own formats use, regardless of the selected columns.
    const LOOKUPS: &'static [LookupId] = &[];

    /// The time of the event, in ns since 1970.
    fn time_ns(row: &Self::Row<'_>) -> u64;

    /// The kind of row, which is the MSGID of its syslog message.
    fn msgid(row: &Self::Row<'_>) -> &'static str;

    /// The values that it shares with rows that differ only in numbers; `None` for an uncommon row.
    fn shape<'r>(row: &'r Self::Row<'_>) -> Option<RowShape<'r>> {
        let _ = row;
        None
    }

    /// The content of a column in rows of one shape.
    fn shape_column(column: &str) -> ShapeColumn {
        let _ = column;
        ShapeColumn::Other
    }

    /// The kind of a number of its shape.
    fn number_kind(number: usize) -> NumberKind {
        let _ = number;
        NumberKind::Decimal { smallest: 0, largest: 0 }
    }

    /// Hands out a copy of the row, which has a shape, with other numbers; `memory` is a buffer for its packet.
    fn varied(
        row: &Self::Row<'_>,
        numbers: &[u32; NUMBERS],
        memory: &mut Vec<u8>,
        then: &mut dyn FnMut(&Self::Row<'_>),
    ) {
        let _ = (numbers, memory);
        then(row);
    }

    /// The class within which rows share the room of a full queue (docs/adr/0020): for log records, the rule.
    fn class(row: &Self::Row<'_>) -> u16 {
        let _ = row;
        0
    }

    /// Makes the gate that folds and limits its rows; `None` if neither is requested or the table does not support it.
    fn gate(request: &RepeatRequest) -> Option<Box<dyn RowGate<Self>>>
    where
        Self: Sized,
    {
        let _ = request;
        None
    }

    /// The writer of its human-readable text; without one, syslog messages have the cells as `key=value`.
    fn text_writer(tuning: Option<&UlogdTuning>) -> Option<Box<dyn RowWriter<Self>>>
    where
        Self: Sized,
    {
        let _ = tuning;
        None
    }

    /// The writer of a format that only this table has. `notes` are the fields for packet comments.
    fn own_writer(
        format: Format,
        tuning: Option<&UlogdTuning>,
        notes: Option<NoteFields>,
    ) -> Option<Box<dyn RowWriter<Self>>>
    where
        Self: Sized,
    {
        let _ = (format, tuning, notes);
        None
    }

    /// Restricts the writer to the rows that the tuning selects.
    fn chosen(writer: Box<dyn RowWriter<Self>>, tuning: &UlogdTuning) -> Box<dyn RowWriter<Self>>
    where
        Self: Sized,
    {
        let _ = tuning;
        writer
    }
}
