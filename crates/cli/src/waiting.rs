//! Events on a terminal: the headings at once, and a line that says how long nothing has happened.
//!
//! Both stand below the rows and are erased before the next row; in a pipe there is neither.

use crate::flags::request::{Format, Request};
use crate::session::Session;
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};
use sinks::screen::crop;
use std::cell::RefCell;
use std::rc::Rc;
use sys::clock::monotonic_ns;
use sys::term::{STDOUT, width};

const SECOND_NS: u64 = 1_000_000_000;

/// `sink` as it is, or with a line while it waits if standard output is a terminal that people read.
pub(crate) fn over(request: &Request, session: &Session, sink: Box<dyn Sink>) -> Box<dyn Sink> {
    let is_table = request.format == Format::Table && request.bundle.is_none() && request.replay.is_none();
    let can_erase = || std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
    if !is_table || !can_erase() || !sys::term::is_terminal(STDOUT) {
        return sink;
    }
    // Without it the first line after a stop would take a line of the shell's away.
    let _ = sys::signal::note_continuing();
    let line = Rc::new(RefCell::new(WaitingLine::default()));
    let turned = Rc::clone(&line);
    session.at_each_turn(Box::new(move || {
        // A row that is being written is followed by the next turn.
        if let Ok(mut line) = turned.try_borrow_mut() {
            line.tell();
        }
    }));
    Box::new(WaitingSink { sink, has_header: request.header, line })
}

/// A writer of events that shows how long it waits.
struct WaitingSink {
    sink: Box<dyn Sink>,
    has_header: bool,
    line: Rc<RefCell<WaitingLine>>,
}

impl Sink for WaitingSink {
    fn keeps_addresses(&self) -> bool {
        self.sink.keeps_addresses()
    }

    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.sink.begin(columns, round)?;
        self.line.borrow_mut().begin(if self.has_header { sinks::headings(columns) } else { String::new() });
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.line.borrow_mut().count();
        self.sink.row(cells)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.sink.flush()?;
        self.line.borrow_mut().tell();
        Ok(())
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        self.line.borrow_mut().close();
        self.sink.end(totals)
    }
}

impl Drop for WaitingSink {
    fn drop(&mut self) {
        self.line.borrow_mut().close();
    }
}

/// The line below the rows, and the headings above it as long as no row has brought them.
#[derive(Default)]
struct WaitingLine {
    is_open: bool,
    head: String,
    events: u64,
    /// When the last event came, or the run began.
    last_ns: u64,
    /// What stands there; empty if nothing does.
    shown: String,
    shows_head: bool,
    /// Stops that the process has gone on after when that was written.
    continuations: u64,
}

impl WaitingLine {
    fn begin(&mut self, head: String) {
        *self = WaitingLine { is_open: true, head, last_ns: monotonic_ns(), ..WaitingLine::default() };
    }

    /// An event has come: its row stands in the line's place.
    fn count(&mut self) {
        self.erase();
        self.events += 1;
        self.last_ns = monotonic_ns();
    }

    /// Shows how long nothing has happened, if that has changed.
    fn tell(&mut self) {
        let waited_s = monotonic_ns().saturating_sub(self.last_ns) / SECOND_NS;
        if !self.is_open || self.events > 0 && waited_s == 0 {
            return;
        }
        self.forget_after_stop();
        let line = words(self.events, waited_s);
        if line != self.shown {
            self.show(line);
        }
    }

    fn show(&mut self, line: String) {
        let mut out = self.erasing();
        let columns = width(STDOUT).unwrap_or(80);
        self.shows_head = self.events == 0 && !self.head.is_empty();
        if self.shows_head {
            crop(self.head.as_bytes(), columns, &mut out, &mut 0);
            out.push(b'\n');
        }
        // The last column stays free: the cursor would be in the next line.
        crop(line.as_bytes(), columns.saturating_sub(1), &mut out, &mut 0);
        self.shown = line;
        put(&out);
    }

    /// After a stop the shell's lines stand below ours: those stay where they are.
    fn forget_after_stop(&mut self) {
        let continuations = sys::signal::continuations();
        if continuations != self.continuations {
            self.continuations = continuations;
            self.shown.clear();
        }
    }

    fn erase(&mut self) {
        self.forget_after_stop();
        put(&self.erasing());
        self.shown.clear();
    }

    fn close(&mut self) {
        self.erase();
        self.is_open = false;
    }

    /// What erases what stands there.
    fn erasing(&self) -> Vec<u8> {
        match (self.shown.is_empty(), self.shows_head) {
            (true, _) => Vec::new(),
            (false, false) => b"\r\x1b[K".to_vec(),
            (false, true) => b"\r\x1b[K\x1b[A\x1b[K".to_vec(),
        }
    }
}

/// How long nothing has happened.
fn words(events: u64, waited_s: u64) -> String {
    match events {
        0 => format!("listening, 0 events for {waited_s} s"),
        1 => format!("listening, 1 event, {waited_s} s ago"),
        _ => format!("listening, {events} events, the last one {waited_s} s ago"),
    }
}

/// A terminal that takes nothing is told by the next row.
fn put(bytes: &[u8]) {
    if !bytes.is_empty() {
        let _ = sys::Out::stdout().write_all(bytes);
    }
}
