//! The width of what is written for people: that of the terminal, or what COLUMNS asks for.

use crate::fold::fold;
use std::borrow::Cow;

/// Width of texts where there is no terminal.
const TEXTS: usize = 80;

/// Columns of the screen that the user asks for by the environment.
pub(crate) fn asked() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// Columns of the terminal that standard output is, or those that COLUMNS asks for; `None` if it is none.
pub(crate) fn of_terminal() -> Option<usize> {
    behind(sys::term::STDOUT)
}

/// Width of texts on standard output.
pub(crate) fn of_texts() -> usize {
    of_terminal().unwrap_or(TEXTS)
}

/// Lines of a message, folded where standard error is a terminal.
pub(crate) fn folded_message(text: &str) -> Cow<'_, str> {
    match behind(sys::term::STDERR) {
        Some(width) => Cow::Owned(fold(text, width)),
        None => Cow::Borrowed(text),
    }
}

fn behind(fd: i32) -> Option<usize> {
    sys::term::is_terminal(fd).then(|| asked().or_else(|| sys::term::width(fd)).unwrap_or(TEXTS))
}
