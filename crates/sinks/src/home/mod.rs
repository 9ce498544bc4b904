//! The home screen for people: 80 columns and 24 lines, for any names.
//!
//! It takes a row of the table `home` and writes lines. Names from outside are escaped and cut in the middle,
//! sentences at their end. Start reading at [`HomeText`]; the lines of each part are in `parts`.

mod fit;
mod parts;

use crate::Out;
use crate::cut::shorten_end;
use fit::cell;
use record::rows::HomeScreens;
use record::{Accounting, Columns, Next, OwnedObject, OwnedValue, Round, Sink, SinkError, Value, field_index};
use std::io::Write;

/// Columns of the label before a line.
const LABEL: usize = 14;

/// Number of lines without a terminal.
const LINES: usize = 23;

/// Width without a terminal.
const WIDTH: usize = 80;

/// The options of the home screen.
pub struct HomeTextOptions {
    /// True for colour.
    pub color: bool,
    /// Columns of the terminal; `None` in a pipe.
    pub width: Option<usize>,
    /// Number of lines available to the screen; `None` in a pipe. Values below 23 count as 23.
    pub lines: Option<usize>,
}

/// Writes home screens; their cells are all fields of the table, in its order.
pub struct HomeText<W> {
    out: Out<W>,
    options: HomeTextOptions,
}

impl<W: Write> HomeText<W> {
    /// Writes screens to `out`.
    pub fn new(out: Out<W>, options: HomeTextOptions) -> HomeText<W> {
        HomeText { out, options }
    }
}

impl<W: Write> Sink for HomeText<W> {
    fn begin(&mut self, _: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        if round.is_some_and(|round| round.n > 1) {
            self.out.buf().push(b'\n');
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let width = self.options.width.unwrap_or(WIDTH).max(WIDTH / 2);
        let spare = self.options.lines.unwrap_or(LINES).saturating_sub(LINES);
        let mut lines = ScreenLines { text: String::new(), width, spare, color: self.options.color };
        let cells = NamedCells(cells);
        parts::head(&cells, &mut lines);
        parts::findings(&cells, &mut lines);
        parts::interfaces(&cells, &mut lines);
        parts::sockets(&cells, &mut lines);
        parts::conntrack(&cells, &mut lines);
        parts::retransmits(&cells, &mut lines);
        parts::flows(&cells, &mut lines);
        parts::drops(&cells, &mut lines);
        parts::put_unseen(&cells, &mut lines);
        self.out.buf().extend_from_slice(lines.text.as_bytes());
        self.out.line_done()?;
        Ok(Next::More)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush()
    }

    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        self.out.flush()
    }
}

/// The cells of a row, by name.
struct NamedCells<'c, 'v>(&'c [Value<'v>]);

impl<'v> NamedCells<'_, 'v> {
    fn value(&self, name: &str) -> Value<'v> {
        field_index::<HomeScreens>(name).and_then(|at| self.0.get(at)).copied().unwrap_or(Value::Null)
    }

    fn number(&self, name: &str) -> u64 {
        if let Value::U64(n) = self.value(name) { n } else { 0 }
    }

    fn objects(&self, name: &str) -> Vec<OwnedObject> {
        let mut all = Vec::new();
        self.value(name).for_each_item(&mut |item| {
            if let OwnedValue::Object(object) = item.into() {
                all.push(object);
            }
        });
        all
    }
}

/// The meaning of a colour.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Heading,
    /// Something was lost.
    Bad,
    /// Something is slow, or will be lost.
    Halfway,
}

/// The lines of a screen.
struct ScreenLines {
    text: String,
    width: usize,
    /// Lines of the terminal that are still available to parts with additional rows.
    spare: usize,
    color: bool,
}

impl ScreenLines {
    /// Returns how many rows of a part to show: its own, plus spare lines while it has rows for them.
    fn rows(&mut self, own: usize, all: usize) -> usize {
        let more = all.saturating_sub(own).min(self.spare);
        self.spare -= more;
        all.min(own + more)
    }

    /// Appends a line, cut at the end of the screen.
    fn put(&mut self, tone: Tone, line: &str) {
        let line = shorten_end(line.trim_end(), self.width);
        self.put_painted(tone, &line);
        self.text.push('\n');
    }

    /// Appends a line with a label before it.
    fn put_labelled_line(&mut self, label: &str, tone: Tone, text: &str) {
        let label = cell(label, LABEL - 1);
        self.put_painted(Tone::Heading, &label);
        self.text.push(' ');
        let text = shorten_end(text.trim_end(), self.width.saturating_sub(LABEL));
        self.put_painted(tone, &text);
        self.text.push('\n');
    }

    fn put_painted(&mut self, tone: Tone, text: &str) {
        let on = match tone {
            _ if !self.color => "",
            Tone::Plain => "",
            Tone::Heading => "\x1b[1m",
            Tone::Bad => "\x1b[31m",
            Tone::Halfway => "\x1b[33m",
        };
        self.text.push_str(on);
        self.text.push_str(text);
        self.text.push_str(if on.is_empty() { "" } else { "\x1b[0m" });
    }
}

#[cfg(test)]
mod tests;
