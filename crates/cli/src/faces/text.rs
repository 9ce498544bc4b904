//! Words of the command line in messages.

/// Outside text for stderr: control bytes as `?`, invalid UTF-8 replaced.
pub(super) fn printable(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    record::text::put_face(&mut out, text, false);
    String::from_utf8_lossy(&out).into_owned()
}
