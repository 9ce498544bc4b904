//! Notices about an output during the run: the receiver is away, messages are lost, the disk is full.

use crate::ledger::Drops;
use crate::status::Status;
use std::time::{Duration, Instant};

/// Shortest time between two looks at the status.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Shortest time before an output repeats a notice.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// A change of an output that the user should learn of at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputNotice {
    /// The receiver is away, for this reason; messages wait.
    Away(String),
    /// The receiver is back after this time.
    Back(Duration),
    /// Messages were dropped.
    Dropped {
        /// One of [`Drops::reasons`].
        reason: &'static str,
        /// Number of messages dropped for this reason since the start of the run.
        count: u64,
        /// The last fault, if there was one.
        error: Option<String>,
    },
    /// The store has this fault, for example a full disk.
    StoreFault(String),
    /// The store works again.
    StoreWorks,
}

/// The function that the output's thread calls with each notice. Until it returns, only the thread that hands messages
/// over delivers any.
pub type NoticeHandler = Box<dyn FnMut(OutputNotice) + Send>;

/// The notices that an output's thread has given, and when.
pub(crate) struct Notices {
    tell: NoticeHandler,
    looked: Option<Instant>,
    /// When the receiver went away.
    away_since: Option<Instant>,
    away: StateReport,
    fault: StateReport,
    /// Drops of earlier runs.
    dropped_before: Drops,
    /// One for each reason, in the order of [`Drops::reasons`].
    dropped: [GrowthReport; 5],
}

/// A state that is reported when it begins and when it ends.
#[derive(Default)]
struct StateReport {
    /// True if the beginning was reported and the state lasts.
    is_said: bool,
    at: Option<Instant>,
}

/// A number that is reported when it has grown.
#[derive(Default)]
struct GrowthReport {
    said: u64,
    at: Option<Instant>,
}

fn is_due(at: Option<Instant>, now: Instant) -> bool {
    at.is_none_or(|at| now.duration_since(at) >= REPEAT_INTERVAL)
}

impl StateReport {
    /// Returns true if the beginning must be reported now.
    fn take_begin(&mut self, now: Instant) -> bool {
        let begins = !self.is_said && is_due(self.at, now);
        if begins {
            (self.is_said, self.at) = (true, Some(now));
        }
        begins
    }

    /// Returns true if the end must be reported now.
    fn take_end(&mut self) -> bool {
        std::mem::take(&mut self.is_said)
    }
}

impl GrowthReport {
    /// Returns the number if it must be reported now.
    fn due_growth(&mut self, to: u64, now: Instant) -> Option<u64> {
        if to <= self.said || !is_due(self.at, now) {
            return None;
        }
        (self.said, self.at) = (to, Some(now));
        Some(to)
    }
}

impl Notices {
    /// Passes notices to `tell`. Earlier runs of this output dropped `dropped_before`.
    pub(crate) fn new(tell: NoticeHandler, dropped_before: Drops) -> Notices {
        Notices {
            tell,
            looked: None,
            away_since: None,
            away: StateReport::default(),
            fault: StateReport::default(),
            dropped_before,
            dropped: Default::default(),
        }
    }

    /// Looks at the output at most ten times a second and reports changes. `status` returns `None` at the end of the
    /// run.
    pub(crate) fn check(&mut self, status: impl FnOnce() -> Option<Status>) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now.duration_since(looked) < CHECK_INTERVAL) {
            return;
        }
        self.looked = Some(now);
        let found = status().map(|status| self.find_changes(&status, now));
        found.into_iter().flatten().for_each(|notice| (self.tell)(notice));
    }

    fn find_changes(&mut self, status: &Status, now: Instant) -> Vec<OutputNotice> {
        let mut found = Vec::new();
        if status.is_open {
            let since = self.away_since.take();
            found.extend(
                since.filter(|_| self.away.take_end()).map(|since| OutputNotice::Back(now.duration_since(since))),
            );
        } else if let Some(error) = status.last_error.as_ref().filter(|_| status.failures > 0) {
            self.away_since.get_or_insert(now);
            found.extend(self.away.take_begin(now).then(|| OutputNotice::Away(error.clone())));
        }
        match status.store_trouble.clone() {
            Some(fault) => found.extend(self.fault.take_begin(now).then_some(OutputNotice::StoreFault(fault))),
            None => found.extend(self.fault.take_end().then_some(OutputNotice::StoreWorks)),
        }
        let before = self.dropped_before.reasons();
        let reasons = status.ledger.dropped.reasons().into_iter().zip(before);
        for (growth, ((reason, count), (_, before))) in self.dropped.iter_mut().zip(reasons) {
            let count = growth.due_growth(count.saturating_sub(before), now);
            let error = || status.last_error.clone();
            found.extend(count.map(|count| OutputNotice::Dropped { reason, count, error: error() }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_comes_and_goes_is_reported_once_a_minute() {
        let mut notices = Notices::new(Box::new(|_| ()), Drops::default());
        let (start, mut status) = (Instant::now(), Status::default());
        let mut at = |status: &Status, s: u64| notices.find_changes(status, start + Duration::from_secs(s));
        assert_eq!(at(&status, 0), [], "not tried yet");
        (status.failures, status.last_error) = (1, Some("why".to_owned()));
        assert_eq!(at(&status, 1), [OutputNotice::Away("why".to_owned())]);
        assert_eq!(at(&status, 2), []);
        (status.is_open, status.last_error) = (true, None);
        assert_eq!(at(&status, 5), [OutputNotice::Back(Duration::from_secs(4))]);
        (status.is_open, status.last_error) = (false, Some("again".to_owned()));
        assert_eq!(at(&status, 6), []);
        status.is_open = true;
        assert_eq!(at(&status, 7), [], "who was not told that it is away is not told that it is back");
        status.is_open = false;
        assert_eq!(at(&status, 60), []);
        assert_eq!(at(&status, 61), [OutputNotice::Away("again".to_owned())]);
        status.is_open = true;
        assert_eq!(at(&status, 90), [OutputNotice::Back(Duration::from_secs(30))], "since it was away, not said");
    }

    #[test]
    fn drops_are_reported_at_once_and_then_once_a_minute() {
        let before = Drops { full: 7, ..Drops::default() };
        let mut notices = Notices::new(Box::new(|_| ()), before);
        let (start, mut status) = (Instant::now(), Status::default());
        let mut at = |status: &Status, s: u64| notices.find_changes(status, start + Duration::from_secs(s));
        let of = |reason, count| OutputNotice::Dropped { reason, count, error: None };
        status.ledger.dropped.full = 7;
        assert_eq!(at(&status, 0), [], "an earlier run has said it");
        status.ledger.dropped.full = 9;
        assert_eq!(at(&status, 1), [of("full", 2)]);
        status.ledger.dropped.full = 19;
        status.ledger.dropped.refused = 1;
        assert_eq!(at(&status, 2), [of("refused", 1)]);
        assert_eq!(at(&status, 61), [of("full", 12)]);
        assert_eq!(at(&status, 900), []);
    }
}
