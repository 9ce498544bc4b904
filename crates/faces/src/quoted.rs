//! Names in quotation marks, as ss and lstf print them.

use record::text::put_face;

/// Appends text from outside in quotation marks, with a backslash before each quotation mark inside, and before each
/// backslash, which would otherwise cancel the mark's own.
pub(crate) fn put_quoted(out: &mut Vec<u8>, text: &[u8]) {
    for part in text.split_inclusive(|byte| matches!(byte, b'"' | b'\\')) {
        match part.split_last() {
            Some((&mark @ (b'"' | b'\\'), before)) => {
                put_face(out, before, false);
                out.extend_from_slice(&[b'\\', mark]);
            }
            _ => put_face(out, part, false),
        }
    }
}
