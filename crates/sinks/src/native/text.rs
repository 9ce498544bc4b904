//! Text for pipes: a header line, then cells separated by tabs. Scripts rely on this format.

use super::cell::Form;
use super::{FormatOptions, round};
use crate::Out;
use crate::out::cut_hole;
use record::text::Line;
use record::{Accounting, Columns, Hole, Next, Round, Sink, SinkError, Value};
use std::io::Write;
use std::ops::Range;

/// Writes tab-separated text: nothing is padded or shortened, null is `-`, and everything from outside is escaped.
pub struct Text<W> {
    out: Out<W>,
    options: FormatOptions,
    forms: Vec<Form>,
    line: Line,
}

impl<W: Write> Text<W> {
    /// Writes text to `out`.
    pub fn new(out: Out<W>, options: FormatOptions) -> Text<W> {
        Text { out, options, forms: Vec::new(), line: Line::new() }
    }

    /// Returns the output, for text after the table.
    pub fn into_out(self) -> Out<W> {
        self.out
    }
}

impl<W: Write> Sink for Text<W> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.forms = Form::from_columns(columns, |name| self.options.null_word(name));
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
        put_row(self.out.buf(), &mut self.line, &self.forms, cells, None);
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
        let gap = put_row(rendered, &mut self.line, &self.forms, cells, hole);
        Ok(cut_hole(rendered, start, gap))
    }

    #[inline]
    fn write_rendered(&mut self, rendered: &[u8], hole: Option<Hole<'_>>) -> Result<Next, SinkError> {
        let forms = &self.forms;
        self.out.put_line(rendered, hole, |buf, hole| {
            if let Some(form) = forms.get(hole.column) {
                form.put(buf, hole.value);
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

/// The hot loop: appends one row with its separators. Needs no allocation once `buf` has its size. Returns the
/// position in `buf` of the cell of column `hole`.
#[inline(always)]
fn put_row(
    buf: &mut Vec<u8>,
    line: &mut Line,
    forms: &[Form],
    cells: &[Value<'_>],
    hole: Option<usize>,
) -> Option<Range<usize>> {
    let mut gap = None;
    for (i, (form, &cell)) in forms.iter().zip(cells).enumerate() {
        if i > 0 {
            line.byte(b'\t');
        }
        if hole != Some(i) {
            form.put_fast(line, buf, cell);
            continue;
        }
        line.drain(buf);
        let start = buf.len();
        form.put(buf, cell);
        gap = Some(start..buf.len());
    }
    line.byte(b'\n');
    line.drain(buf);
    gap
}
