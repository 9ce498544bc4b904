//! The aligned table of a terminal.

use super::cell::Form;
use super::paint::{Palette, Tone};
use super::{FormatOptions, round};
use crate::Out;
use record::{Accounting, Column, Columns, Next, Round, Sink, SinkError, Value, text};
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// Rows that are held back to learn how wide the columns are.
const SAMPLE_ROWS: usize = 200;
/// Blanks between columns.
const GAP: usize = 2;

/// A table with aligned columns, headings in words and, if asked for, colour.
///
/// Widths come from the first 200 rows (or all, if there are fewer); a longer cell later pushes its line to the
/// right. Nothing is cut. Rows after the sample are written as they come. A flush ends the sample early.
pub struct TableWriter<W> {
    out: Out<W>,
    options: FormatOptions,
    palette: Palette,
    headings: Vec<Box<str>>,
    lanes: Vec<Lane>,
    /// Cells of the rows held back, formatted, behind one another.
    bytes: Vec<u8>,
    cuts: Vec<Cut>,
    rows_held: usize,
    sampling: bool,
}

/// One column on the screen.
struct Lane {
    form: Form,
    right: bool,
    width: usize,
}

/// One formatted cell: where it ends in the bytes, how wide it is on the screen.
#[derive(Clone, Copy)]
struct Cut {
    end: usize,
    width: usize,
    tone: Tone,
}

impl<W: Write> TableWriter<W> {
    /// A table into `out`.
    pub fn new(out: Out<W>, options: FormatOptions) -> TableWriter<W> {
        TableWriter {
            out,
            options,
            palette: Palette::new(options.color),
            headings: Vec::new(),
            lanes: Vec::new(),
            bytes: Vec::new(),
            cuts: Vec::new(),
            rows_held: 0,
            sampling: true,
        }
    }

    /// The output, for what comes after the table.
    pub fn into_out(self) -> Out<W> {
        self.out
    }

    fn hold(&mut self, cells: &[Value<'_>]) {
        for (lane, &cell) in self.lanes.iter_mut().zip(cells) {
            let start = self.bytes.len();
            lane.form.put(&mut self.bytes, cell);
            let width = width_of(self.bytes.get(start..).unwrap_or_default());
            if self.sampling {
                lane.width = lane.width.max(width);
            }
            self.cuts.push(Cut { end: self.bytes.len(), width, tone: Tone::of(cell) });
        }
        self.rows_held += 1;
    }

    /// Writes the heading, then the rows held back.
    fn end_sample(&mut self) -> Result<(), SinkError> {
        self.sampling = false;
        if self.options.header {
            let held = self.headings.iter().map(|h| (h.as_bytes(), width_of(h.as_bytes()), Tone::Heading));
            put_line(self.out.buf(), &self.lanes, &self.palette, held);
            self.out.line_done()?;
        }
        self.let_go()
    }

    fn let_go(&mut self) -> Result<(), SinkError> {
        let mut start = 0;
        for row in self.cuts.chunks(self.lanes.len().max(1)) {
            let cells = row.iter().map(|cut| {
                let text = self.bytes.get(start..cut.end).unwrap_or_default();
                start = cut.end;
                (text, cut.width, cut.tone)
            });
            put_line(self.out.buf(), &self.lanes, &self.palette, cells);
            self.out.line_done()?;
        }
        self.bytes.clear();
        self.cuts.clear();
        self.rows_held = 0;
        Ok(())
    }
}

impl<W: Write> Sink for TableWriter<W> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        round::put_separator(self.out.buf(), round, b"\n");
        self.headings = columns.0.iter().map(heading).collect();
        let forms = Form::of(columns, |name| self.options.null_word(name));
        self.lanes = (forms.into_iter().zip(&columns.0).zip(&self.headings))
            .map(|((form, column), heading)| Lane {
                form,
                right: column.kind.is_number(),
                width: if self.options.header { width_of(heading.as_bytes()) } else { 0 },
            })
            .collect();
        self.sampling = true;
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.hold(cells);
        if !self.sampling {
            self.let_go()?;
        } else if self.rows_held >= SAMPLE_ROWS {
            self.end_sample()?;
        }
        Ok(Next::More)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if self.sampling && self.rows_held == 0 {
            return Ok(());
        }
        if self.sampling {
            self.end_sample()?;
        }
        self.out.flush()
    }

    fn end(&mut self, _totals: &Accounting) -> Result<(), SinkError> {
        if self.sampling {
            self.end_sample()?;
        }
        self.out.flush()
    }
}

/// A field's name in words: `local addr`.
fn heading(column: &Column) -> Box<str> {
    let mut escaped = Vec::new();
    text::put_text(&mut escaped, column.name.as_bytes());
    String::from_utf8_lossy(&escaped).replace('_', " ").into()
}

/// Columns of the screen that escaped text takes.
fn width_of(escaped: &[u8]) -> usize {
    if escaped.is_ascii() {
        return escaped.len();
    }
    std::str::from_utf8(escaped).map_or(escaped.len(), UnicodeWidthStr::width)
}

fn put_line<'c>(
    out: &mut Vec<u8>,
    lanes: &[Lane],
    palette: &Palette,
    cells: impl Iterator<Item = (&'c [u8], usize, Tone)>,
) {
    let mut owed = 0;
    for (lane, (text, width, tone)) in lanes.iter().zip(cells) {
        let missing = lane.width.saturating_sub(width);
        // Blanks are owed until something follows them: no line ends in blanks.
        let (before, after) = if lane.right { (missing, 0) } else { (0, missing) };
        out.resize(out.len() + owed + before, b' ');
        palette.put(out, tone, text);
        owed = after + GAP;
    }
    out.push(b'\n');
}
