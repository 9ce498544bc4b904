//! The result of a command.

use crate::exit::Exit;

/// The exit code of a command, and its messages for stderr.
pub struct Outcome {
    /// The exit code.
    pub exit: Exit,
    /// Lines for stderr, in order.
    pub messages: Vec<String>,
}

impl Outcome {
    /// A result with one message.
    pub fn with_message(exit: Exit, message: impl ToString) -> Outcome {
        Outcome { exit, messages: vec![message.to_string()] }
    }
}

impl From<Exit> for Outcome {
    fn from(exit: Exit) -> Outcome {
        Outcome { exit, messages: Vec::new() }
    }
}
