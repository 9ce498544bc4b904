//! Listings of the rules of one namespace, each with the time when its rules may have been in force.

use crate::nft::ListingBounds;
use host::rule_texts::RuleTexts;
use std::collections::VecDeque;
use std::ops::Range;
use sys::Errno;

/// Bound: rules of all listings that `log` keeps, about 500 bytes each; the two newest listings are kept whole. Beyond:
/// the oldest are forgotten: their records have no rule, counted
/// (`log_rules::root_log_says_that_rules_change_faster_than_they_are_listed`). By: the owner of a namespace.
const LISTED_RULES_MAX: usize = 100_000;
const LISTINGS_MIN: usize = 2;

/// Rules of one kind, taken from a listing: those that log, or those that drop.
pub(super) trait RuleSet: Sized {
    /// The first word of the recording's key.
    const NAME: &'static str;
    /// The part of a [`ListingHead`] that a recording stores before each listing.
    const HEAD: Range<usize>;
    /// Limits for listing a namespace other than the run's own, whose owner may try to delay the run.
    const OTHERS: ListingBounds;
    /// Maximum number of listings to keep.
    const LISTINGS_MAX: usize;

    /// Takes the rules from a listing in JSON, and their texts.
    fn parse(json: &[u8], texts: &RuleTexts) -> Result<Self, Errno>;

    /// Number of rules.
    fn count(&self) -> usize;
}

/// Number of the listing, starting at 1; the earliest time when its rules may have been in force; the latest time of
/// those listed before; 1 if rules may have changed between the two listings. Times are in ns since 1970.
pub(super) type ListingHead = [u64; 4];

/// The place of the number in a [`ListingHead`].
pub(super) const NUMBER: usize = 0;

/// The rules at one time.
pub(super) struct Listing<R> {
    /// The earliest time when they may have been in force, in ns since 1970.
    from_ns: u64,
    /// The latest time when they may have been in force.
    until_ns: u64,
    /// True if rules may have changed between the previous listing and this one.
    pub(super) is_after_change: bool,
    pub(super) rules: R,
}

/// The time of a packet: between these values, in ns since 1970.
pub(super) type Window = (u64, u64);

impl<R> Listing<R> {
    /// Rules in force since `from_ns` at the earliest.
    pub(super) fn new(from_ns: u64, is_after_change: bool, rules: R) -> Listing<R> {
        Listing { from_ns, until_ns: u64::MAX, is_after_change, rules }
    }

    /// True if, during a part of the window, rules were in force between `earlier` and this listing that were never
    /// listed.
    fn is_after_a_gap(&self, earlier: &Listing<R>, (from_ns, until_ns): Window) -> bool {
        let gap = earlier.until_ns..self.from_ns;
        !gap.is_empty() && gap.start < until_ns && from_ns < gap.end
    }
}

/// Listings, the newest last.
pub(super) struct Listings<R> {
    pub(super) list: VecDeque<Listing<R>>,
    /// Number of rules in all listings.
    rules: usize,
    /// Until this time, rules were in force that are not kept; 0 if all are kept.
    forgotten_ns: u64,
}

impl<R> Default for Listings<R> {
    fn default() -> Listings<R> {
        Listings { list: VecDeque::new(), rules: 0, forgotten_ns: 0 }
    }
}

impl<R: RuleSet> Listings<R> {
    /// Limits the time of the newest listing: it was in force until then at the latest.
    pub(super) fn end(&mut self, until_ns: u64) {
        if let Some(newest) = self.list.back_mut() {
            newest.until_ns = newest.until_ns.min(until_ns);
        }
    }

    /// Adds the current rules. Forgets the oldest listings if there are too many, but never the two newest.
    pub(super) fn add(&mut self, listing: Listing<R>) {
        self.rules += listing.rules.count();
        self.list.push_back(listing);
        let is_too_much = |all: &Listings<R>| all.list.len() > R::LISTINGS_MAX || all.rules > LISTED_RULES_MAX;
        while self.list.len() > LISTINGS_MIN && is_too_much(self) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.list.pop_front() else { return };
        self.rules -= oldest.rules.count();
        self.forgotten_ns = self.forgotten_ns.max(oldest.until_ns);
    }

    /// Forgets all but the newest, as if its rules had never changed.
    pub(super) fn forget_earlier(&mut self) {
        while self.list.len() > 1 {
            self.forget_oldest();
        }
        self.list.iter_mut().for_each(|listing| listing.is_after_change = false);
    }

    /// Notes that the newest listing may differ from the rules that packets met.
    pub(super) fn note_change(&mut self) {
        if let Some(newest) = self.list.back_mut() {
            newest.is_after_change = true;
        }
    }

    /// The rules that may have been in force in a part of that time; `None` if they are not completely known.
    pub(super) fn in_force(&self, window: Window) -> Option<impl Iterator<Item = &R>> {
        // Each listing ends later than the previous one, or there is a gap between it and the next.
        let since = self.list.partition_point(|listing| listing.until_ns < window.0);
        let is_kept = since > 0 || self.forgotten_ns < window.0 || self.forgotten_ns == 0;
        let list = &self.list;
        let from = |index: usize| list.iter().skip(index);
        let mut pairs = from(since.saturating_sub(1)).zip(from(since.max(1)));
        if !is_kept || pairs.any(|(earlier, later)| later.is_after_a_gap(earlier, window)) {
            return None;
        }
        Some(from(since).filter(move |listing| listing.from_ns <= window.1).map(|listing| &listing.rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many rules as the number says.
    struct Numbered(usize);

    impl RuleSet for Numbered {
        const NAME: &'static str = "test";
        const HEAD: Range<usize> = 0..0;
        const OTHERS: ListingBounds = ListingBounds::USUAL;
        const LISTINGS_MAX: usize = 1024;

        fn parse(_: &[u8], _: &RuleTexts) -> Result<Numbered, Errno> {
            Err(Errno::INVAL)
        }

        fn count(&self) -> usize {
            self.0
        }
    }

    fn counts(listings: &Listings<Numbered>, window: Window) -> Option<Vec<usize>> {
        Some(listings.in_force(window)?.map(|rules| rules.0).collect())
    }

    /// In a time with unknown rules there is no answer: neither that there was no rule, nor a later rule.
    #[test]
    fn rules_that_were_never_listed_or_are_not_kept_are_unknown() {
        let add = |listings: &mut Listings<Numbered>, at: u64, count: usize| {
            listings.end(100 * at);
            listings.add(Listing::new(100 * at - 10, false, Numbered(count)));
        };
        let mut listings = Listings::default();
        (1..=1024).for_each(|at| add(&mut listings, at, 1));
        assert_eq!(counts(&listings, (0, 1)), Some(Vec::new()), "all are kept");
        (1025..=1030).for_each(|at| add(&mut listings, at, 1));
        assert_eq!((listings.list.len(), listings.rules), (1024, 1024));
        // The sixth ended when the seventh was added.
        assert_eq!(counts(&listings, (700, 750)), None);
        assert_eq!(counts(&listings, (701, 750)), Some(vec![1]));
        // The current and the previous rules are kept, regardless of their number.
        (1031..=1033).for_each(|at| add(&mut listings, at, 60_000));
        assert_eq!((listings.list.len(), listings.rules), (2, 120_000));
        assert_eq!(counts(&listings, (103_200, 103_250)), None);
        assert!(counts(&listings, (103_201, 103_250)).is_some());
        // After several changes: the rules between 104,000 and 104,500 were never listed.
        listings.end(104_000);
        listings.add(Listing::new(104_500, false, Numbered(7)));
        for window in [(103_900, 104_001), (104_000, 104_600), (104_100, 104_200), (104_499, 104_800)] {
            assert_eq!(counts(&listings, window), None, "{window:?}");
        }
        assert_eq!(counts(&listings, (104_500, 104_501)), Some(vec![7]));
        assert!(counts(&listings, (103_900, 104_000)).is_some());
    }
}
