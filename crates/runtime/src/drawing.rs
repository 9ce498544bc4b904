//! A terminal on which rounds are drawn in place.
//!
//! Rows are written to the frame of a [`Drawing`], which is drawn at the end of the round, and redrawn when the
//! terminal is resized or the process continues after a stop.

use crate::ascii;
use crate::local_time::local_time;
use crate::stdout::Stdout;
use record::{Round, SinkError};
use sinks::screen::{FrameLines, FrameWriter, Screen, put_cropped};
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Write};
use sys::alternate_screen;
use sys::term::{STDOUT, TermSize};

/// Maximum number of lines shown below the rows.
const FOOT_MAX: usize = 4;

/// The smallest terminal to draw on. It fits the head, the headings, a row, the number of rows left out and the last
/// line.
pub(crate) const SIZE_MIN: TermSize = TermSize { rows: 6, columns: 20 };

/// The last line of the screen, which shows how to end the run.
const LAST: [&[u8]; 2] = [b"Ctrl-C: end", b"q: end"];

/// The terminal and the round that it shows.
pub(crate) struct Drawing {
    frame: FrameWriter,
    /// Number of rows of the round that were not written.
    left_out: Cell<u64>,
    /// Number of lines of the round up to its last row.
    body: Cell<usize>,
    state: RefCell<Drawn>,
}

struct Drawn {
    screen: Screen,
    /// The command and its filter, escaped.
    title: Vec<u8>,
    /// The plural noun for the number of rows left out.
    counted: &'static str,
    round: Option<Round>,
    is_open: bool,
}

impl Drawn {
    /// The first line: the title, and the time of the round at the right end, which is never cut off.
    fn head(&self, columns: usize) -> Vec<u8> {
        let mut time = Vec::new();
        if let Some(at) = self.round.and_then(|round| local_time(round.time_s())) {
            time = format!("  {:02}:{:02}:{:02}", at.hour, at.minute, at.second).into_bytes();
        }
        let room = columns.saturating_sub(time.len());
        let (mut line, mut width) = (Vec::new(), 0);
        put_cropped(&self.title, room, &mut line, &mut width);
        line.resize(line.len() + room.saturating_sub(width), b' ');
        line.extend_from_slice(&time);
        line
    }

    /// The line that reports the number of rows left out.
    fn rest(&self, left_out: u64) -> Vec<u8> {
        format!("… {left_out} more {}", self.counted).into_bytes()
    }
}

impl Drawing {
    /// Draws nothing yet. `title` is shown in the head, and `counted` names the rows that do not fit.
    pub(crate) fn new(title: Vec<u8>, counted: &'static str) -> Drawing {
        let state = Drawn { screen: Screen::default(), title, counted, round: None, is_open: false };
        Drawing {
            frame: FrameWriter::default(),
            left_out: Cell::new(0),
            body: Cell::new(0),
            state: RefCell::new(state),
        }
    }

    /// A writer to the frame.
    pub(crate) fn writer(&self) -> FrameWriter {
        self.frame.clone()
    }

    /// Marks the end of the rows: the following lines are shown below them and never scroll away.
    pub(crate) fn end_rows(&self) {
        self.body.set(self.frame.0.borrow().lines().len());
    }

    /// Counts rows that were not written.
    pub(crate) fn leave_out(&self, rows: u64) {
        self.left_out.set(self.left_out.get() + rows);
    }

    /// Returns the number of lines that fit between the head and the last line.
    pub(crate) fn lines_max() -> usize {
        sys::term::size(STDOUT).unwrap_or(SIZE_MIN).rows.saturating_sub(2)
    }

    /// Begins a round; returns the number of lines that fit between the head and the last line.
    pub(crate) fn begin_round(&self, round: Option<Round>) -> usize {
        let lines_max = Drawing::lines_max();
        self.frame.0.borrow_mut().restart(lines_max + FOOT_MAX);
        self.left_out.set(0);
        self.body.set(0);
        self.state.borrow_mut().round = round;
        lines_max
    }

    /// Draws the round. The first call switches to the alternate screen.
    pub(crate) fn draw(&self) -> Result<(), SinkError> {
        let mut state = self.state.borrow_mut();
        if !state.is_open {
            state.is_open = true;
            // Otherwise a stop would leave the shell on the alternate screen.
            sys::signal::catch_stops().map_err(|error| SinkError::Io(Box::new(error)))?;
            alternate_screen::enter().map_err(|error| match error {
                sys::OutError::Closed => SinkError::Closed,
                error => SinkError::Io(Box::new(error)),
            })?;
        }
        self.put(&mut state, &self.frame.0.borrow())
    }

    /// Redraws the round if the terminal's content is stale. Costs one load if it is not.
    pub(crate) fn redraw(&self) {
        // A round that is still being written is drawn at its end.
        let (Ok(mut state), Ok(frame)) = (self.state.try_borrow_mut(), self.frame.0.try_borrow()) else { return };
        if state.is_open && alternate_screen::is_stale() {
            // The next round will report errors of the terminal.
            let _ = self.put(&mut state, &frame);
        }
    }

    /// Restores the normal screen. If the run ended by itself, prints the last round there.
    pub(crate) fn close(&self) {
        let state = self.state.borrow();
        if !state.is_open {
            return;
        }
        alternate_screen::leave();
        if sys::signal::is_requested() {
            return;
        }
        let frame = self.frame.0.borrow();
        let left_out = self.left_out.get() + frame.left_out();
        let rest = (left_out > 0).then(|| state.rest(left_out));
        let lines = frame.lines().iter().chain(&rest).flat_map(|line| line.iter().chain(b"\n"));
        // The run is over, so the error cannot be reported.
        let _ = Stdout::new().write_all(&lines.copied().collect::<Vec<u8>>());
    }

    /// Writes the changes from the terminal's current content to the frame, unless another program owns the terminal
    /// now.
    fn put(&self, state: &mut Drawn, frame: &FrameLines) -> Result<(), SinkError> {
        if !alternate_screen::is_shown() {
            return Ok(());
        }
        if alternate_screen::take_stale() {
            state.screen.redraw_next();
        }
        let size = sys::term::size(STDOUT).unwrap_or(SIZE_MIN);
        let head = state.head(size.columns);
        let room = size.rows.saturating_sub(2);
        let (count, left_out, foot) = self.cut(frame, room);
        let rest = (left_out > 0).then(|| state.rest(left_out));
        let rows = frame.lines().iter().take(count).chain(&rest).chain(foot).map(Vec::as_slice);
        let rows = rows.chain(std::iter::repeat(&b""[..])).take(room);
        let last = LAST[usize::from(alternate_screen::has_keys())];
        let lines = std::iter::once(&head[..]).chain(rows).chain([last]);
        let mut out = Vec::new();
        state.screen.draw(lines, (size.rows, size.columns), &mut out);
        ascii::table(Box::new(Stdout::new())).write_all(&out).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => SinkError::Closed,
            _ => SinkError::Io(Box::new(error)),
        })
    }

    /// Fits the frame into `room` lines: the number of lines shown, the number left out, and the lines below the rows.
    fn cut<'f>(&self, frame: &'f FrameLines, room: usize) -> (usize, u64, &'f [Vec<u8>]) {
        let lines = frame.lines();
        // Without rows, and for text, all lines are the body.
        let body = if self.body.get() == 0 { lines.len() } else { self.body.get() };
        let foot = lines.get(body..).unwrap_or_default();
        let foot = foot.get(..FOOT_MAX.min(room / 2)).unwrap_or(foot);
        let (body, room) = (body.min(lines.len()), room - foot.len());
        let mut left_out = self.left_out.get() + frame.left_out();
        let mut count = body.min(room);
        if left_out > 0 || count < body {
            count = count.min(room.saturating_sub(1));
            left_out += (body - count) as u64;
        }
        (count, left_out, foot)
    }
}
