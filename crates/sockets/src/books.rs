//! The books of a run while it goes on.
use record::Accounting;

use crate::error::DecodeError;

/// Hostile or broken input may give every row a reason of its own; more than these are told as one.
const REASONS_MAX: usize = 8;

/// Counts, and where the doors that were used stand.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Rows handed out.
    rows: u64,
    acct: Accounting,
}

impl Books {
    #[inline]
    pub(crate) fn row(&mut self) {
        self.rows += 1;
    }

    pub(crate) fn doubled(&mut self) {
        self.acct.doubled += 1;
    }

    pub(crate) fn failed(&mut self, error: DecodeError) {
        self.acct.failed += 1;
        let text = format!("rows that make no sense: {error}");
        let known = self.acct.why.iter().any(|why| why.text == text);
        if known || self.acct.why.len() < REASONS_MAX {
            self.acct.because(1, text);
        } else {
            self.acct.because(1, "rows that make no sense for other reasons");
        }
    }

    pub(crate) fn unknown_attrs(&mut self, count: u64) {
        self.acct.unknown_attrs += count;
    }

    pub(crate) fn used(&mut self, door: &'static str) {
        self.acct.used(door);
    }

    /// Something for the footer that costs no row.
    pub(crate) fn note(&mut self, text: String) {
        self.acct.because(0, text);
    }

    /// Rows are missing, or are feared to.
    pub(crate) fn incomplete(&mut self, count: u64, text: String) {
        self.acct.incomplete = true;
        self.acct.because(count, text);
    }

    /// Rows handed out so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// True if some door was open.
    pub(crate) fn has_read(&self) -> bool {
        !self.acct.via.is_empty()
    }

    pub(crate) fn close(mut self) -> Accounting {
        self.acct.seen = self.rows + self.acct.doubled + self.acct.failed;
        self.acct
    }
}
