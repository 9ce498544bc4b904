//! Text on the standard streams: words of the command line are escaped.

use record::SinkError;
use runtime::exit::Exit;
use runtime::stdout::Stdout;
use sinks::Out;

/// Makes text from outside safe for stderr: replaces control bytes with `?` and invalid UTF-8 with U+FFFD.
pub(super) fn printable(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    record::text::put_face(&mut out, text, false);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes text to stderr. Ignores a closed stderr.
pub(super) fn warn(text: &str) {
    let _ = sys::Out::stderr().write_all(text.as_bytes());
}

/// Prints text to standard output; returns the exit code 0, or `failed`.
pub(super) fn print(text: &str, failed: u8) -> u8 {
    if runtime::print::print(text) == Exit::Ok { 0 } else { failed }
}

/// Prints `TOOL: WORDS` on stderr.
pub(super) fn complain(tool: &str, words: &str) {
    warn(&format!("{tool}: {}\n", printable(words.as_bytes())));
}

/// Prints the output of a tool; returns `code`, or 1 after an error.
pub(super) fn print_bytes(tool: &str, bytes: &[u8], code: u8) -> u8 {
    let mut out = Out::new(Stdout::new());
    out.buf().extend_from_slice(bytes);
    match out.flush() {
        Ok(()) | Err(SinkError::Closed) => code,
        Err(error) => {
            complain(tool, &error.to_string());
            1
        }
    }
}
