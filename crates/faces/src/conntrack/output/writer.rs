//! The writer of conntrack's rows.

use super::layout::{Change, EntryOptions, Form, LabelNames, Layout, Origin};
use super::line_writer::LineWriter;
use super::{expect, save, text, xml};
use crate::pieces::{Left, Outside, Padded, put};
use record::SinkError;
use record::rows::{Conntrack, Expectation};
use record::text::Line;
use sinks::Clock;
use sinks::Out;
use std::io::Write;

/// Writes rows like conntrack does.
pub struct EntryWriter<'l, W> {
    layout: Layout<'l>,
    out: Out<W>,
    line: Line,
    /// The open root element around the rows.
    root: Option<&'static str>,
}

impl<'l, W: Write> EntryWriter<'l, W> {
    /// Writes to `out`. With `labels`, the names of labels are shown.
    pub fn new(
        options: EntryOptions,
        clock: &'l dyn Clock,
        labels: Option<LabelNames<'l>>,
        out: Out<W>,
    ) -> EntryWriter<'l, W> {
        EntryWriter { layout: Layout { options, clock, labels }, out, line: Line::new(), root: None }
    }

    /// Writes an entry of the table.
    #[inline]
    pub fn row(&mut self, row: &Conntrack<'_>) -> Result<(), SinkError> {
        self.entry(row, None, None)
    }

    /// Writes an entry; in the form of commands, as the command for `change`.
    pub fn changed(&mut self, row: &Conntrack<'_>, change: Change) -> Result<(), SinkError> {
        let change = Some(change).filter(|_| self.layout.options.form == Form::Save);
        self.entry(row, change, None)
    }

    /// Writes an event about an entry; `at` is its arrival time: seconds since 1970 and ns.
    pub fn event(
        &mut self,
        row: &Conntrack<'_>,
        change: Change,
        at: (i64, u32),
        origin: Option<&Origin<'_>>,
    ) -> Result<(), SinkError> {
        let EntryOptions { form, time, .. } = self.layout.options;
        if form == Form::Text {
            let mut line = LineWriter::new(&mut self.line, self.out.buf());
            if time {
                put_moment(&mut line, at, true);
            }
            put_tag(&mut line, change);
        }
        self.entry(row, Some(change), origin)
    }

    fn entry(
        &mut self,
        row: &Conntrack<'_>,
        change: Option<Change>,
        origin: Option<&Origin<'_>>,
    ) -> Result<(), SinkError> {
        let old = self.layout.options.bug_compatible;
        let mut inside = None;
        if self.layout.options.form == Form::Xml {
            self.open_root("conntrack");
            inside = origin.filter(|_| !old);
        }
        let mut line = LineWriter::new(&mut self.line, self.out.buf());
        match self.layout.options.form {
            Form::Text => text::put_entry(&mut line, row, &self.layout),
            Form::Xml => xml::put_entry(&mut line, row, change, inside, &self.layout),
            Form::Save => save::put_entry(&mut line, row, change, &self.layout),
        }
        if let (Some(origin), None) = (origin, inside) {
            let program = origin.program.map(|program| (" progname=", Outside(program, old)));
            put!(&mut line, " [USERSPACE] portid=", origin.portid, program);
        }
        line.end();
        self.out.line_done()
    }

    /// Writes an expectation; with `change`, an event about it.
    pub fn expectation(
        &mut self,
        row: &Expectation<'_>,
        change: Option<Change>,
        at: (i64, u32),
    ) -> Result<(), SinkError> {
        let EntryOptions { form, time, bug_compatible, .. } = self.layout.options;
        if form == Form::Xml {
            self.open_root("expect");
        }
        let mut line = LineWriter::new(&mut self.line, self.out.buf());
        if form == Form::Xml {
            expect::put_xml(&mut line, row, change, &self.layout);
        } else {
            if time {
                put_moment(&mut line, at, !bug_compatible);
            }
            if let Some(change) = change {
                put_tag(&mut line, change);
            }
            expect::put_text(&mut line, row, bug_compatible);
        }
        line.end();
        self.out.line_done()
    }

    fn open_root(&mut self, root: &'static str) {
        if self.root.is_some() || self.layout.options.bare {
            return;
        }
        self.root = Some(root);
        xml::put_head(&mut LineWriter::new(&mut self.line, self.out.buf()), root);
    }

    /// Writes the waiting bytes now.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush()
    }

    /// Closes the root element and writes the waiting bytes. Without a row nothing was opened, so nothing is written.
    pub fn finish(&mut self) -> Result<(), SinkError> {
        if let Some(root) = self.root.take() {
            let mut line = LineWriter::new(&mut self.line, self.out.buf());
            put!(&mut line, "</", root, ">");
            line.end();
        }
        self.out.flush()
    }

    /// Writes the waiting bytes but leaves the root element open.
    pub fn break_off(&mut self) -> Result<(), SinkError> {
        self.root = None;
        self.out.flush()
    }

    /// Returns the output itself.
    pub fn into_inner(self) -> W {
        self.out.into_inner()
    }
}

/// Appends `    [NEW] `: nine columns, right-aligned.
fn put_tag(line: &mut LineWriter<'_>, change: Change) {
    match change {
        Change::New => put!(line, "    [NEW] "),
        Change::Update => put!(line, " [UPDATE] "),
        Change::Destroy => put!(line, "[DESTROY] "),
        Change::Unknown => {}
    }
}

/// Appends `[SECONDS.MICROSECONDS]` and a tab. Before expectations, the tool left-aligns the digits of the fraction.
fn put_moment(line: &mut LineWriter<'_>, (seconds, nanos): (i64, u32), zeros: bool) {
    let micros = nanos / 1000;
    let fraction = if zeros { Ok(Padded(micros, 6)) } else { Err(Left(micros, 6)) };
    put!(line, "[", u64::try_from(seconds).unwrap_or(0), ".", fraction, "]\t");
}
