//! Which rules may have logged a record: listings of rules, each with the time in which it may have been in force.
//!
//! A record names its rule only by group, prefix and hook, and rules change while records are on their way. So a record
//! is looked up in every listing that may have been in force when it was made; where that leaves several rules, only
//! what they have in common is told.

use host::log_rules::LogRule;
use host::rule_texts::RuleTexts;
use record::rows::{LogRecord, LoggingRule};
use std::collections::{HashMap, VecDeque};

/// Listings that are kept: those before are older than any record that still comes.
const LISTINGS_MAX: usize = 8;

/// Listings, the newest last.
#[derive(Default)]
pub(super) struct RuleBook {
    listings: VecDeque<Listing>,
}

/// The rules at one time.
pub(super) struct Listing {
    /// The earliest time at which they may have been in force, ns since 1970.
    from_ns: u64,
    /// The latest.
    until_ns: u64,
    /// Group → prefix → rules.
    rules: HashMap<u16, ByPrefix>,
}

/// Rules of one group with their texts.
type ByPrefix = HashMap<Box<[u8]>, Vec<(LogRule, Option<Box<str>>)>>;

/// Which rule logged a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RuleMatch<'b> {
    /// None of them.
    None,
    /// This one.
    One(LoggingRule<'b>),
    /// One of several, which have this in common.
    Several(LoggingRule<'b>),
}

/// When a record was made: between these times, ns since 1970.
pub(super) type Window = (u64, u64);

impl Listing {
    /// Rules that are in force since `from_ns` at the earliest.
    pub(super) fn new(from_ns: u64, rules: Vec<LogRule>, texts: &RuleTexts) -> Listing {
        let mut by_group: HashMap<u16, ByPrefix> = HashMap::new();
        for rule in rules {
            let text = texts.of(&rule.table, rule.handle).map(Box::from);
            let of_group = by_group.entry(rule.group).or_default();
            of_group.entry(rule.prefix.as_bytes().into()).or_default().push((rule, text));
        }
        Listing { from_ns, until_ns: u64::MAX, rules: by_group }
    }

    fn is_of(&self, (from_ns, until_ns): Window) -> bool {
        self.from_ns <= until_ns && from_ns <= self.until_ns
    }
}

impl RuleBook {
    /// The newest listing is in force no longer than until then.
    pub(super) fn end(&mut self, until_ns: u64) {
        if let Some(newest) = self.listings.back_mut() {
            newest.until_ns = newest.until_ns.min(until_ns);
        }
    }

    /// Adds what is in force now.
    pub(super) fn add(&mut self, listing: Listing) {
        if self.listings.len() >= LISTINGS_MAX {
            self.listings.pop_front();
        }
        self.listings.push_back(listing);
    }

    /// The rule that logged `record` in that time. Costs a hash of the prefix for each listing of that time.
    pub(super) fn find(&self, record: &LogRecord<'_>, window: Window) -> RuleMatch<'_> {
        let listings = self.listings.iter().filter(|listing| listing.is_of(window));
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
                // It stands in the listing before as well.
                RuleMatch::One(known) if known == this => RuleMatch::One(this),
                RuleMatch::One(known) | RuleMatch::Several(known) => RuleMatch::Several(known.common(&this)),
            };
        }
        found
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

    fn handle(found: &RuleMatch<'_>) -> Option<u64> {
        match found {
            RuleMatch::One(rule) => rule.handle,
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
        let RuleMatch::Several(common) = book.find(&input(), (5, 9)) else { panic!("one was named") };
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
        (0..20).for_each(|at| book.add(Listing::new(500 + at, Vec::new(), &RuleTexts::default())));
        assert_eq!(book.listings.len(), LISTINGS_MAX);
    }
}
