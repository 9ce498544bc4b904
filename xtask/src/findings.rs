//! The result of a check.

/// One line for each finding, `file:line: what is wrong`; an empty list means success.
pub(crate) type Findings = Vec<String>;
