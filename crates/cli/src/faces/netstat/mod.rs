//! The face of netstat.

/// Runs the face; returns the exit code.
pub(crate) fn run(_call: &super::Call) -> u8 {
    2
}
