//! The cache: a slot for each shape, and the messages of rows.

use super::slot::{DueSlot, ShapeSlot, SlotAnswer};
use crate::row_writer::Shipped;
use record::{
    Addr, Columns, MESSAGE, NUMBERS, NumberKind, RowCells, RowShape, ShapeColumn, Table, Value, v6_at, v6_index,
};
use sinks::syslog::SEQUENCE_ID_MAX;

/// Number of cached shapes.
///
/// Bound: shapes of messages that log records share. Beyond: further records are rendered in full, which takes two to
/// three times as long. By: any sender of packets with new headers.
const SLOTS: usize = 64;

/// Writes the message for a row with these cells. The number is the sequence number of the message.
pub(crate) type Write<'w, T> = dyn FnMut(&<T as Table>::Row<'_>, &mut dyn RowCells, u64, &mut Vec<u8>) + 'w;

/// The shared texts of messages, by the shape of their rows.
pub(crate) struct TextCache {
    slots: Box<[ShapeSlot]>,
    /// The index of the number that each column shows; `None` for a column whose value is shared.
    columns: Vec<Option<usize>>,
}

impl TextCache {
    /// Makes a cache for rows with these columns; `None` if a column shows values that the shape and its numbers do
    /// not determine.
    pub(crate) fn new<T: Shipped>(columns: &Columns) -> Option<TextCache> {
        let numbers: Option<_> = columns.0.iter().map(|column| find_number::<T>(&column.name)).collect();
        Some(TextCache { slots: (0..SLOTS).map(|_| ShapeSlot::default()).collect(), columns: numbers? })
    }

    /// Appends the message of a row; calls `write` if its text is not cached. `number` is at most
    /// [`SEQUENCE_ID_MAX`].
    #[inline]
    pub(crate) fn put<T: Shipped>(
        &mut self,
        row: &T::Row<'_>,
        cells: &mut dyn RowCells,
        number: u64,
        out: &mut Vec<u8>,
        write: &mut Write<'_, T>,
    ) {
        let Some(mut shape) = T::shape(row) else { return write(row, cells, number, out) };
        shape.numbers[MESSAGE] = number as u32;
        let Some(slot) = self.slots.get_mut(slot_index(&shape)) else { return write(row, cells, number, out) };
        match slot.find(&shape) {
            SlotAnswer::Ready(text) => return text.put(&shape.numbers, out),
            SlotAnswer::Due(due) => build::<T>(due, &self.columns, shape.second, row, cells.all_cells(), write),
            SlotAnswer::NotReady => return write(row, cells, number, out),
        }
        let begin = out.len();
        write(row, cells, number, out);
        slot.check(&shape.numbers, out.get(begin..).unwrap_or_default());
    }
}

/// The number that a column shows, `Some(None)` for a column whose value is shared, `None` for any other.
fn find_number<T: Shipped>(column: &str) -> Option<Option<usize>> {
    match T::shape_column(column) {
        ShapeColumn::Shared => Some(None),
        ShapeColumn::Number(number) => Some(Some(number)),
        // Null except in rows that stand for others, which `RowWriter::write_noted` writes.
        ShapeColumn::Other if matches!(column, "folded" | "folded_since" | "limited") => Some(None),
        ShapeColumn::Other => None,
    }
}

#[inline]
fn slot_index(shape: &RowShape<'_>) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, number: u64| (sum ^ number).wrapping_mul(ODD).rotate_left(29);
    let byte = |text: &[u8], at: usize| u64::from(text.get(at).copied().unwrap_or(0));
    let [first, second] = shape.texts;
    let texts = (first.len() as u64) << 24 | byte(first, first.len() / 2) << 16 | byte(first, 0) << 8;
    let sum = shape.shared.iter().fold(texts | byte(second, 11), |sum, number| mix(sum, *number));
    (sum >> 40) as usize % SLOTS
}

/// Builds the text of a slot with messages of this row, which `write` renders with other numbers.
#[cold]
fn build<T: Shipped>(
    due: DueSlot<'_>,
    columns: &[Option<usize>],
    second: u64,
    row: &T::Row<'_>,
    cells: &[Value<'_>],
    write: &mut Write<'_, T>,
) {
    let mut packet = Vec::new();
    due.build(number_kind::<T>, &mut |numbers, out| {
        out.clear();
        T::varied(row, numbers, &mut packet, &mut |row| {
            let number = |column: usize| columns.get(column).copied().flatten();
            let replaced = |(column, cell): (usize, &_)| match number(column) {
                Some(number) => replace_number(*cell, number, numbers, second),
                None => *cell,
            };
            let cells = cells.iter().enumerate().map(replaced);
            let cells: Vec<Value<'_>> = cells.collect();
            write(row, &mut &cells[..], numbers[MESSAGE].into(), out);
        });
    });
}

fn number_kind<T: Shipped>(number: usize) -> NumberKind {
    match number {
        MESSAGE => NumberKind::Decimal { smallest: 0, largest: SEQUENCE_ID_MAX as u32 },
        _ => T::number_kind(number),
    }
}

/// A cell with its number replaced. Null stays null.
fn replace_number<'v>(cell: Value<'v>, number: usize, numbers: &[u32; NUMBERS], second: u64) -> Value<'v> {
    let n = numbers.get(number).copied().unwrap_or(0);
    match cell {
        Value::U64(_) => Value::U64(n.into()),
        Value::Addr(Addr::V4(_)) => Value::Addr(Addr::V4(n.to_be_bytes())),
        Value::Addr(Addr::V6(_)) => Value::Addr(Addr::V6(v6_at(numbers, v6_index(number)))),
        Value::Time(_) => Value::Time(second * 1_000_000_000 + u64::from(n)),
        _ => cell,
    }
}
