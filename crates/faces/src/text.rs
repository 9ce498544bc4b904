//! Escapes words of the command line for messages.

/// Makes text from outside safe for stderr: replaces control bytes with `?` and invalid UTF-8 with U+FFFD.
pub(super) fn printable(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    record::text::put_face(&mut out, text, false);
    String::from_utf8_lossy(&out).into_owned()
}
