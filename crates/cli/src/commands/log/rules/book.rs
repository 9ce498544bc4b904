//! Finds the rules that may have logged a record, in listings that each have the time when they may have been in
//! force.
//!
//! A record identifies its rule only by group, prefix and hook, and rules may change before the record arrives. So a
//! record is looked up in every listing that may have been in force when it was made. If several rules match, only the
//! values that they share are shown.

use host::log_rules::LogRule;
use host::rule_texts::RuleTexts;
use record::rows::{LogRecord, LoggingRule};
use std::collections::{HashMap, VecDeque};

/// Maximum number of listings to keep, and of all their rules, about 500 bytes each; the two newest are always kept.
///
/// Bound: listings of rules that `log` keeps. Beyond: the oldest are forgotten: their records have no rule, counted.
/// By: the owner of a namespace.
const LISTINGS_MAX: usize = 1024;
/// Bound: rules of all listings that `log` keeps; the two newest listings are kept whole. Beyond: the oldest are
/// forgotten: their records have no rule, counted
/// (`log_rules::root_log_says_that_rules_change_faster_than_they_are_listed`). By: the owner of a namespace.
const RULES_MAX: usize = 100_000;
const LISTINGS_MIN: usize = 2;

/// Listings, the newest last.
#[derive(Default)]
pub(super) struct RuleBook {
    listings: VecDeque<Listing>,
    /// Number of rules in all listings.
    rules: usize,
    /// Until this time, rules were in force that are not kept; 0 if all are kept.
    forgotten_ns: u64,
}

/// The rules at one time.
pub(super) struct Listing {
    /// The earliest time when they may have been in force, in ns since 1970.
    from_ns: u64,
    /// The latest time when they may have been in force.
    until_ns: u64,
    /// Maps group to prefix to rules.
    rules: HashMap<u16, ByPrefix>,
    /// Number of rules.
    count: usize,
}

/// Rules of one group with their texts.
type ByPrefix = HashMap<Box<[u8]>, Vec<(LogRule, Option<Box<str>>)>>;

/// The rule that logged a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RuleMatch<'b> {
    /// The record matches no listed rule.
    None,
    /// Exactly one rule.
    One(LoggingRule<'b>),
    /// One of several rules, which share these values.
    Several(LoggingRule<'b>),
}

/// The time when a record was made: between these values, in ns since 1970.
pub(super) type Window = (u64, u64);

impl Listing {
    /// Rules in force since `from_ns` at the earliest.
    pub(super) fn new(from_ns: u64, rules: Vec<LogRule>, texts: &RuleTexts) -> Listing {
        let (count, mut by_group) = (rules.len(), HashMap::<u16, ByPrefix>::new());
        for rule in rules {
            let text = texts.of(&rule.table, rule.handle).map(Box::from);
            let of_group = by_group.entry(rule.group).or_default();
            of_group.entry(rule.prefix.as_bytes().into()).or_default().push((rule, text));
        }
        Listing { from_ns, until_ns: u64::MAX, rules: by_group, count }
    }

    /// True if, during a part of the window, rules were in force between `earlier` and this listing that were never
    /// listed.
    fn is_after_a_gap(&self, earlier: &Listing, (from_ns, until_ns): Window) -> bool {
        let gap = earlier.until_ns..self.from_ns;
        !gap.is_empty() && gap.start < until_ns && from_ns < gap.end
    }
}

impl RuleBook {
    /// Limits the time of the newest listing: it was in force until then at the latest.
    pub(super) fn end(&mut self, until_ns: u64) {
        if let Some(newest) = self.listings.back_mut() {
            newest.until_ns = newest.until_ns.min(until_ns);
        }
    }

    /// Adds the current rules.
    pub(super) fn add(&mut self, listing: Listing) {
        self.rules += listing.count;
        self.listings.push_back(listing);
        let is_too_much = |book: &RuleBook| book.listings.len() > LISTINGS_MAX || book.rules > RULES_MAX;
        while self.listings.len() > LISTINGS_MIN && is_too_much(self) {
            let Some(oldest) = self.listings.pop_front() else { break };
            self.rules -= oldest.count;
            self.forgotten_ns = self.forgotten_ns.max(oldest.until_ns);
        }
    }

    /// The rule that logged `record` in that time; `None` if the rules of that time are not completely known. Costs a
    /// hash of the prefix for each listing of that time.
    pub(super) fn find(&self, record: &LogRecord<'_>, window: Window) -> Option<RuleMatch<'_>> {
        // Each listing ends later than the previous one, or there is a gap between it and the next.
        let since = self.listings.partition_point(|listing| listing.until_ns < window.0);
        let is_kept = since > 0 || self.forgotten_ns < window.0 || self.forgotten_ns == 0;
        let from = |index: usize| self.listings.iter().skip(index);
        let mut pairs = from(since.saturating_sub(1)).zip(from(since.max(1)));
        if !is_kept || pairs.any(|(earlier, later)| later.is_after_a_gap(earlier, window)) {
            return None;
        }
        let listings = from(since).filter(|listing| listing.from_ns <= window.1);
        let rules = listings.filter_map(|listing| listing.rules.get(&record.group)?.get(record.prefix));
        let (family, hook) = (record.family_name(), record.hook_name());
        let mut found = RuleMatch::None;
        for (rule, text) in rules.flatten().filter(|(rule, _)| rule.can_meet(family, hook)) {
            let this = LoggingRule {
                table: Some(&rule.table),
                chain: Some(&rule.chain),
                handle: Some(rule.handle),
                verdict: rule.verdict,
                comment: rule.comment.as_deref(),
                text: text.as_deref(),
            };
            found = match found {
                RuleMatch::None => RuleMatch::One(this),
                // It is also in the previous listing.
                RuleMatch::One(known) if known == this => RuleMatch::One(this),
                RuleMatch::One(known) | RuleMatch::Several(known) => RuleMatch::Several(known.common(&this)),
            };
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(handle: u64, prefix: &str, hooks: Option<&[&str]>) -> LogRule {
        let hooks = hooks.map(|hooks| hooks.iter().map(|hook| (*hook).to_owned()).collect());
        let place = LogRule { table: "inet t".to_owned(), chain: "c".to_owned(), ..LogRule::default() };
        LogRule { handle, group: 1, prefix: prefix.to_owned(), comment: Some("why".to_owned()), hooks, ..place }
    }

    fn handle(found: &Option<RuleMatch<'_>>) -> Option<u64> {
        match found {
            Some(RuleMatch::One(rule)) => rule.handle,
            _ => None,
        }
    }

    fn input() -> LogRecord<'static> {
        LogRecord { group: 1, family: 2, hook: 1, prefix: b"a", ..LogRecord::default() }
    }

    #[test]
    fn a_rule_is_found_by_group_prefix_and_hook() {
        let mut book = RuleBook::default();
        let rules = vec![rule(1, "a", Some(&["input"])), rule(2, "a", Some(&["output"])), rule(3, "b", None)];
        book.add(Listing::new(0, rules, &RuleTexts::default()));
        let found = |record: &LogRecord<'_>| handle(&book.find(record, (5, 9)));
        assert_eq!(found(&input()), Some(1));
        assert_eq!(found(&LogRecord { hook: 3, ..input() }), Some(2));
        assert_eq!(found(&LogRecord { hook: 0, ..input() }), None);
        assert_eq!(found(&LogRecord { prefix: b"b", hook: 0, ..input() }), Some(3), "whatever the hook");
        assert_eq!(found(&LogRecord { group: 2, ..input() }), None);
        assert_eq!(found(&LogRecord { family: 7, ..input() }), None, "a frame of a bridge");
    }

    #[test]
    fn of_several_rules_none_is_named() {
        let mut book = RuleBook::default();
        book.add(Listing::new(0, vec![rule(1, "a", None), rule(2, "a", None)], &RuleTexts::default()));
        let Some(RuleMatch::Several(common)) = book.find(&input(), (5, 9)) else { panic!("one was named") };
        assert_eq!((common.chain, common.comment, common.handle), (Some("c"), Some("why"), None));
    }

    #[test]
    fn a_record_is_looked_up_in_what_was_in_force_then() {
        let mut book = RuleBook::default();
        book.add(Listing::new(0, vec![rule(1, "a", None)], &RuleTexts::default()));
        book.end(200);
        book.add(Listing::new(100, vec![rule(9, "a", None)], &RuleTexts::default()));
        for (window, expected) in [((10, 99), Some(1)), ((90, 120), None), ((150, 160), None), ((201, 300), Some(9))] {
            assert_eq!(handle(&book.find(&input(), window)), expected, "{window:?}");
        }
        book.end(400);
        book.add(Listing::new(350, vec![rule(9, "a", None), rule(5, "b", None)], &RuleTexts::default()));
        assert_eq!(handle(&book.find(&input(), (360, 370))), Some(9), "the same rule in both");
    }

    /// A record from a time with unknown rules has no answer: neither that there was no rule, nor a later rule.
    #[test]
    fn what_was_never_listed_or_is_not_kept_is_not_known() {
        let add = |book: &mut RuleBook, at: u64, count: u64| {
            book.end(100 * at);
            let rules = (0..count).map(|handle| rule(handle, "a", None)).collect();
            book.add(Listing::new(100 * at - 10, rules, &RuleTexts::default()));
        };
        let mut book = RuleBook::default();
        assert_eq!(book.find(&input(), (0, 1)), Some(RuleMatch::None), "a recording without a listing");
        (1..=1024).for_each(|at| add(&mut book, at, 1));
        assert_eq!(book.find(&input(), (0, 1)), Some(RuleMatch::None), "all are kept");
        (1025..=1030).for_each(|at| add(&mut book, at, 1));
        assert_eq!((book.listings.len(), book.rules), (LISTINGS_MAX, LISTINGS_MAX));
        // The sixth ended when the seventh was added.
        assert_eq!(book.find(&input(), (700, 750)), None);
        assert_eq!(handle(&book.find(&input(), (701, 750))), Some(0));
        // The current and the previous rules are kept, regardless of their number.
        (1031..=1033).for_each(|at| add(&mut book, at, 60_000));
        assert_eq!((book.listings.len(), book.rules), (2, 120_000));
        assert_eq!(book.find(&input(), (103_200, 103_250)), None);
        assert!(book.find(&input(), (103_201, 103_250)).is_some());
        // After several changes: the rules between 104,000 and 104,500 were never listed.
        book.end(104_000);
        book.add(Listing::new(104_500, vec![rule(7, "a", None)], &RuleTexts::default()));
        for window in [(103_900, 104_001), (104_000, 104_600), (104_100, 104_200), (104_499, 104_800)] {
            assert_eq!(book.find(&input(), window), None, "{window:?}");
        }
        assert_eq!(handle(&book.find(&input(), (104_500, 104_501))), Some(7));
        assert!(book.find(&input(), (103_900, 104_000)).is_some());
    }
}
