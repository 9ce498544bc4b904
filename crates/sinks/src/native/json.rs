//! JSON: one object per line.

use super::FormatOptions;
use super::json_rows::JsonRows;
use super::value::{put_string, put_thousandths, put_word};
use crate::Out;
use crate::out::cut_hole;
use record::{Accounting, Columns, Hole, Next, Round, Sink, SinkError, Value, text};
use std::io::Write;

/// Writes JSON lines. Numbers are numbers (including marks), addresses text, owners a list of objects; unknown values
/// are null.
///
/// If requested, the accounting is the last object of a round.
pub struct Json<W> {
    out: Out<W>,
    options: FormatOptions,
    rows: JsonRows,
}

impl<W: Write> Json<W> {
    /// Writes JSON to `out`.
    pub fn new(out: Out<W>, options: FormatOptions) -> Json<W> {
        Json { out, options, rows: JsonRows::new(&Columns::default()) }
    }

    /// Returns the output, for text after the table.
    pub fn into_out(self) -> Out<W> {
        self.out
    }
}

impl<W: Write> Sink for Json<W> {
    fn keeps_addresses(&self) -> bool {
        true
    }

    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.rows = JsonRows::new(columns);
        if let Some(round) = round {
            put_round(self.out.buf(), round);
            self.out.line_done()?;
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.rows.put(cells, self.out.buf());
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
        let gap = self.rows.put_with_hole(cells, hole, rendered);
        Ok(cut_hole(rendered, start, gap))
    }

    fn write_rendered(&mut self, rendered: &[u8], hole: Option<Hole<'_>>) -> Result<Next, SinkError> {
        let rows = &mut self.rows;
        self.out.put_line(rendered, hole, |buf, hole| rows.put_cell(hole.value, buf))
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush()
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        if self.options.stats {
            put_accounting(self.out.buf(), totals, self.options.cpu_us.map(|ask| ask()));
        }
        self.out.flush()
    }
}

fn put_round(buf: &mut Vec<u8>, round: Round) {
    buf.extend_from_slice(b"{\"round\":{\"n\":");
    text::put_u64(buf, round.n);
    buf.extend_from_slice(b",\"time\":\"");
    text::put_seconds(buf, round.time_s());
    buf.extend_from_slice(b"\"}}\n");
}

fn put_accounting(buf: &mut Vec<u8>, totals: &Accounting, cpu_us: Option<u64>) {
    let counts = [
        ("{\"accounting\":{\"seen\":", totals.seen),
        (",\"emitted\":", totals.emitted),
        (",\"filtered\":", totals.filtered),
        (",\"grouped\":", totals.grouped),
        (",\"duplicates\":", totals.duplicates),
        (",\"cut\":", totals.cut),
        (",\"failed\":", totals.failed),
        (",\"lost\":", totals.lost),
    ];
    for (key, count) in counts {
        buf.extend_from_slice(key.as_bytes());
        text::put_u64(buf, count);
    }
    buf.extend_from_slice(b",\"why\":[");
    for (i, why) in totals.why.iter().enumerate() {
        buf.extend_from_slice(if i == 0 { b"{\"count\":" } else { b",{\"count\":" });
        text::put_u64(buf, why.count);
        buf.extend_from_slice(b",\"text\":");
        put_string(buf, why.text.as_bytes());
        buf.push(b'}');
    }
    buf.extend_from_slice(b"],\"via\":[");
    for (i, backend) in totals.via.iter().enumerate() {
        if i > 0 {
            buf.push(b',');
        }
        put_word(buf, backend);
    }
    buf.extend_from_slice(b"],\"cpu_ms\":");
    match cpu_us {
        Some(us) => put_thousandths(buf, us),
        None => buf.extend_from_slice(b"null"),
    }
    buf.extend_from_slice(b"}}\n");
}
