//! `--watch` on a terminal: each round is drawn over the previous one, on the alternate screen.
//!
//! A [`DrawnRounds`] writes each round with a new writer into the frame of a `Drawing`.

use crate::drawing::{Drawing, SIZE_MIN};
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};
use std::io::Write;
use std::rc::Rc;
use sys::term::STDOUT;

/// Makes the writer of a round.
pub type MakeWriter<'m> = dyn Fn(Box<dyn Write>) -> Box<dyn Sink + 'm> + 'm;

/// True if standard output is a terminal that can be drawn on.
pub fn can_draw() -> bool {
    can_erase()
        && sys::term::size(STDOUT).is_some_and(|size| size.rows >= SIZE_MIN.rows && size.columns >= SIZE_MIN.columns)
}

/// True if standard output is a terminal on which lines can be erased.
pub fn can_erase() -> bool {
    std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb") && sys::term::is_terminal(STDOUT)
}

/// Hands each round to a new writer, then draws its output.
pub struct DrawnRounds<'m> {
    make: Box<MakeWriter<'m>>,
    writer: Option<Box<dyn Sink + 'm>>,
    /// Number of rows given to the writer in this round; those beyond `rows_max` are only counted.
    rows: usize,
    rows_max: usize,
    drawing: Rc<Drawing>,
}

impl<'m> DrawnRounds<'m> {
    /// Draws what the writers made by `make` write. `title` is the first line, and `counted` names the rows that do not
    /// fit.
    pub fn new(title: Vec<u8>, counted: &'static str, make: Box<MakeWriter<'m>>) -> DrawnRounds<'m> {
        let drawing = Rc::new(Drawing::new(title, counted));
        DrawnRounds { make, writer: None, rows: 0, rows_max: 0, drawing }
    }

    /// Returns a function that draws the last round again if the terminal was resized or the process was stopped.
    pub fn redraw(&self) -> Box<dyn Fn()> {
        let drawing = Rc::clone(&self.drawing);
        Box::new(move || drawing.redraw())
    }
}

impl Sink for DrawnRounds<'_> {
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

impl Drop for DrawnRounds<'_> {
    fn drop(&mut self) {
        self.drawing.close();
    }
}
