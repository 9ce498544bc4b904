//! Merges the row counts of several readings into one.
use std::error::Error;

use crate::{Accounting, SourceError, SourceFault};

/// Adds up readings, one per network namespace. A reading that fails loses its own rows and adds a line; the run
/// continues.
#[derive(Debug, Default)]
pub struct MergedStats {
    /// The sum so far.
    pub stats: Accounting,
    has_read: bool,
    failure: Option<SourceError>,
}

impl MergedStats {
    /// Adds a finished reading.
    pub fn add(&mut self, read: Result<Accounting, SourceError>) {
        match read {
            Ok(stats) => {
                self.add_success();
                self.stats.add(&stats);
            }
            Err(error) => self.add_failure(error),
        }
    }

    /// Records that a reading succeeded whose row counts were already added, or that counts no rows.
    pub fn add_success(&mut self) {
        self.has_read = true;
    }

    /// Records a reading that delivered nothing.
    pub fn add_failure(&mut self, error: SourceError) {
        self.stats.incomplete(1, error.to_string());
        self.failure.get_or_insert(error);
    }

    /// Records network namespaces that disappeared before they were read. Their contents disappeared with them, so the
    /// table is as complete as one that is read a moment later.
    pub fn add_vanished(&mut self, count: u64) {
        if count > 0 {
            self.stats.add_reason(count, "a network namespace was removed before it was read");
        }
    }

    /// Records network namespaces that could not be entered, all for the same reason: a missing right or some other
    /// error.
    pub fn not_entered(&mut self, is_denied: bool, why: impl Error + Send + Sync + 'static) {
        self.stats.incomplete(0, why.to_string());
        let fault = if is_denied { SourceFault::Denied } else { SourceFault::Io };
        let what = "network namespaces";
        self.failure.get_or_insert_with(|| SourceError { what, fault, cause: Box::new(why) });
    }

    /// The merged row counts; the first error if no reading succeeded.
    pub fn finish(self) -> Result<Accounting, SourceError> {
        match self.failure {
            Some(error) if !self.has_read => Err(error),
            _ => Ok(self.stats),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(fault: SourceFault) -> SourceError {
        SourceError { what: "a table", fault, cause: "of no reason".into() }
    }

    #[test]
    fn one_that_fails_costs_itself() {
        let mut many = MergedStats::default();
        many.add(Err(error(SourceFault::Io)));
        many.add(Ok(Accounting { seen: 7, emitted: 7, ..Accounting::default() }));
        many.add_vanished(2);
        let stats = many.finish().unwrap_or_default();
        assert_eq!((stats.seen, stats.is_partial(), stats.why.len()), (7, true, 2));
    }

    #[test]
    fn nothing_at_all_is_the_first_error() {
        let mut many = MergedStats::default();
        many.add_vanished(1);
        many.not_entered(true, std::io::Error::other("no right"));
        many.add_failure(error(SourceFault::Io));
        assert_eq!(many.finish().map_err(|error| error.fault).err(), Some(SourceFault::Denied));
        assert!(MergedStats::default().finish().is_ok_and(|stats| !stats.is_partial()));
    }
}
