//! `--watch` on a terminal: each round is drawn over the previous one, on the alternate screen.
//!
//! [`over`] puts a [`DrawnSink`] around the writer of a request, which writes each round into the frame of a
//! [`Drawing`]. In a pipe, on a terminal that is dumb or too small, and in a replay (which ends), rounds follow each
//! other instead.

use crate::drawing::{Drawing, SIZE_MIN};
use crate::flags::request::{Format, Request};
use lookups::session::Session;
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value, text};
use runtime::ascii;
use runtime::stdout::Stdout;
use std::io::Write;
use std::rc::Rc;
use sys::term::STDOUT;
use tables::Repeat;

/// Makes the writer of a round.
pub(crate) type MakeWriter<'m> = dyn Fn(Box<dyn Write>) -> Box<dyn Sink + 'm> + 'm;

/// The writer made by `make`, drawn in place if the request has rounds and standard output can display them.
pub(crate) fn over<'m>(request: &Request, session: &Session, make: Box<MakeWriter<'m>>) -> Box<dyn Sink + 'm> {
    if !is_drawn(request) {
        let is_exact = matches!(request.format, Format::Json | Format::Csv | Format::Tsv);
        let to: Box<dyn Write> = Box::new(Stdout::new());
        return make(if is_exact { to } else { ascii::table(to) });
    }
    let counted = if request.format == Format::Table { "rows" } else { "lines" };
    let drawing = Rc::new(Drawing::new(title(request), counted));
    let drawn = Rc::clone(&drawing);
    session.at_each_turn(Box::new(move || drawn.redraw()));
    Box::new(DrawnSink { make, writer: None, rows: 0, rows_max: 0, drawing })
}

/// The command and its filter, escaped.
fn title(request: &Request) -> Vec<u8> {
    let mut title = b"netwren".to_vec();
    let words = [request.command, &request.shown.filter].into_iter().map(str::trim);
    for words in words.filter(|words| !words.is_empty() && *words != "home") {
        title.push(b' ');
        text::put_text(&mut title, words.as_bytes());
    }
    title
}

fn is_drawn(request: &Request) -> bool {
    let is_table = matches!(request.format, Format::Table | Format::Home);
    is_table
        && request.repeat != Repeat::Once
        && request.replay.is_none()
        && std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
        && sys::term::is_terminal(STDOUT)
        && sys::term::size(STDOUT).is_some_and(|size| size.rows >= SIZE_MIN.rows && size.columns >= SIZE_MIN.columns)
}

/// Hands each round to a new writer, then draws its output.
struct DrawnSink<'m> {
    make: Box<MakeWriter<'m>>,
    writer: Option<Box<dyn Sink + 'm>>,
    /// Number of rows given to the writer in this round; those beyond `rows_max` are only counted.
    rows: usize,
    rows_max: usize,
    drawing: Rc<Drawing>,
}

impl Sink for DrawnSink<'_> {
    fn rows_wanted(&self) -> Option<u64> {
        Some(Drawing::lines_max() as u64)
    }

    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.rows_max = self.drawing.begin_round(round);
        self.rows = 0;
        let mut writer = (self.make)(Box::new(self.drawing.writer()));
        // The head shows the number and the time of the round.
        writer.begin(columns, None)?;
        self.writer = Some(writer);
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let Some(writer) = self.writer.as_mut().filter(|_| self.rows < self.rows_max) else {
            // The terminal has shrunk since the round began.
            self.drawing.leave_out(1);
            return Ok(Next::More);
        };
        self.rows += 1;
        writer.row(cells)
    }

    fn leave_out(&mut self, rows: u64) {
        self.drawing.leave_out(rows);
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        if let Some(mut writer) = self.writer.take() {
            // A table's notes on its columns follow the rows, and must not be cut with them.
            writer.flush()?;
            self.drawing.end_rows();
            writer.end(totals)?;
        }
        self.drawing.draw()
    }
}

impl Drop for DrawnSink<'_> {
    fn drop(&mut self) {
        self.drawing.close();
    }
}
