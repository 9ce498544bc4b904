//! What is said of an output while the run lasts: a receiver that is away, messages that are lost, a full disk.

use crate::ledger::Drops;
use std::time::{Duration, Instant};

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same is said of an output at most once in this time.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// What has changed at an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputNotice {
    /// The receiver is away, and why; messages wait.
    Away(String),
    /// It is back after so long.
    Back(Duration),
    /// Messages were dropped.
    Dropped {
        /// One of [`Drops::reasons`].
        reason: &'static str,
        /// How many, for this reason, since the start of the run.
        count: u64,
        /// The last fault, if one was there.
        error: Option<String>,
    },
    /// What hinders the store.
    StoreTrouble(String),
    /// Nothing hinders it any more.
    StoreWorks,
}

/// Who is told, by the output's thread: while it does not return, only who hands messages over delivers any.
pub type TellNotice = Box<dyn FnMut(OutputNotice) + Send>;

/// How an output is at one time.
#[derive(Default)]
pub(crate) struct OutputFacts {
    pub(crate) is_open: bool,
    /// How often opening or writing has failed.
    pub(crate) failures: u64,
    pub(crate) last_error: Option<String>,
    pub(crate) store_trouble: Option<String>,
    pub(crate) dropped: Drops,
    /// True if the run has ended.
    pub(crate) is_ending: bool,
}

/// What was told, and what is to be told next.
pub(crate) struct Notices {
    tell: TellNotice,
    looked: Option<Instant>,
    /// Since when the receiver is away.
    away_since: Option<Instant>,
    away: Saying,
    trouble: Saying,
    /// Those of earlier runs.
    dropped_before: Drops,
    /// As [`Drops::reasons`].
    dropped: [Growth; 5],
}

/// A state that is said when it begins, and when it is over.
#[derive(Default)]
struct Saying {
    /// True if it was said, and is not over.
    is_said: bool,
    at: Option<Instant>,
}

/// A number that is said when it has grown.
#[derive(Default)]
struct Growth {
    said: u64,
    at: Option<Instant>,
}

fn is_due(at: Option<Instant>, now: Instant) -> bool {
    at.is_none_or(|at| now.duration_since(at) >= SAID_EVERY)
}

impl Saying {
    /// True if it is to be said that it has begun.
    fn begins(&mut self, now: Instant) -> bool {
        let begins = !self.is_said && is_due(self.at, now);
        if begins {
            (self.is_said, self.at) = (true, Some(now));
        }
        begins
    }

    /// True if it is to be said that it is over.
    fn ends(&mut self) -> bool {
        std::mem::take(&mut self.is_said)
    }
}

impl Growth {
    /// The number, if it is to be said.
    fn grown(&mut self, to: u64, now: Instant) -> Option<u64> {
        if to <= self.said || !is_due(self.at, now) {
            return None;
        }
        (self.said, self.at) = (to, Some(now));
        Some(to)
    }
}

impl Notices {
    /// Tells `tell` what becomes of an output that had dropped this before.
    pub(crate) fn new(tell: TellNotice, dropped_before: Drops) -> Notices {
        Notices {
            tell,
            looked: None,
            away_since: None,
            away: Saying::default(),
            trouble: Saying::default(),
            dropped_before,
            dropped: Default::default(),
        }
    }

    /// Looks at `facts` some times a second, and tells what has changed.
    pub(crate) fn look(&mut self, facts: impl FnOnce() -> OutputFacts) {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now.duration_since(looked) < LOOK_EVERY) {
            return;
        }
        self.looked = Some(now);
        let found = self.found(&facts(), now);
        found.into_iter().for_each(|notice| (self.tell)(notice));
    }

    fn found(&mut self, facts: &OutputFacts, now: Instant) -> Vec<OutputNotice> {
        let mut found = Vec::new();
        // What is left at the end is said by whoever ends the run.
        if facts.is_ending {
            return found;
        }
        if facts.is_open {
            let since = self.away_since.take();
            found.extend(since.filter(|_| self.away.ends()).map(|since| OutputNotice::Back(now.duration_since(since))));
        } else if let Some(error) = facts.last_error.as_ref().filter(|_| facts.failures > 0) {
            self.away_since.get_or_insert(now);
            found.extend(self.away.begins(now).then(|| OutputNotice::Away(error.clone())));
        }
        match facts.store_trouble.clone() {
            Some(trouble) => found.extend(self.trouble.begins(now).then_some(OutputNotice::StoreTrouble(trouble))),
            None => found.extend(self.trouble.ends().then_some(OutputNotice::StoreWorks)),
        }
        let before = self.dropped_before.reasons();
        let reasons = facts.dropped.reasons().into_iter().zip(before);
        for (growth, ((reason, count), (_, before))) in self.dropped.iter_mut().zip(reasons) {
            let count = growth.grown(count.saturating_sub(before), now);
            let error = || facts.last_error.clone();
            found.extend(count.map(|count| OutputNotice::Dropped { reason, count, error: error() }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_comes_and_goes_is_said_once_a_minute() {
        let mut notices = Notices::new(Box::new(|_| ()), Drops::default());
        let (start, mut facts) = (Instant::now(), OutputFacts::default());
        let mut at = |facts: &OutputFacts, s: u64| notices.found(facts, start + Duration::from_secs(s));
        assert_eq!(at(&facts, 0), [], "not tried yet");
        (facts.failures, facts.last_error) = (1, Some("why".to_owned()));
        assert_eq!(at(&facts, 1), [OutputNotice::Away("why".to_owned())]);
        assert_eq!(at(&facts, 2), []);
        (facts.is_open, facts.last_error) = (true, None);
        assert_eq!(at(&facts, 5), [OutputNotice::Back(Duration::from_secs(4))]);
        (facts.is_open, facts.last_error) = (false, Some("again".to_owned()));
        assert_eq!(at(&facts, 6), []);
        facts.is_open = true;
        assert_eq!(at(&facts, 7), [], "who was not told that it is away is not told that it is back");
        facts.is_open = false;
        assert_eq!(at(&facts, 60), []);
        assert_eq!(at(&facts, 61), [OutputNotice::Away("again".to_owned())]);
        facts.is_open = true;
        assert_eq!(at(&facts, 90), [OutputNotice::Back(Duration::from_secs(30))], "since it was away, not said");
        facts.is_open = false;
        facts.is_ending = true;
        assert_eq!(at(&facts, 900), [], "the end");
    }

    #[test]
    fn what_is_dropped_is_said_at_once_and_then_once_a_minute() {
        let before = Drops { full: 7, ..Drops::default() };
        let mut notices = Notices::new(Box::new(|_| ()), before);
        let (start, mut facts) = (Instant::now(), OutputFacts::default());
        let mut at = |facts: &OutputFacts, s: u64| notices.found(facts, start + Duration::from_secs(s));
        let of = |reason, count| OutputNotice::Dropped { reason, count, error: None };
        facts.dropped.full = 7;
        assert_eq!(at(&facts, 0), [], "an earlier run has said it");
        facts.dropped.full = 9;
        assert_eq!(at(&facts, 1), [of("full", 2)]);
        facts.dropped.full = 19;
        facts.dropped.refused = 1;
        assert_eq!(at(&facts, 2), [of("refused", 1)]);
        assert_eq!(at(&facts, 61), [of("full", 12)]);
        assert_eq!(at(&facts, 900), []);
    }
}
