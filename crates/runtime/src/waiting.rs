//! Events on a terminal: shows headings at once, and a line with the time since the last event.
//!
//! Both are below the rows and are erased before the next row; a pipe gets neither.

use record::{Accounting, Columns, Next, Round, Sink, SinkError, Value};
use sinks::screen::put_cropped;
use std::cell::RefCell;
use std::rc::Rc;
use sys::clock::monotonic_ns;
use sys::term::{STDOUT, width};

const SECOND_NS: u64 = 1_000_000_000;

/// A sink for events that shows how long it has been waiting.
pub struct WaitingSink {
    sink: Box<dyn Sink>,
    has_header: bool,
    line: Rc<RefCell<WaitingLine>>,
}

impl WaitingSink {
    /// Shows the line below the rows that `sink` writes, and headings at first if it writes headings.
    pub fn new(sink: Box<dyn Sink>, has_header: bool) -> WaitingSink {
        // Otherwise the first line after a stop would erase a line of the shell.
        let _ = sys::signal::note_continuing();
        WaitingSink { sink, has_header, line: Rc::default() }
    }

    /// Returns a function that updates the line.
    pub fn update(&self) -> Box<dyn Fn()> {
        let line = Rc::clone(&self.line);
        Box::new(move || {
            // If a row is being written, the next call updates the line.
            if let Ok(mut line) = line.try_borrow_mut() {
                line.tell();
            }
        })
    }
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

/// The line below the rows, and the headings above it until the first row.
#[derive(Default)]
struct WaitingLine {
    is_open: bool,
    head: String,
    events: u64,
    /// Time of the last event, or of the start.
    last_ns: u64,
    /// The displayed line; empty if there is none.
    shown: String,
    shows_head: bool,
    /// The number of continuations after stops when the line was written.
    continuations: u64,
}

impl WaitingLine {
    fn begin(&mut self, head: String) {
        *self = WaitingLine { is_open: true, head, last_ns: monotonic_ns(), ..WaitingLine::default() };
    }

    /// Counts an event, whose row replaces the line.
    fn count(&mut self) {
        self.erase();
        self.events += 1;
        self.last_ns = monotonic_ns();
    }

    /// Shows the time since the last event, if it has changed.
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
            put_cropped(self.head.as_bytes(), columns, &mut out, &mut 0);
            out.push(b'\n');
        }
        // The last column stays free, because the cursor would wrap to the next line.
        put_cropped(line.as_bytes(), columns.saturating_sub(1), &mut out, &mut 0);
        self.shown = line;
        put(&out);
    }

    /// After a stop the shell's output is below the line, so it must not be erased.
    fn forget_after_stop(&mut self) {
        let continuations = sys::signal::continuation_count();
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

    /// The bytes that erase the displayed lines.
    fn erasing(&self) -> Vec<u8> {
        match (self.shown.is_empty(), self.shows_head) {
            (true, _) => Vec::new(),
            (false, false) => b"\r\x1b[K".to_vec(),
            (false, true) => b"\r\x1b[K\x1b[A\x1b[K".to_vec(),
        }
    }
}

/// The text with the time since the last event.
fn words(events: u64, waited_s: u64) -> String {
    match events {
        0 => format!("listening, 0 events for {waited_s} s"),
        1 => format!("listening, 1 event, {waited_s} s ago"),
        _ => format!("listening, {events} events, the last one {waited_s} s ago"),
    }
}

/// If the terminal rejects the bytes, the next row will report it.
fn put(bytes: &[u8]) {
    if !bytes.is_empty() {
        let _ = sys::Out::stdout().write_all(bytes);
    }
}
