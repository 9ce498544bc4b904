//! Writes CSV: a header, then rows, with quotation marks around the fields that need them (RFC 4180). Lines end in LF,
//! as Unix tools expect.
//!
//! Text from outside that a spreadsheet would evaluate as a formula is prefixed with an apostrophe, see
//! [`is_formula`].

use super::cell::{Form, put_owners, put_words};
use super::{FormatOptions, round};
use crate::Out;
use crate::out::cut_hole;
use record::text::{self, TimestampWriter};
use record::{Accounting, Columns, Hole, Next, Round, Sink, SinkError, Value};
use std::io::Write;
use std::ops::Range;

const LINE_END: &[u8] = b"\n";

/// Writes CSV. Null is the empty field, the empty text is `""`. Text is escaped first, so no field contains a line
/// break.
pub struct Csv<W> {
    out: Out<W>,
    options: FormatOptions,
    forms: Vec<Form>,
    timestamps: TimestampWriter,
}

impl<W: Write> Csv<W> {
    /// Writes CSV to `out`.
    pub fn new(out: Out<W>, options: FormatOptions) -> Csv<W> {
        Csv { out, options, forms: Vec::new(), timestamps: TimestampWriter::new() }
    }

    /// Returns the output, for text after the table.
    pub fn into_out(self) -> Out<W> {
        self.out
    }
}

/// Appends one row to `buf`. Returns the place of the cell of column `hole`.
fn put_row(
    buf: &mut Vec<u8>,
    timestamps: &mut TimestampWriter,
    forms: &[Form],
    cells: &[Value<'_>],
    hole: Option<usize>,
) -> Option<Range<usize>> {
    let mut gap = None;
    for (i, (form, &cell)) in forms.iter().zip(cells).enumerate() {
        if i > 0 {
            buf.push(b',');
        }
        let start = buf.len();
        match cell {
            Value::Time(ns) => buf.extend_from_slice(timestamps.text(ns)),
            cell => put_cell(buf, *form, cell),
        }
        if hole == Some(i) {
            gap = Some(start..buf.len());
        }
    }
    buf.extend_from_slice(LINE_END);
    gap
}

impl<W: Write> Sink for Csv<W> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.forms = Form::from_columns(columns, |_| "");
        let buf = self.out.buf();
        round::put_separator(buf, round, LINE_END);
        if self.options.header {
            for (i, column) in columns.0.iter().enumerate() {
                if i > 0 {
                    buf.push(b',');
                }
                put_quoted(buf, |buf| text::put_text(buf, column.name.as_bytes()));
            }
            buf.extend_from_slice(LINE_END);
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        put_row(self.out.buf(), &mut self.timestamps, &self.forms, cells, None);
        self.out.line_done()?;
        Ok(Next::More)
    }

    fn can_reuse(&self) -> bool {
        true
    }

    fn render_row(
        &mut self,
        cells: &[Value<'_>],
        hole: Option<usize>,
        rendered: &mut Vec<u8>,
    ) -> Result<usize, SinkError> {
        let start = rendered.len();
        let gap = put_row(rendered, &mut self.timestamps, &self.forms, cells, hole);
        Ok(cut_hole(rendered, start, gap))
    }

    fn write_rendered(&mut self, rendered: &[u8], hole: Option<Hole<'_>>) -> Result<Next, SinkError> {
        let forms = &self.forms;
        self.out.put_line(rendered, hole, |buf, hole| {
            if let Some(form) = forms.get(hole.column) {
                put_cell(buf, *form, hole.value);
            }
        })
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush()
    }

    fn end(&mut self, _totals: &Accounting) -> Result<(), SinkError> {
        self.out.flush()
    }
}

fn put_cell(buf: &mut Vec<u8>, form: Form, cell: Value<'_>) {
    match cell {
        Value::Bytes(bytes) | Value::FirstOf(bytes, _) => put_outside(buf, |buf| text::put_text(buf, bytes)),
        Value::LinkAddr(_) => put_outside(buf, |buf| form.put(buf, cell)),
        Value::Owners(owners) => put_outside(buf, |buf| put_owners(buf, owners)),
        nested @ (Value::List(_) | Value::Object(_)) => put_outside(buf, |buf| form.put(buf, nested)),
        words @ (Value::Bits(..) | Value::Words(_)) => put_outside(buf, |buf| put_words(buf, words.words())),
        plain => form.put(buf, plain),
    }
}

/// True for the first byte of a text that gets an apostrophe in front. Spreadsheets evaluate a cell that begins with
/// `=`, `+`, `-`, `@`, tab or CR, quoted or not. A text that itself begins with an apostrophe gets another one, so
/// that removing one apostrophe always restores the text.
fn is_formula(first: u8) -> bool {
    matches!(first, b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r' | b'\'')
}

/// Appends text from outside that `put` writes, like [`put_quoted`], and never as a formula.
fn put_outside(buf: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    put_quoted(buf, |buf| {
        let start = buf.len();
        put(buf);
        if buf.get(start).is_some_and(|&first| is_formula(first)) {
            buf.insert(start, b'\'');
        }
    });
}

/// Appends the text that `put` writes, in quotation marks if it needs them.
fn put_quoted(buf: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = buf.len();
    put(buf);
    let field = buf.get(start..).unwrap_or_default();
    if !field.is_empty() && !field.iter().any(|b| matches!(b, b'"' | b',' | b'\r' | b'\n')) {
        return;
    }
    quote(buf, start);
}

/// Encloses the text from `start` on in quotation marks and doubles those inside, in place, starting at the end.
fn quote(buf: &mut Vec<u8>, start: usize) {
    let old_end = buf.len();
    let inside = buf.iter().skip(start).filter(|&&b| b == b'"').count();
    buf.resize(old_end + inside + 2, b'"');
    let mut to = buf.len() - 1;
    for from in (start..old_end).rev() {
        to -= 1;
        buf[to] = buf[from];
        if buf[from] == b'"' {
            to -= 1;
            buf[to] = b'"';
        }
    }
    buf[start] = b'"';
}
