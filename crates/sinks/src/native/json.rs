//! JSON: one object a line.

use super::FormatOptions;
use super::value::{put_endpoint, put_string, put_thousandths, put_value, put_word};
use crate::Out;
use record::text::Line;
use record::{Accounting, Columns, Hole, Next, Rendered, Round, Sink, SinkError, Value, text};
use std::io::Write;
use std::ops::Range;

/// JSON lines. Numbers are numbers (marks too), addresses text, owners a list of objects, null where unknown.
///
/// The accounting is the last object of a round if it was asked for or something was lost.
pub struct Json<W> {
    out: Out<W>,
    options: FormatOptions,
    /// All keys behind one another, each with its punctuation and `null`: `{"proto":null`, then `,"state":null`.
    keys: Vec<u8>,
    /// Where each key ends in `keys`, with the `null` behind it.
    ends: Vec<usize>,
    line: Line,
}

impl<W: Write> Json<W> {
    /// JSON into `out`.
    pub fn new(out: Out<W>, options: FormatOptions) -> Json<W> {
        Json { out, options, keys: Vec::new(), ends: Vec::new(), line: Line::new() }
    }

    /// The output, for what comes after the table.
    pub fn into_out(self) -> Out<W> {
        self.out
    }

    /// Where the cell of the column `lacks` stands in the buffer.
    #[inline(always)]
    fn put_row(&mut self, cells: &[Value<'_>], hole: Option<usize>) -> Option<Range<usize>> {
        let (line, buf) = (&mut self.line, self.out.buf());
        let (mut from, mut gap) = (0, None);
        for (i, (&end, &cell)) in self.ends.iter().zip(cells).enumerate() {
            // Half of the cells of a wide row are null: key and null are one piece.
            let is_null = cell.is_null() && hole != Some(i);
            let key_end = if is_null { end } else { end - NULL };
            put_key(line, buf, self.keys.get(from..key_end).unwrap_or_default());
            if hole == Some(i) {
                line.drain(buf);
                let start = buf.len();
                put_fast(line, buf, cell);
                line.drain(buf);
                gap = Some(start..buf.len());
            } else if !is_null {
                put_fast(line, buf, cell);
            }
            from = end;
        }
        line.short(if from == 0 { b"{}\n" } else { b"}\n" });
        line.drain(buf);
        gap
    }
}

impl<W: Write> Sink for Json<W> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.keys.clear();
        self.ends.clear();
        for (i, column) in columns.0.iter().enumerate() {
            self.keys.extend_from_slice(if i == 0 { b"{\"" } else { b",\"" });
            text::put_json(&mut self.keys, column.name.as_bytes());
            self.keys.extend_from_slice(b"\":null");
            self.ends.push(self.keys.len());
        }
        if let Some(round) = round {
            put_round(self.out.buf(), round);
            self.out.line_done()?;
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.put_row(cells, None);
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
    ) -> Result<Rendered, SinkError> {
        let start = self.out.buf().len();
        let gap = self.put_row(cells, hole);
        self.out.keep_line(start, gap, rendered)
    }

    fn write_rendered(&mut self, rendered: &[u8], hole: Option<Hole<'_>>) -> Result<Next, SinkError> {
        let line = &mut self.line;
        self.out.put_line(rendered, hole, |buf, hole| {
            put_fast(line, buf, hole.value);
            line.drain(buf);
        })
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush()
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        if self.options.stats || totals.is_partial() {
            put_accounting(self.out.buf(), totals, self.options.cpu_us.map(|ask| ask()));
        }
        self.out.flush()
    }
}

#[inline]
fn put_key(line: &mut Line, buf: &mut Vec<u8>, key: &[u8]) {
    line.make_room(buf);
    if key.len() <= Line::SHORT {
        return line.short(key);
    }
    line.drain(buf);
    buf.extend_from_slice(key);
}

/// Appends the cell to `line`, or to `buf` behind it if it is long or needs escaping.
#[inline]
fn put_fast(line: &mut Line, buf: &mut Vec<u8>, cell: Value<'_>) {
    match cell {
        Value::U64(n) => line.decimal(n),
        Value::Name(word) if word.len() <= Line::SHORT => put_quoted(line, |line| line.short(word.as_bytes())),
        Value::Addr(addr) => put_quoted(line, |line| line.addr(addr)),
        Value::Time(ns) => put_quoted(line, |line| line.timestamp(ns)),
        Value::Endpoint(addr, port) => put_quoted(line, |line| put_endpoint(line, addr, port)),
        Value::Bytes(text) if text.len() <= Line::SHORT && text::is_plain(text) => {
            put_quoted(line, |line| line.short(text))
        }
        rare => {
            line.drain(buf);
            put_value(buf, rare);
        }
    }
}

#[inline]
fn put_quoted(line: &mut Line, put: impl FnOnce(&mut Line)) {
    line.byte(b'"');
    put(line);
    line.byte(b'"');
}

/// Length of the `null` behind each key.
const NULL: usize = 4;

fn put_round(buf: &mut Vec<u8>, round: Round) {
    buf.extend_from_slice(b"{\"round\":{\"n\":");
    text::put_u64(buf, round.n);
    buf.extend_from_slice(b",\"time\":\"");
    text::put_seconds(buf, round.time_s);
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
