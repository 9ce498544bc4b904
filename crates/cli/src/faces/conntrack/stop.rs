//! What ends a run: mistakes in the command line, refusals of the kernel.

use super::super::text::printable;
use sys::Errno;

/// The version that this face stands for.
pub(super) const VERSION: &str = "1.4.7";

/// A message for stderr and the tool's exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    message: String,
    /// 1 for what failed, 2 for a bad command line.
    pub(super) code: u8,
}

impl Stop {
    /// A mistake in the command line.
    pub(super) fn usage(message: impl Into<String>) -> Stop {
        Stop { message: message.into(), code: 2 }
    }

    /// The same about a word of it: `%` stands for the word.
    pub(super) fn about(message: &str, word: &[u8]) -> Stop {
        Stop::usage(message.replacen('%', &printable(word), 1))
    }

    /// Anything else.
    pub(super) fn other(message: impl Into<String>) -> Stop {
        Stop { message: message.into(), code: 1 }
    }

    /// The kernel did not do what was asked.
    pub(super) fn refused(words: &str) -> Stop {
        Stop::other(format!("Operation failed: {words}"))
    }

    /// What goes to stderr.
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

/// How lines on stderr begin.
pub(super) fn head() -> String {
    format!("conntrack v{VERSION} (conntrack-tools): ")
}

/// Text to stderr. A closed stderr is nobody's loss.
pub(super) fn warn(text: &str) {
    let _ = sys::Out::stderr().write_all(text.as_bytes());
}

/// An errno as strerror(3) has it.
pub(super) fn in_words(errno: Errno) -> String {
    if errno.0 == 0 {
        return "Success".to_owned();
    }
    let words = errno.to_string();
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
