//! Text on standard output that is no table.

use crate::exit::Exit;
use crate::fold::fold;
use crate::messages::erase_progress;
use crate::{ascii, messages, width};

/// Prints text that is not a table, unchanged.
pub fn print(text: &str) -> Exit {
    erase_progress();
    match sys::Out::stdout().write_all(ascii::message(text).as_bytes()) {
        Ok(()) | Err(sys::OutError::Closed) => Exit::Ok,
        Err(error) => {
            messages::print_message(&error.to_string());
            Exit::Failed
        }
    }
}

/// Prints prose, folded at the width of a terminal.
pub fn print_prose(text: &str) -> Exit {
    match width::of_terminal() {
        Some(width) => print(&fold(text, width)),
        None => print(text),
    }
}
