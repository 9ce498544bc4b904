//! Tables whose rows can be shipped, and what makes messages of them.

use super::gate::{RepeatRequest, RowGate};
use super::pending_batch::PendingBatch;
use super::tuning::UlogdTuning;
use crate::packet_notes::NoteFields;
use engine::ReadRows;
use export::Format;
use record::{Likeness, LookupId, Lookups, NUMBERS, RowCells, RowShape, ShapeColumn, Table, Varying};

/// Makes messages of rows.
pub(crate) trait RowWriter<T: Table> {
    /// True if not every row is for this output.
    fn chooses(&self) -> bool {
        false
    }

    /// False for a row that is not for this output.
    fn takes(&self, row: &T::Row<'_>) -> bool {
        let _ = row;
        true
    }

    /// True if each message is one line of UTF-8 without control characters and such that deceive.
    fn writes_lines(&self) -> bool {
        false
    }

    /// What a new file begins with.
    fn file_header(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// The next message begins a batch, which may come to lie anywhere.
    fn begin_batch(&mut self) {}

    /// Appends the message of one row.
    fn write(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>);

    /// Appends the message of a row that stands for others. `words` say so at the end of a text for people; what else
    /// the writer writes has it among the cells.
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
    /// without a call, where messages need more than rows. A writer that
    /// needs a few ns for a message would otherwise spend most of its time on calls.
    fn write_rows(&mut self, read: &mut ReadRows<'_, T>, to: &mut PendingBatch) -> Option<u64> {
        let _ = (read, to);
        None
    }
}

/// A table whose rows can be shipped.
pub(crate) trait Shipped: Table {
    /// What its own formats look up, whichever columns are asked for.
    const LOOKUPS: &'static [LookupId] = &[];

    /// When it happened, in ns since 1970.
    fn time_ns(row: &Self::Row<'_>) -> u64;

    /// What kind of row it is: the MSGID of its syslog message.
    fn msgid(row: &Self::Row<'_>) -> &'static str;

    /// What it is alike in with other rows, for writers that keep the text of what does not vary; `None` if that is not
    /// worth a look.
    fn likeness<'r>(row: &'r Self::Row<'_>) -> Option<Likeness<'r>> {
        let _ = row;
        None
    }

    /// How the cells of a column vary in rows that are alike.
    fn varying(column: &str) -> Varying {
        let _ = column;
        Varying::Freely
    }

    /// What it shares with rows that differ from it in numbers only; `None` for a row that is not common.
    fn shape<'r>(row: &'r Self::Row<'_>) -> Option<RowShape<'r>> {
        let _ = row;
        None
    }

    /// What a column shows of rows of one shape.
    fn shape_column(column: &str) -> ShapeColumn {
        let _ = column;
        ShapeColumn::Other
    }

    /// True if a number of rows of one shape is an address.
    fn is_address(number: usize) -> bool {
        let _ = number;
        false
    }

    /// The largest value of a number.
    fn largest_number(number: usize) -> u32 {
        let _ = number;
        0
    }

    /// Hands out a row that has a shape with other numbers; `memory` is for its packet.
    fn varied(
        row: &Self::Row<'_>,
        numbers: &[u32; NUMBERS],
        memory: &mut Vec<u8>,
        then: &mut dyn FnMut(&Self::Row<'_>),
    ) {
        let _ = (numbers, memory);
        then(row);
    }

    /// Which rows share what a full queue has room for (docs/adr/0020): the rule, of log records.
    fn class(row: &Self::Row<'_>) -> u16 {
        let _ = row;
        0
    }

    /// What folds and limits its rows; `None` if nothing is asked for, or its rows do not come too often.
    fn gate(request: &RepeatRequest) -> Option<Box<dyn RowGate<Self>>>
    where
        Self: Sized,
    {
        let _ = request;
        None
    }

    /// The writer of its text for people; without one, syslog messages have their cells as `key=value`.
    fn text_writer(tuning: Option<&UlogdTuning>) -> Option<Box<dyn RowWriter<Self>>>
    where
        Self: Sized,
    {
        let _ = tuning;
        None
    }

    /// The writer of a format that this table has and others have not. `notes`: what is said of packets.
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

    /// The writer for the rows only that the tuning chooses.
    fn chosen(writer: Box<dyn RowWriter<Self>>, tuning: &UlogdTuning) -> Box<dyn RowWriter<Self>>
    where
        Self: Sized,
    {
        let _ = tuning;
        writer
    }
}
