//! Replaces non-ASCII characters in our output for terminals and pipes whose character set is not UTF-8.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::OnceLock;

/// Characters in cells and messages, each with a one-character replacement for table cells and a replacement for
/// messages.
const SIGNS: [(&str, &str, &str); 6] = [
    ("\u{2026}", "~", "..."),
    ("\u{b5}", "u", "u"),
    ("\u{3bc}", "u", "u"),
    ("\u{2192}", ">", "->"),
    ("\u{d7}", "x", "x"),
    ("\u{2264}", "<", "<="),
];

/// True if the locale's character set is UTF-8. The first of LC_ALL, LC_CTYPE and LANG that is set decides.
pub fn is_utf8() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Converts a message to the locale's character set.
pub fn message(text: &str) -> Cow<'_, str> {
    if is_utf8() || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let replaced = SIGNS.iter().fold(text.to_owned(), |text, (sign, _, words)| text.replace(sign, words));
    Cow::Owned(replaced)
}

/// Returns a writer for human-readable tables. It replaces non-ASCII characters unless the locale uses UTF-8.
pub fn table(to: Box<dyn Write>) -> Box<dyn Write> {
    if is_utf8() { to } else { Box::new(AsciiTable(to)) }
}

/// Writes one ASCII character for each replaced character, so that columns stay aligned. A character never spans two
/// writes, because sinks write whole lines.
struct AsciiTable(Box<dyn Write>);

impl Write for AsciiTable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.is_ascii() => {
                let replaced = SIGNS.iter().fold(text.to_owned(), |text, (sign, cell, _)| text.replace(sign, cell));
                self.0.write_all(replaced.as_bytes())?;
            }
            _ => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
