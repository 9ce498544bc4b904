//! Writers that print the output of the old tools, byte for byte, from typed rows.
//!
//! A writer knows layout and words; the command line handles switches, exit codes and the order of queries.

pub mod conntrack;
pub mod dropwatch;
pub mod lstf;
pub mod netstat;
pub mod nstat;
pub mod ss;
pub mod tcpdump;
pub mod ulogd;

use record::text::put_face;

/// Appends text from outside in quotation marks, with a backslash before each quotation mark inside, and before each
/// backslash, which would otherwise cancel the mark's own.
fn put_quoted(out: &mut Vec<u8>, text: &[u8]) {
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
