//! Text for pipes: a header line, then cells between tabs. The contract that scripts rely on.

use super::cell::Form;
use super::{Options, round};
use crate::Out;
use record::text::Line;
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};
use std::io::Write;

/// Tab-separated text: nothing padded, nothing shortened, `-` for null, everything from outside escaped.
pub struct Text<W> {
    out: Out<W>,
    options: Options,
    forms: Vec<Form>,
    line: Line,
}

impl<W: Write> Text<W> {
    /// Text into `out`.
    pub fn new(out: Out<W>, options: Options) -> Text<W> {
        Text { out, options, forms: Vec::new(), line: Line::new() }
    }

    /// The output, for what comes after the table.
    pub fn into_out(self) -> Out<W> {
        self.out
    }
}

impl<W: Write> Sink for Text<W> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.forms = Form::of(columns, |name| self.options.null_word(name));
        let buf = self.out.buf();
        round::put_separator(buf, round, b"\n");
        if self.options.header {
            for (i, column) in columns.0.iter().enumerate() {
                if i > 0 {
                    buf.push(b'\t');
                }
                record::text::put_text(buf, column.name.as_bytes());
            }
            buf.push(b'\n');
        }
        Ok(())
    }

    #[inline]
    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        put_row(self.out.buf(), &mut self.line, &self.forms, cells);
        self.out.line_done()?;
        Ok(Next::More)
    }

    fn keeps(&self) -> bool {
        true
    }

    fn row_kept(&mut self, cells: &[Value<'_>], kept: &mut Vec<u8>) -> Result<Next, SinkError> {
        let start = self.out.buf().len();
        put_row(self.out.buf(), &mut self.line, &self.forms, cells);
        self.out.keep_line(start, kept)
    }

    #[inline]
    fn again(&mut self, kept: &[u8]) -> Result<Next, SinkError> {
        self.out.put_line(kept)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush()
    }

    fn end(&mut self, _totals: &Accounting) -> Result<(), SinkError> {
        self.out.flush()
    }
}

/// The hot loop: one row, its cells and their separators. No allocation once `buf` has its size.
fn put_row(buf: &mut Vec<u8>, line: &mut Line, forms: &[Form], cells: &[Value<'_>]) {
    for (i, (form, &cell)) in forms.iter().zip(cells).enumerate() {
        if i > 0 {
            line.byte(b'\t');
        }
        form.put_fast(line, buf, cell);
    }
    line.byte(b'\n');
    line.drain(buf);
}
