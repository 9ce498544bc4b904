//! The books of a run while it goes on.
use record::Accounting;

use crate::error::DecodeError;

/// Broken input may give every row a reason of its own; more than these are told as one.
const REASONS_MAX: usize = 8;

/// Counts, and where the doors that were used stand.
#[derive(Debug, Default)]
pub(crate) struct Books {
    rows: u64,
    acct: Accounting,
}

impl Books {
    #[inline]
    pub(crate) fn row(&mut self) {
        self.rows += 1;
    }

    /// Rows handed out so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// A row that is out already.
    pub(crate) fn doubled(&mut self) {
        self.acct.doubled += 1;
    }

    pub(crate) fn failed(&mut self, count: u64, error: Option<DecodeError>) {
        self.acct.failed += count;
        let Some(error) = error.filter(|_| count > 0) else { return };
        let text = format!("entries that make no sense: {error}");
        let known = self.acct.why.iter().any(|why| why.text == text);
        if known || self.acct.why.len() < REASONS_MAX {
            return self.acct.because(count, text);
        }
        self.acct.because(count, "entries that make no sense for other reasons");
    }

    pub(crate) fn unknown_attrs(&mut self, count: u64) {
        self.acct.unknown_attrs += count;
    }

    pub(crate) fn used(&mut self, door: &'static str) {
        self.acct.used(door);
    }

    /// Something for the footer that costs no row.
    pub(crate) fn note(&mut self, text: impl Into<std::borrow::Cow<'static, str>>) {
        self.acct.because(0, text);
    }

    /// Rows are missing, or are feared to.
    pub(crate) fn incomplete(&mut self, text: impl Into<std::borrow::Cow<'static, str>>) {
        self.acct.incomplete = true;
        self.acct.because(0, text);
    }

    pub(crate) fn close(mut self) -> Accounting {
        self.acct.seen = self.rows + self.acct.doubled + self.acct.failed;
        self.acct
    }
}
