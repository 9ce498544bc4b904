//! A counter's values at both readings.

/// A counter's values at both readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Value at the first reading; `None` if the difference is unknown.
    pub before: Option<i64>,
    /// Value at the second reading.
    pub after: i64,
}

impl Moved {
    /// Returns the growth; 0 if there was no growth or it is unknown.
    pub fn grown(&self) -> u64 {
        self.before.and_then(|before| u64::try_from(self.after.checked_sub(before)?).ok()).unwrap_or(0)
    }
}
