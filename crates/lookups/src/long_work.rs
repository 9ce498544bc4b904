//! A line on a terminal that shows the progress of long work.

use crate::session::Session;
use runtime::messages::{erase_progress, show_progress};
use std::cell::Cell;
use std::time::Duration;
use sys::clock::monotonic_ns;
use sys::term::STDERR;

const SECOND_NS: u64 = 1_000_000_000;

/// The last line of standard error, if that is a terminal. Dropping this value erases the line.
#[derive(Default)]
pub struct ProgressLine;

impl ProgressLine {
    /// True if people can see the line.
    fn is_seen() -> bool {
        sys::term::is_terminal(STDERR) && !sys::alternate_screen::is_shown()
    }

    /// Replaces the text of the line.
    pub fn show(&self, text: &str) {
        if ProgressLine::is_seen() {
            show_progress(text);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        erase_progress();
    }
}

/// A progress line that is written once a second: what is done, for how long so far, and counts.
pub struct Ticker {
    line: ProgressLine,
    what: String,
    time: Option<Duration>,
    begun_ns: u64,
    /// Seconds that the line shows.
    shown_s: Cell<u64>,
}

impl Ticker {
    /// The work `what` begins, and lasts for `time` if that is known.
    pub fn new(what: impl Into<String>, time: Option<Duration>) -> Ticker {
        Ticker { line: ProgressLine, what: what.into(), time, begun_ns: monotonic_ns(), shown_s: Cell::new(0) }
    }

    /// Writes the line if a second has passed; `counts` is empty, or says what was done so far. Costs a look at the
    /// clock otherwise.
    pub fn tick(&self, counts: impl FnOnce() -> String) {
        let passed_s = monotonic_ns().saturating_sub(self.begun_ns) / SECOND_NS;
        if self.shown_s.replace(passed_s) != passed_s {
            self.line.show(&line(&self.what, passed_s, self.time, &counts()));
        }
    }
}

fn line(what: &str, passed_s: u64, time: Option<Duration>, counts: &str) -> String {
    let time = match time {
        // The remaining time is a little less than the time that the user gave.
        Some(time) => format!("{passed_s} of {} s", (time.as_secs_f64() * 10.0).round() / 10.0),
        None => format!("{passed_s} s"),
    };
    let comma = if counts.is_empty() { "" } else { ", " };
    format!("{what}: {time}{comma}{counts}")
}

/// The progress line of work during which a session waits or is asked whether it goes on. Dropping it erases the line.
pub struct Progress<'s> {
    session: &'s Session,
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.session.waits().at_each_second(None);
    }
}

/// Shows the progress of the work `what` on a terminal until the value that it returns is dropped. Returns `None`
/// if stderr is not a terminal that people see. See [`Ticker`] for the line.
pub fn progress<'s>(
    session: &'s Session,
    what: impl Into<String>,
    time: Option<Duration>,
    counts: impl Fn() -> String + 'static,
) -> Option<Progress<'s>> {
    if !ProgressLine::is_seen() {
        return None;
    }
    let ticker = Ticker::new(what, time);
    session.waits().at_each_second(Some(Box::new(move || ticker.tick(&counts))));
    Some(Progress { session })
}

/// Sleeps for `time` and shows on a terminal how much of it has passed. Returns false if the run ends first.
pub fn wait(session: &Session, time: Duration, what: &str) -> bool {
    let _line = progress(session, what, Some(time), String::new);
    session.sleep_until(monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// Returns how the work ends: `for 10 s (Ctrl-C ends it earlier)`, `until Ctrl-C`.
pub fn until(time: Option<Duration>) -> String {
    match time {
        Some(time) => format!("for {} s (Ctrl-C ends it earlier)", time.as_secs_f64()),
        None => "until Ctrl-C".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_for_how_long_and_how_much() {
        let time = Some(Duration::from_millis(2500));
        assert_eq!(line("sampling CPUs", 1, time, ""), "sampling CPUs: 1 of 2.5 s");
        let rest = Some(Duration::from_nanos(59_998_999_921));
        assert_eq!(line("reading rows", 59, rest, ""), "reading rows: 59 of 60 s");
        assert_eq!(line("shipping", 70, None, "seen 9"), "shipping: 70 s, seen 9");
    }
}
