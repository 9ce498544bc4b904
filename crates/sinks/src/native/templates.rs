//! Templates: the text that similar rows share is kept, and only the parts that vary are formatted for each row.
//!
//! The code that writes a whole row also makes a template, so both write the same bytes.

use record::text::{Cursor, Line};
use record::{Columns, Likeness, RowCells, Value, Varying};

/// Number of templates that are kept.
///
/// Bound: texts that log records share. Beyond: further records are rendered in full, which takes up to twice as long.
/// By: any sender of packets with new headers.
const SLOTS: usize = 64;
/// A template is replaced after this many rows that it did not fit, so alternating rows do not evict it.
const MISSES_MAX: u8 = 8;
/// Longest text of a likeness that is compared.
const TEXT_MAX: usize = 128;
/// Bytes of a short text, which is written with one store: enough for most columns' names.
const CHUNK: usize = 32;
/// Bytes of a longer text that are written with one store, and most bytes between two checks for room; the same number
/// follows the last text.
const RUN: usize = 4 * CHUNK;

/// A writer of single cells with their names in one format.
pub(crate) trait CellPen {
    /// Appends name and cell, and the separator from the cells before; nothing, if the format omits the cell. `line`
    /// has room for some pieces; long ones go to `out` after it.
    fn put_cell(&mut self, column: usize, cell: &Value<'_>, line: &mut Cursor<'_>, out: &mut Vec<u8>);

    /// Returns the text that [`CellPen::put_cell`] appends around a number or an address that is not the first cell.
    /// `None` for a cell that it writes differently.
    fn around(&self, column: usize, cell: &Value<'_>) -> Option<Around<'_>> {
        let _ = (column, cell);
        None
    }

    /// True if the column is never written.
    fn leaves_out(&self, column: usize) -> bool {
        let _ = column;
        false
    }

    /// True if the column is written, and in another form if no other column comes before it.
    fn may_be_first(&self, column: usize) -> bool {
        let _ = column;
        false
    }

    /// Reports that a non-empty shared text was appended.
    fn go_on(&mut self) {}
}

/// A cell's form, with the text before it and the byte after it.
pub(crate) struct Around<'t> {
    pub(crate) form: CellForm,
    pub(crate) before: [&'t [u8]; 2],
    pub(crate) behind: Option<u8>,
}

/// Templates of rows with certain columns.
pub(crate) struct Templates {
    slots: Vec<Template>,
    /// How the cells of each column vary.
    varying: Vec<Varies>,
}

/// How a column's cells vary, and the column that [`Varying::OnlyWith`] names, if it exists.
struct Varies {
    how: Varying,
    with: Option<usize>,
}

impl Varies {
    /// True if all rows with the likeness of these cells have the same `cell` in this column.
    fn is_shared(&self, cell: &Value<'_>, cells: &dyn RowCells) -> bool {
        match self.how {
            Varying::Never => true,
            Varying::InValue => cell.is_null(),
            Varying::OnlyWith(_) => self.with.is_some_and(|with| cells.cell(with).is_null()),
            Varying::Freely => false,
        }
    }
}

#[derive(Default)]
struct Template {
    numbers: [u64; 4],
    text: Vec<u8>,
    /// Number of cells in a row; a row that stands for others has more.
    cells: usize,
    is_made: bool,
    /// False if its rows are better written without it.
    is_usable: bool,
    misses: u8,
    /// The shared text, and [`RUN`] more bytes.
    shared: Vec<u8>,
    pieces: Vec<Piece>,
}

/// A part of the shared text, and the column whose cell follows.
struct Piece {
    begin: usize,
    bytes: usize,
    /// `None` after the last text.
    column: Option<usize>,
    /// The surroundings of a cell with one form: the number of bytes of shared text, and a byte after the cell.
    around: Option<(CellForm, usize, Option<u8>)>,
}

/// Forms of cells that this module writes itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellForm {
    /// A decimal number.
    Number,
    /// A hexadecimal number.
    Hex,
    Addr,
}

impl Templates {
    /// Starts without templates. `varying` returns how a column varies, by its name.
    pub(crate) fn new(columns: &Columns, varying: fn(&str) -> Varying) -> Templates {
        let number_of = |name: &str| columns.0.iter().position(|column| &*column.name == name);
        let varies = |how| match how {
            Varying::OnlyWith(name) => Varies { how, with: number_of(name) },
            _ => Varies { how, with: None },
        };
        let varying = columns.0.iter().map(|column| varies(varying(&column.name))).collect();
        Templates { slots: (0..SLOTS).map(|_| Template::default()).collect(), varying }
    }

    /// Appends all cells with the template of their likeness. Returns false, and appends nothing, without such a
    /// template.
    #[inline]
    pub(crate) fn put(
        &mut self,
        likeness: &Likeness<'_>,
        cells: &dyn RowCells,
        pen: &mut impl CellPen,
        line: &mut Line,
        out: &mut Vec<u8>,
    ) -> bool {
        let varying = &self.varying;
        let Some(template) = self.slots.get_mut(slot_of(likeness)) else { return false };
        if !template.is_of(likeness, cells.count()) {
            if template.is_made && template.misses < MISSES_MAX {
                template.misses += 1;
                return false;
            }
            // The text in the line belongs before the cells.
            line.drain(out);
            template.make(likeness, varying, cells, pen, line);
        }
        if !template.is_usable {
            return false;
        }
        template.misses = 0;
        template.put(cells, pen, line, out);
        true
    }
}

#[inline]
fn slot_of(likeness: &Likeness<'_>) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let text = likeness.text;
    let byte = |at: usize| u64::from(text.get(at).copied().unwrap_or(0));
    let of_text = (text.len() as u64) << 16 | byte(text.len() / 2) << 8 | byte(0);
    let mix = |sum: u64, number: u64| (sum ^ number).wrapping_mul(ODD).rotate_left(29);
    // The last number changes every second.
    let sum = likeness.numbers.iter().take(3).fold(of_text, |sum, number| mix(sum, *number));
    (mix(sum, likeness.numbers[3] & 0xffff) >> 40) as usize % SLOTS
}

impl Template {
    #[inline]
    fn is_of(&self, likeness: &Likeness<'_>, cells: usize) -> bool {
        self.is_made && self.numbers == likeness.numbers && self.cells == cells && self.text == likeness.text
    }

    #[inline(never)]
    fn make(
        &mut self,
        likeness: &Likeness<'_>,
        varying: &[Varies],
        cells: &dyn RowCells,
        pen: &mut impl CellPen,
        line: &mut Line,
    ) {
        (self.numbers, self.cells) = (likeness.numbers, cells.count());
        self.text.clear();
        self.text.extend_from_slice(likeness.text);
        self.is_made = true;
        self.is_usable = likeness.text.len() <= TEXT_MAX;
        self.shared.clear();
        self.pieces.clear();
        let mut begin = 0;
        for (column, varying) in varying.iter().enumerate().take(cells.count()) {
            let cell = cells.cell(column);
            if pen.leaves_out(column) {
                continue;
            }
            if varying.is_shared(&cell, cells) {
                let mut cursor = Cursor::new(line);
                pen.put_cell(column, &cell, &mut cursor, &mut self.shared);
                cursor.done();
                line.drain(&mut self.shared);
                continue;
            }
            // The first cell must be known beforehand.
            self.is_usable &= !self.shared.is_empty() || !pen.may_be_first(column);
            let bytes = self.shared.len() - begin;
            let around = pen.around(column, &cell).map(|Around { form, before, behind }| {
                let begin = self.shared.len();
                before.iter().for_each(|part| self.shared.extend_from_slice(part));
                (form, self.shared.len() - begin, behind)
            });
            self.pieces.push(Piece { begin, bytes, column: Some(column), around });
            begin = self.shared.len();
        }
        self.pieces.push(Piece { begin, bytes: self.shared.len() - begin, column: None, around: None });
        self.shared.extend_from_slice(&[0; RUN]);
    }

    #[inline]
    fn put(&self, cells: &dyn RowCells, pen: &mut impl CellPen, line: &mut Line, out: &mut Vec<u8>) {
        if self.shared.len() > RUN {
            pen.go_on();
        }
        let mut cursor = Cursor::new(line);
        for piece in &self.pieces {
            cursor.make_room(out);
            let Some(column) = piece.column else {
                self.put_shared(piece.begin, piece.bytes, &mut cursor, out);
                continue;
            };
            let (cell, bytes) = (cells.cell(column), piece.bytes);
            match (cell, piece.around) {
                (Value::U64(n), Some((CellForm::Number, before, behind))) => {
                    self.put_shared(piece.begin, bytes + before, &mut cursor, out);
                    cursor.decimal(n);
                    behind.into_iter().for_each(|byte| cursor.byte(byte));
                }
                (Value::U64(n), Some((CellForm::Hex, before, behind))) => {
                    self.put_shared(piece.begin, bytes + before, &mut cursor, out);
                    cursor.hex(n);
                    behind.into_iter().for_each(|byte| cursor.byte(byte));
                }
                (Value::Addr(addr), Some((CellForm::Addr, before, behind))) => {
                    self.put_shared(piece.begin, bytes + before, &mut cursor, out);
                    cursor.addr(addr);
                    behind.into_iter().for_each(|byte| cursor.byte(byte));
                }
                _ => {
                    self.put_shared(piece.begin, bytes, &mut cursor, out);
                    pen.put_cell(column, &cell, &mut cursor, out);
                }
            }
        }
        cursor.done();
    }

    /// Writes whole stores; the end of the last one is overwritten by the following text. There is room for one of
    /// them, and for a cell after the text.
    #[inline(always)]
    fn put_shared(&self, begin: usize, bytes: usize, line: &mut Cursor<'_>, out: &mut Vec<u8>) {
        if bytes <= CHUNK {
            return self.store::<CHUNK>(begin, bytes, line);
        }
        let (mut at, mut rest) = (begin, bytes);
        while rest > 0 {
            self.store::<RUN>(at, rest, line);
            (at, rest) = (at + RUN, rest.saturating_sub(RUN));
            line.make_room(out);
        }
    }

    #[inline(always)]
    fn store<const N: usize>(&self, at: usize, bytes: usize, line: &mut Cursor<'_>) {
        if let Some(chunk) = self.shared.get(at..).and_then(|text| text.first_chunk::<N>()) {
            line.chunk(chunk, bytes);
        }
    }
}
