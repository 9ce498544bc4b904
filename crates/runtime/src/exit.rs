//! Exit codes of the native commands. Faces use the codes of their tools.

/// An exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Success, also if the reader of the output closed it.
    Ok = 0,
    /// `--exit-code` was given, and no row matched.
    NoMatch = 1,
    /// The command line or the filter is wrong.
    Usage = 2,
    /// Some results are missing; stderr has the reasons.
    Partial = 3,
    /// Reading or writing failed entirely.
    Failed = 4,
}
