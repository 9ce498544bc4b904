//! The row counts of a run while a source reads.
use std::borrow::Cow;
use std::fmt;

use crate::Accounting;

/// Hostile or broken input may give every row a reason of its own; more than these are told as one.
const REASONS_MAX: usize = 8;

/// Counts of rows as they are read, the backends that were used, what is to be said of it all; in the end the run's
/// [`Accounting`]. A row costs two additions: one where it comes from the kernel, one for what becomes of it. Nothing
/// derives one from the other, so that a row which gets lost on the way shows as a difference.
#[derive(Debug, Default)]
pub struct RowStats {
    /// Rows that came from the kernel or the recording.
    seen: u64,
    rows: u64,
    acct: Accounting,
}

impl RowStats {
    /// Records came: messages, lines, rows of a block, whether or not they make sense. Called where they come from.
    #[inline]
    pub fn arrived(&mut self, rows: u64) {
        self.seen += rows;
    }

    /// A row that the kernel sends twice by design came the second time: the two count as one.
    pub fn repeated(&mut self) {
        self.seen = self.seen.saturating_sub(1);
    }

    /// A row that is handed out.
    #[inline]
    pub fn row(&mut self) {
        self.rows += 1;
    }

    /// Rows handed out so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// A row that the source's own part of the filter leaves out.
    #[inline]
    pub fn filtered(&mut self) {
        self.acct.filtered += 1;
    }

    /// A row that is out already.
    pub fn duplicate(&mut self) {
        self.acct.duplicates += 1;
    }

    /// A row that makes no sense.
    #[cold]
    pub fn failed(&mut self, error: impl fmt::Display) {
        self.failed_rows(1, Some(error));
    }

    /// Counts a record that arrived and makes no sense.
    #[cold]
    pub fn undecoded(&mut self, error: impl fmt::Display) {
        self.arrived(1);
        self.failed(error);
    }

    /// Rows that make no sense, with the reason of the first one.
    pub fn failed_rows(&mut self, count: u64, first: Option<impl fmt::Display>) {
        self.acct.failed += count;
        let Some(error) = first.filter(|_| count > 0) else { return };
        let text = format!("rows that make no sense: {error}");
        let known = self.acct.why.iter().any(|why| why.text == text);
        if known || self.acct.why.len() < REASONS_MAX {
            return self.acct.add_reason(count, text);
        }
        self.acct.add_reason(count, "rows that make no sense for other reasons");
    }

    /// Attributes of a newer kernel that were skipped.
    pub fn unknown_attrs(&mut self, count: u64) {
        self.acct.unknown_attrs += count;
    }

    /// A backend that gave something.
    pub fn used(&mut self, backend: &'static str) {
        self.acct.used(backend);
    }

    /// True if some backend was open.
    pub fn has_read(&self) -> bool {
        !self.acct.via.is_empty()
    }

    /// Something for the footer that costs no row.
    pub fn note(&mut self, text: impl Into<Cow<'static, str>>) {
        self.acct.add_reason(0, text);
    }

    /// Rows are missing, or are feared to: `count` of them, 0 if nobody knows.
    pub fn incomplete(&mut self, count: u64, text: impl Into<Cow<'static, str>>) {
        self.acct.incomplete = true;
        self.acct.add_reason(count, text);
    }

    /// The question is wider than what the recording holds ([`Accounting::unanswered`]).
    pub fn unanswered(&mut self, text: impl Into<Cow<'static, str>>) {
        self.acct.unanswered = true;
        self.acct.add_reason(0, text);
    }

    /// All that was read is in.
    pub fn close(mut self) -> Accounting {
        self.acct.seen = self.seen;
        self.acct
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_end_but_counts_do_not() {
        let mut stats = RowStats::default();
        for n in 0..20 {
            stats.failed(n);
            stats.failed(0);
        }
        stats.failed_rows(5, Some("late"));
        stats.failed_rows(0, Some("none of this"));
        stats.row();
        stats.duplicate();
        stats.arrived(48);
        let acct = stats.close();
        assert_eq!((acct.seen, acct.failed, acct.duplicates), (48, 45, 1));
        assert_eq!((acct.why.len(), acct.why.iter().map(|why| why.count).sum::<u64>()), (REASONS_MAX + 1, 45));
        assert_eq!((acct.why[0].count, &*acct.why[0].text), (21, "rows that make no sense: 0"));
    }
}
