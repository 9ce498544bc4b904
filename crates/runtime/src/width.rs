//! The width of human-readable output: the terminal's width, or the value of COLUMNS.

use crate::fold::fold;
use std::borrow::Cow;

/// Width of texts without a terminal.
const TEXTS: usize = 80;

/// The width that the user requests through COLUMNS.
pub fn requested_width() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// The width of standard output: of its terminal, or from COLUMNS; `None` if it is not a terminal.
pub fn of_terminal() -> Option<usize> {
    terminal_width(sys::term::STDOUT)
}

/// Width of texts on standard output.
pub fn of_texts() -> usize {
    of_terminal().unwrap_or(TEXTS)
}

/// Lines of a message, folded if standard error is a terminal.
pub fn folded_message(text: &str) -> Cow<'_, str> {
    match terminal_width(sys::term::STDERR) {
        Some(width) => Cow::Owned(fold(text, width)),
        None => Cow::Borrowed(text),
    }
}

fn terminal_width(fd: i32) -> Option<usize> {
    sys::term::is_terminal(fd).then(|| requested_width().or_else(|| sys::term::width(fd)).unwrap_or(TEXTS))
}
