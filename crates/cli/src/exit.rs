//! Exit codes of the native commands. Faces use their tool's.

/// What the exit code says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// All right; also when the reader of the output went away.
    Ok = 0,
    /// No row matched and `--exit-code` was given.
    NoMatch = 1,
    /// The command line or the filter is wrong.
    Usage = 2,
    /// Something is missing; stderr says what.
    Partial = 3,
    /// Nothing could be read, or nothing could be written.
    Failed = 4,
}
