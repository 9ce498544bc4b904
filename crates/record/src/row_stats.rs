//! The row counts of a run while a source is reading.
use std::borrow::Cow;
use std::fmt;

use crate::Accounting;

/// The maximum number of separate reasons. Hostile or broken input could produce a different reason for every row, so
/// further reasons are reported as one.
///
/// Bound: different reasons for missing rows. Beyond: further reasons are reported as one; the counts stay exact. By:
/// any user who can make rows malformed.
const REASONS_MAX: usize = 8;

/// Counts rows as they are read, and collects the backends used and the notes; [`RowStats::close`] turns it into the
/// run's [`Accounting`]. A row costs two additions: one when it arrives from the kernel and one when its fate is
/// decided. Neither count is derived from the other, so a lost row shows up as a difference.
#[derive(Debug, Default)]
pub struct RowStats {
    /// Rows that the kernel or the recording delivered.
    seen: u64,
    rows: u64,
    acct: Accounting,
}

impl RowStats {
    /// Counts records on arrival (messages, lines, or rows of a block), whether or not they can be decoded.
    #[inline]
    pub fn add_arrived(&mut self, rows: u64) {
        self.seen += rows;
    }

    /// Counts the second copy of a row that the kernel sends twice by design: both copies count as one.
    pub fn add_repeated(&mut self) {
        self.seen = self.seen.saturating_sub(1);
    }

    /// Counts a row that is handed out.
    #[inline]
    pub fn row(&mut self) {
        self.rows += 1;
    }

    /// Rows handed out so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Counts a row that the source's own part of the filter rejects.
    #[inline]
    pub fn add_filtered(&mut self) {
        self.acct.filtered += 1;
    }

    /// Counts a row that was handed out before.
    pub fn duplicate(&mut self) {
        self.acct.duplicates += 1;
    }

    /// Counts a malformed row.
    #[cold]
    pub fn add_failed(&mut self, error: impl fmt::Display) {
        self.failed_rows(1, Some(error));
    }

    /// Counts a malformed record that has not been counted as arrived.
    #[cold]
    pub fn add_undecoded(&mut self, error: impl fmt::Display) {
        self.add_arrived(1);
        self.add_failed(error);
    }

    /// Counts malformed rows, with the reason for the first one.
    pub fn failed_rows(&mut self, count: u64, first: Option<impl fmt::Display>) {
        self.acct.failed += count;
        let Some(error) = first.filter(|_| count > 0) else { return };
        let text = format!("malformed rows: {error}");
        let known = self.acct.why.iter().any(|why| why.text == text);
        if known || self.acct.why.len() < REASONS_MAX {
            return self.acct.add_reason(count, text);
        }
        self.acct.add_reason(count, "malformed rows for other reasons");
    }

    /// Counts skipped attributes of a newer kernel.
    pub fn unknown_attrs(&mut self, count: u64) {
        self.acct.unknown_attrs += count;
    }

    /// Records a backend that delivered rows.
    pub fn add_backend(&mut self, backend: &'static str) {
        self.acct.add_backend(backend);
    }

    /// True if at least one backend was used.
    pub fn has_read(&self) -> bool {
        !self.acct.via.is_empty()
    }

    /// Adds a note to the footer that concerns no row.
    pub fn add_note(&mut self, text: impl Into<Cow<'static, str>>) {
        self.acct.add_reason(0, text);
    }

    /// Records that rows are, or may be, missing: `count` of them, or 0 if the number is unknown.
    pub fn incomplete(&mut self, count: u64, text: impl Into<Cow<'static, str>>) {
        self.acct.incomplete(count, text);
    }

    /// Records that the query covers more than the recording holds ([`Accounting::unanswered`]).
    pub fn add_unanswered(&mut self, text: impl Into<Cow<'static, str>>) {
        self.acct.unanswered = true;
        self.acct.add_reason(0, text);
    }

    /// Finishes counting once all input has been read.
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
            stats.add_failed(n);
            stats.add_failed(0);
        }
        stats.failed_rows(5, Some("late"));
        stats.failed_rows(0, Some("none of this"));
        stats.row();
        stats.duplicate();
        stats.add_arrived(48);
        let acct = stats.close();
        assert_eq!((acct.seen, acct.failed, acct.duplicates), (48, 45, 1));
        assert_eq!((acct.why.len(), acct.why.iter().map(|why| why.count).sum::<u64>()), (REASONS_MAX + 1, 45));
        assert_eq!((acct.why[0].count, &*acct.why[0].text), (21, "malformed rows: 0"));
    }
}
