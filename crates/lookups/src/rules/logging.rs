//! Adds the rule that logged each record, before filter and columns see the row. Only for runs that display rules or
//! filter by them.
//!
//! A record identifies its rule only by group, prefix and hook, and rules may change before the record arrives. So a
//! record is looked up in every listing that may have been in force when it was made. If several rules match, only the
//! values that they share are shown.

use super::history::RuleHistory;
use super::listings::{Listings, RuleSet, Window};
use super::namespaces::{FailedRows, NetnsRules, NotListed};
use crate::nft::ListingBounds;
use crate::session::Session;
use host::log_rules::{self, LogRule};
use host::rule_texts::RuleTexts;
use record::rows::{LogRecord, LogRecords, LoggingRule, log_need};
use record::{Accounting, Annotate, Demand, Each, Misses, Next, Offer};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;
use sys::{Errno, clock};

/// Bound: listings of rules that `log` keeps. Beyond: the oldest are forgotten: their records have no rule, counted.
/// By: the owner of a namespace.
const LOG_LISTINGS_MAX: usize = 1024;
/// Maximum time that listing them may delay the start of a run.
///
/// Bound: at the start for the rules of other namespaces. Beyond: the remaining rules are listed later; records have no
/// rule until then. By: the owners of namespaces.
const START_NS_MAX: u64 = 5_000_000_000;

/// The kernel's timer for queued records may be late by at most this time.
const TIMER_NS: u64 = 100_000_000;

/// The rules that log to groups.
struct LogRules {
    by_group: HashMap<u16, ByPrefix>,
    /// Number of rules.
    count: usize,
}

/// Rules of one group with their texts.
type ByPrefix = HashMap<Box<[u8]>, Vec<(LogRule, Option<Box<str>>)>>;

impl RuleSet for LogRules {
    const NAME: &'static str = "log";
    const HEAD: Range<usize> = 0..3;
    const OTHERS: ListingBounds = ListingBounds::USUAL;
    const LISTINGS_MAX: usize = LOG_LISTINGS_MAX;

    fn parse(json: &[u8], texts: &RuleTexts) -> Result<LogRules, Errno> {
        log_rules::parse(json).map(|rules| LogRules::new(rules, texts)).ok_or(Errno::INVAL)
    }

    fn count(&self) -> usize {
        self.count
    }
}

impl LogRules {
    fn new(rules: Vec<LogRule>, texts: &RuleTexts) -> LogRules {
        let (count, mut by_group) = (rules.len(), HashMap::<u16, ByPrefix>::new());
        for rule in rules {
            let text = texts.of(&rule.table, rule.handle).map(Box::from);
            let by_prefix = by_group.entry(rule.group).or_default();
            by_prefix.entry(rule.prefix.as_bytes().into()).or_default().push((rule, text));
        }
        LogRules { by_group, count }
    }
}

/// A rule, or what several rules have in common, and the reason if it is not the only one.
type Found<'l> = (Option<LoggingRule<'l>>, Option<NoRule>);

/// Finds the rule that logged `record` in that time; `None` if the rules of that time are not completely known. Costs a
/// hash of the prefix for each listing of that time.
fn find<'l>(listings: &'l Listings<LogRules>, record: &LogRecord<'_>, window: Window) -> Option<Found<'l>> {
    let in_force = listings.in_force(window)?;
    let rules = in_force.filter_map(|rules| rules.by_group.get(&record.group)?.get(record.prefix));
    let (family, hook) = (record.family_name(), record.hook_name());
    let mut found: Found<'l> = (None, Some(NoRule::Unknown));
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
            (None, _) => (Some(this), None),
            // It is also in the previous listing.
            (Some(known), None) if known == this => (Some(this), None),
            (Some(known), _) => (Some(known.common_with(&this)), Some(NoRule::Several)),
        };
    }
    Some(found)
}

/// The rules that logged records, of every namespace of the session. Shared by the stream and by functions called while
/// it waits.
pub struct LoggingRules<'s> {
    session: &'s Session,
    namespaces: RefCell<NetnsRules<LogRules>>,
    /// Maximum time that a record may have waited in the kernel.
    latency_ns: u64,
    /// True if a record has arrived since the last check for changes.
    has_new_records: Cell<bool>,
    /// True before the first record of a batch.
    is_first: Cell<bool>,
    misses: Misses<NoRule>,
    failed: RefCell<FailedRows>,
}

record::reasons! {
    /// Why the rule of a record is not named.
    enum NoRule {
        Several = Note(
            "records that match several rules (same group, prefix and hook): their rule is not shown"
        ),
        Unknown = Note("records that match no rule listed by nft (nft does not list rules of iptables-legacy)"),
        Changed = Incomplete("records without their rule: rules changed too often to list them each time"),
        New = Incomplete("records without their rule: network namespaces were new, and their rules not listed in time"),
    }
}

impl<'s> LoggingRules<'s> {
    /// Lists the rules, if the demand includes them. Must be called before groups are bound, so that no change of rules
    /// is missed.
    pub fn open(session: &'s Session, demand: &Demand<LogRecords>, latency: Duration) -> Option<LoggingRules<'s>> {
        if demand.need & log_need::RULE == 0 {
            return None;
        }
        let mut namespaces = NetnsRules::new(demand.need & log_need::RULE_TEXT != 0);
        let begun_ns = clock::monotonic_ns();
        session.in_each_namespace(&mut |netns_id| {
            let is_late = clock::monotonic_ns().saturating_sub(begun_ns) > START_NS_MAX;
            // Others are then listed when their first record arrives.
            if !is_late || netns_id == session.netns_id() || session.host().is_replay() {
                namespaces.list_here(session, netns_id);
            }
        });
        Some(LoggingRules {
            session,
            namespaces: namespaces.into(),
            latency_ns: u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).saturating_add(TIMER_NS),
            has_new_records: Cell::new(false),
            is_first: Cell::new(false),
            misses: Misses::default(),
            failed: RefCell::default(),
        })
    }

    /// Updates the namespaces, if the session's have changed.
    pub fn update_namespaces(&self) {
        let Some(found) = self.session.namespaces() else { return };
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        // Change notifications would keep these namespaces alive.
        let is_there = |netns_id| found.list().iter().any(|namespace| namespace.inode == netns_id);
        namespaces.keep_only(is_there);
        namespaces.forget_failed();
    }

    /// Lists the rules of the run's own namespace if they have changed. Must be called several times per second. While
    /// records arrive, and in other namespaces, rules are listed when a record needs them: a record made before the
    /// change does not.
    pub fn refresh(&self) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        namespaces.check_changes();
        let own = self.session.netns_id();
        if !self.has_new_records.replace(false) && namespaces.history(own).is_some_and(RuleHistory::is_stale) {
            namespaces.list(self.session, own);
        }
    }

    /// Lists the rules that `record` may have matched, if they have changed or the namespace is new. Records wait for
    /// that; it is skipped if it would exceed the time share.
    fn meet(&self, record: &LogRecord<'_>) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        if self.is_first.take() {
            // Changes made before a record arrived must be noted before it is looked up.
            self.has_new_records.set(true);
            namespaces.check_changes();
        }
        let history = namespaces.history(record.netns_id);
        if history.is_none_or(|history| history.is_behind(record.received_ns)) {
            namespaces.list(self.session, record.netns_id);
        }
    }

    /// The time when `record` was made.
    fn window(&self, record: &LogRecord<'_>) -> Window {
        // A kernel timestamp is from the packet's arrival, before it reached any rule.
        let is_stamped = record.time_ns < record.received_ns;
        let since_ns = record.since_ns.saturating_sub(self.latency_ns);
        (if is_stamped { record.time_ns.max(since_ns) } else { since_ns }, record.received_ns)
    }

    /// The rule of `record`, and the reason if it is not known.
    fn find<'l>(&self, namespaces: &'l NetnsRules<LogRules>, record: &LogRecord<'_>) -> Found<'l> {
        let window = self.window(record);
        let (history, not_listed) = namespaces.for_row(record.netns_id);
        // Rules that have changed may not be listed again yet.
        let current = history.filter(|history| !history.is_behind(window.1));
        if let Some(found) = current.and_then(|history| find(&history.listings, record, window)) {
            return found;
        }
        match not_listed {
            Some(NotListed::New) => (None, Some(NoRule::New)),
            Some(NotListed::Changed) | None => (None, Some(NoRule::Changed)),
            Some(failure) => {
                self.failed.borrow_mut().add(failure, 1);
                (None, None)
            }
        }
    }
}

impl Annotate<LogRecords> for &LoggingRules<'_> {
    fn explain(&self, offer: &mut Offer) {
        offer.explain.push("rules via nft: listed now and whenever they change".to_owned());
    }

    fn begin(&mut self, _: u64, _: &mut Each<'_, LogRecords>) -> Next {
        self.is_first.set(true);
        Next::More
    }

    fn row(&mut self, record: &LogRecord<'_>, each: &mut Each<'_, LogRecords>) -> Next {
        self.meet(record);
        let namespaces = self.namespaces.borrow();
        let (rule, miss) = self.find(&namespaces, record);
        miss.into_iter().for_each(|reason| self.misses.add(reason, 1));
        each(&LogRecord { rule: rule.as_ref(), ..*record })
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.failed.borrow_mut().report("log records", stats);
        self.misses.report(stats);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::listings::Listing;
    use super::*;

    fn rule(handle: u64, prefix: &str, hooks: Option<&[&str]>) -> LogRule {
        let hooks = hooks.map(|hooks| hooks.iter().map(|hook| (*hook).to_owned()).collect());
        let place = LogRule { table: "inet t".to_owned(), chain: "c".to_owned(), ..LogRule::default() };
        LogRule { handle, group: 1, prefix: prefix.to_owned(), comment: Some("why".to_owned()), hooks, ..place }
    }

    fn add(listings: &mut Listings<LogRules>, from_ns: u64, rules: Vec<LogRule>) {
        listings.add(Listing::new(from_ns, false, LogRules::new(rules, &RuleTexts::default())));
    }

    /// The handle of the only rule; 0 if the rules of that time are unknown.
    fn handle(listings: &Listings<LogRules>, record: &LogRecord<'_>, window: Window) -> Option<u64> {
        find(listings, record, window).map_or(Some(0), |(rule, _)| rule?.handle)
    }

    fn input() -> LogRecord<'static> {
        LogRecord { group: 1, family: 2, hook: 1, prefix: b"a", ..LogRecord::default() }
    }

    #[test]
    fn a_rule_is_found_by_group_prefix_and_hook() {
        let mut listings = Listings::default();
        let rules = vec![rule(1, "a", Some(&["input"])), rule(2, "a", Some(&["output"])), rule(3, "b", None)];
        add(&mut listings, 0, rules);
        let found = |record: &LogRecord<'_>| handle(&listings, record, (5, 9));
        assert_eq!(found(&input()), Some(1));
        assert_eq!(found(&LogRecord { hook: 3, ..input() }), Some(2));
        assert_eq!(found(&LogRecord { hook: 0, ..input() }), None);
        assert_eq!(found(&LogRecord { prefix: b"b", hook: 0, ..input() }), Some(3), "whatever the hook");
        assert_eq!(found(&LogRecord { group: 2, ..input() }), None);
        assert_eq!(found(&LogRecord { family: 7, ..input() }), None, "a frame of a bridge");
    }

    #[test]
    fn several_rules_show_only_their_common_values() {
        let mut listings = Listings::default();
        add(&mut listings, 0, vec![rule(1, "a", None), rule(2, "a", None)]);
        let (common, miss) = find(&listings, &input(), (5, 9)).unwrap();
        let common = common.unwrap();
        assert_eq!(miss, Some(NoRule::Several));
        assert_eq!((common.chain, common.comment, common.handle), (Some("c"), Some("why"), None));
    }

    #[test]
    fn a_record_is_looked_up_in_the_rules_of_its_time() {
        let mut listings = Listings::default();
        assert_eq!(handle(&listings, &input(), (0, 1)), None, "a recording without a listing");
        add(&mut listings, 0, vec![rule(1, "a", None)]);
        listings.end(200);
        add(&mut listings, 100, vec![rule(9, "a", None)]);
        for (window, expected) in [((10, 99), Some(1)), ((90, 120), None), ((150, 160), None), ((201, 300), Some(9))] {
            assert_eq!(handle(&listings, &input(), window), expected, "{window:?}");
        }
        listings.end(400);
        add(&mut listings, 350, vec![rule(9, "a", None), rule(5, "b", None)]);
        assert_eq!(handle(&listings, &input(), (360, 370)), Some(9), "the same rule in both");
        listings.end(500);
        add(&mut listings, 600, Vec::new());
        assert_eq!(handle(&listings, &input(), (550, 560)), Some(0), "the rules of that time were never listed");
    }
}
