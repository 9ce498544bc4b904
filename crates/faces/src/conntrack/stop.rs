//! Errors that end a run: an invalid command line, or a refusal by the kernel.

use crate::text::{printable, warn};

/// The version of conntrack-tools that this face reproduces.
pub(super) const VERSION: &str = "1.4.7";

/// A message for stderr and the tool's exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    message: String,
    /// 1 for a failed operation, 2 for an invalid command line.
    pub(super) code: u8,
}

impl Stop {
    /// An error in the command line.
    pub(super) fn usage(message: impl Into<String>) -> Stop {
        Stop { message: message.into(), code: 2 }
    }

    /// An error about one word of the command line, which replaces `%`.
    pub(super) fn about(message: &str, word: &[u8]) -> Stop {
        Stop::usage(message.replacen('%', &printable(word), 1))
    }

    /// Any other error.
    pub(super) fn other(message: impl Into<String>) -> Stop {
        Stop { message: message.into(), code: 1 }
    }

    /// An error because the kernel refused the operation.
    pub(super) fn refused(words: &str) -> Stop {
        Stop::other(format!("Operation failed: {words}"))
    }

    /// The text for stderr.
    pub(super) fn text(&self) -> String {
        let line = format!("{}{}\n", head(), self.message);
        match self.code {
            2 => line + "Try `conntrack -h' or 'conntrack --help' for more information.\n",
            _ => line,
        }
    }

    /// Prints it; returns the exit code.
    pub(super) fn tell(&self) -> u8 {
        warn(&self.text());
        self.code
    }
}

/// The prefix of lines on stderr.
pub(super) fn head() -> String {
    format!("conntrack v{VERSION} (conntrack-tools): ")
}
