//! What a check found.

/// One line for each finding, `file:line: what is wrong`; empty is good.
pub(crate) type Findings = Vec<String>;
