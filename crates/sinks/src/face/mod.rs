//! Writers that print what the old tools print, byte for byte, from typed rows.
//!
//! A writer knows layout and words; switches, exit codes and the order of questions are the command line's job.

pub mod conntrack;
pub mod dropwatch;
pub mod lstf;
pub mod netstat;
pub mod nstat;
pub mod ss;
pub mod tcpdump;
pub mod ulogd;

use record::text::put_face;

/// Text between quotation marks, from outside: with a backslash before each quotation mark, and before each backslash,
/// which would take the mark's own away.
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
