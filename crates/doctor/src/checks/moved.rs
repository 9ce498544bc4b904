//! A counter at both readings.

/// A counter at both readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Its value at the first; `None` if the difference is unknown.
    pub before: Option<i64>,
    /// Its value at the second.
    pub after: i64,
}

impl Moved {
    /// What it grew by; 0 if it did not, or if that is unknown.
    pub fn grown(&self) -> u64 {
        self.before.and_then(|before| u64::try_from(self.after.checked_sub(before)?).ok()).unwrap_or(0)
    }
}
