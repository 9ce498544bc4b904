//! A line on a terminal that shows the progress of long work.

use crate::session::Session;
use record::text::put_text;
use std::cell::Cell;
use std::time::Duration;
use sys::clock::monotonic_ns;
use sys::term::STDERR;

const SECOND_NS: u64 = 1_000_000_000;
/// Erases the rest of a terminal line: "erase to the end of the line".
const ERASE: &[u8] = b"\x1b[K";

/// The last line of standard error, if that is a terminal. Dropping this value erases the line.
#[derive(Default)]
pub(crate) struct ProgressLine {
    is_shown: Cell<bool>,
}

impl ProgressLine {
    /// True if the line is visible.
    fn is_seen() -> bool {
        sys::term::is_terminal(STDERR) && !sys::alternate_screen::is_shown()
    }

    /// Replaces the text of the line.
    pub(crate) fn show(&self, text: &str) {
        if !ProgressLine::is_seen() {
            return;
        }
        let width = sys::term::width(STDERR).unwrap_or(80).saturating_sub(1);
        let text: String = text.chars().take(width).collect();
        let mut out = vec![b'\r'];
        put_text(&mut out, text.as_bytes());
        out.extend_from_slice(ERASE);
        self.is_shown.set(true);
        // A failed write to the terminal does not affect the results.
        let _ = sys::out::Out::stderr().write_all(&out);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_shown.get() {
            let _ = sys::out::Out::stderr().write_all(&[b"\r", ERASE].concat());
        }
    }
}

/// Sleeps for `time` and shows on a terminal how much of it has passed. Returns false if the run ends first.
pub(crate) fn wait(session: &Session, time: Duration, what: &str) -> bool {
    let begun_ns = monotonic_ns();
    let end_ns = begun_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let line = ProgressLine::default();
    let mut next_ns = begun_ns;
    loop {
        // Without a terminal, a single wait covers the whole time.
        next_ns = if ProgressLine::is_seen() { next_ns.saturating_add(SECOND_NS).min(end_ns) } else { end_ns };
        if !session.sleep_until(next_ns) {
            return false;
        }
        if next_ns >= end_ns {
            return true;
        }
        line.show(&format!("{what}: {} of {} s", (next_ns - begun_ns) / SECOND_NS, time.as_secs_f64()));
    }
}

/// Returns how the work ends: `for 10 s (Ctrl-C ends it earlier)`, `until Ctrl-C`.
pub(crate) fn until(time: Option<Duration>) -> String {
    match time {
        Some(time) => format!("for {} s (Ctrl-C ends it earlier)", time.as_secs_f64()),
        None => "until Ctrl-C".to_owned(),
    }
}
