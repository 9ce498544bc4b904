//! The rule that logged each record: a stream over the stream of records, which puts the rule into the row before
//! filter and columns see it. Only for runs that show rules, or filter by them.

mod book;
mod reading;

use crate::refreshing_lookups::Budget;
use crate::session::Session;
use book::RuleMatch;
use reading::{Answer, NetnsRules};
use record::rows::{LogRecord, LogRecords, LoggingRule, log_need};
use record::{Accounting, Demand, Each, Offer, SourceError, Stream, StreamState};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::Duration;
use sys::{SysError, clock};

/// Records wait while rules of other namespaces than the run's own are listed. That may take one part in so many of
/// the time, and so much of it at once after a pause: for those that are listed for the first time, and as much again
/// for those that have changed, so that who changes his again and again does not keep others' from being listed at all.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 1_000_000_000;
/// Listing them may keep a run from its beginning for so long.
const START_NS_MAX: u64 = 5_000_000_000;

/// What gathers in the kernel is sent this much after its time at most.
const TIMER_NS: u64 = 100_000_000;

/// The rules of every namespace that is read. Shared by the stream and by what is called while it waits.
pub(super) struct Rules<'s> {
    session: &'s Session,
    namespaces: RefCell<Vec<NetnsRules>>,
    /// It was tried to list the rules of these others, which were made meanwhile.
    tried: RefCell<HashSet<u64>>,
    with_texts: bool,
    /// How long a record may have waited in the kernel.
    latency_ns: u64,
    /// Time that listing those of other namespaces may take, for the first time and again.
    first: Budget,
    again: Budget,
    /// True if rules of some namespace have changed since they were listed.
    are_stale: Cell<bool>,
    /// True if a record has come since it was last looked for what has changed.
    has_come: Cell<bool>,
    counts: RefCell<UnnamedCounts>,
}

/// Records whose rule is not told, by reason.
#[derive(Default)]
struct UnnamedCounts {
    several: u64,
    unknown: u64,
    late: u64,
    unlisted: u64,
    trouble: Option<String>,
}

impl<'s> Rules<'s> {
    /// Lists the rules, if the demand asks for them.
    pub(super) fn open(session: &'s Session, demand: &Demand<LogRecords>, latency: Duration) -> Option<Rules<'s>> {
        if demand.need & log_need::RULE == 0 {
            return None;
        }
        let with_texts = demand.need & log_need::RULE_TEXT != 0;
        let (mut namespaces, mut counts) = (Vec::new(), UnnamedCounts::default());
        let begun_ns = clock::monotonic_ns();
        session.in_each_namespace(&mut |netns_id| {
            let is_late = clock::monotonic_ns().saturating_sub(begun_ns) > START_NS_MAX;
            if is_late && netns_id != session.netns_id() && !session.host().is_replay() {
                // They are listed when the first record comes.
                return;
            }
            match NetnsRules::open(session.host(), netns_id, with_texts) {
                Ok(rules) => namespaces.push(rules),
                Err(error) => _ = counts.trouble.get_or_insert(error.to_string()),
            }
        });
        Some(Rules {
            session,
            namespaces: namespaces.into(),
            tried: RefCell::default(),
            with_texts,
            latency_ns: u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).saturating_add(TIMER_NS),
            first: Budget::new(SHARE_OF_TIME, CREDIT_NS_MAX),
            again: Budget::new(SHARE_OF_TIME, CREDIT_NS_MAX),
            are_stale: Cell::new(false),
            has_come: Cell::new(false),
            counts: counts.into(),
        })
    }

    /// The session knows of other namespaces than before.
    pub(super) fn find_namespaces(&self) {
        let Some(found) = self.session.namespaces() else { return };
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        // What hears of changes there would keep them alive.
        namespaces.retain(|rules| found.list().iter().any(|namespace| namespace.inode == rules.netns_id));
        self.tried.borrow_mut().clear();
    }

    /// Has the rules listed that `record` may have met: those of a namespace that was made meanwhile, or that have
    /// changed. Records wait for that; where it would take too much of the time it is left.
    fn meet(&self, record: &LogRecord<'_>) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        match namespaces.iter_mut().find(|rules| rules.netns_id == record.netns_id) {
            Some(rules) if rules.is_behind(record.received_ns) => self.list_again(rules),
            Some(_) => {}
            None => namespaces.extend(self.list_first(record.netns_id)),
        }
    }

    /// Lists the rules of a namespace that was made meanwhile, once.
    fn list_first(&self, netns_id: u64) -> Option<NetnsRules> {
        if self.tried.borrow().contains(&netns_id) {
            return None;
        }
        let open = || NetnsRules::open(self.session.host(), netns_id, self.with_texts);
        let mut opened = None;
        if self.in_time(netns_id, &self.first, &mut || opened = Some(open())) {
            self.tried.borrow_mut().insert(netns_id);
        }
        // None if it has gone.
        let opened = opened?.map_err(|error| self.note_trouble(&error));
        opened.ok()
    }

    /// Calls `list` in a namespace that is not the run's own, if there is time for it; false if not.
    fn in_time(&self, netns_id: u64, budget: &Budget, list: &mut dyn FnMut()) -> bool {
        budget.spend(&mut || self.session.in_namespace(netns_id, list))
    }

    fn note_trouble(&self, error: &SysError) {
        self.counts.borrow_mut().trouble.get_or_insert_with(|| error.to_string());
    }

    /// Notes where rules have changed: one system call a namespace.
    fn hear(&self) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        for rules in &mut *namespaces {
            if let Err(error) = rules.hear() {
                self.note_trouble(&error);
            }
        }
        self.are_stale.set(namespaces.iter().any(NetnsRules::is_stale));
    }

    /// Lists the rules of the run's own namespace where they have changed. To be called some times a second. While
    /// records come, and elsewhere, they are listed when a record needs them: one that was on its way before the change
    /// does not.
    pub(super) fn refresh(&self) {
        self.hear();
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        let did_come = self.has_come.replace(false);
        let own = namespaces.iter_mut().find(|rules| rules.netns_id == self.session.netns_id());
        if let Some(own) = own.filter(|own| own.is_stale() && !did_come) {
            self.list_again(own);
        }
    }

    fn list_again(&self, rules: &mut NetnsRules) {
        if !rules.may_list() {
            return;
        }
        let (host, mut listed) = (self.session.host(), Ok(()));
        if rules.netns_id == self.session.netns_id() {
            listed = rules.list_again(host);
        } else {
            self.in_time(rules.netns_id, &self.again, &mut || listed = rules.list_again(host));
        }
        if let Err(error) = listed {
            self.note_trouble(&error);
        }
    }

    /// Calls `then` with the rule of `record`.
    fn with_rule<R>(&self, record: &LogRecord<'_>, then: impl FnOnce(Option<&LoggingRule<'_>>) -> R) -> R {
        let namespaces = self.namespaces.borrow();
        // A time that the kernel stamped is that of the packet's arrival, before it met any rule.
        let is_stamped = record.time_ns < record.received_ns;
        let since_ns = record.since_ns.saturating_sub(self.latency_ns);
        let made_ns = if is_stamped { record.time_ns.max(since_ns) } else { since_ns };
        let window = (made_ns, record.received_ns);
        let rules = namespaces.iter().find(|rules| rules.netns_id == record.netns_id);
        let answer = rules.map(|rules| rules.find(record, window));
        let mut counts = self.counts.borrow_mut();
        let rule = match &answer {
            Some(Answer::Known(RuleMatch::One(rule))) => Some(rule),
            Some(Answer::Known(RuleMatch::Several(common))) => {
                counts.several += 1;
                Some(common)
            }
            Some(Answer::Known(RuleMatch::None)) => {
                counts.unknown += 1;
                None
            }
            None => {
                counts.unlisted += 1;
                None
            }
            Some(Answer::Late) => {
                counts.late += 1;
                None
            }
        };
        drop(counts);
        then(rule)
    }

    /// Says of how many records the rule is not told, and why.
    fn tell(&self, stats: &mut Accounting) {
        let UnnamedCounts { several, unknown, late, unlisted, trouble } = &*self.counts.borrow();
        if let Some(error) = trouble {
            stats.incomplete = true;
            stats.add_reason(1, format!("rules are missing: {error}"));
        }
        // Nobody has looked there, or not in time.
        stats.incomplete |= *unlisted > 0 || *late > 0;
        for (count, text) in [
            (
                several,
                "records that several rules may have logged (same group, prefix and hook): their rule is not named",
            ),
            (unknown, "records of no rule that nft lists (rules of iptables-legacy are not in its list)"),
            (late, "records without their rule: rules changed faster than they may be listed"),
            (unlisted, "records of network namespaces whose rules could not be listed, or not in time"),
        ] {
            if *count > 0 {
                stats.add_reason(*count, text);
            }
        }
    }
}

/// Records with their rules.
pub(super) struct RuledRecords<'s, 'r> {
    records: &'r mut dyn Stream<LogRecords>,
    rules: &'r Rules<'s>,
}

impl<'s, 'r> RuledRecords<'s, 'r> {
    /// Records of `records` with the rules of `rules`.
    pub(super) fn new(records: &'r mut dyn Stream<LogRecords>, rules: &'r Rules<'s>) -> RuledRecords<'s, 'r> {
        RuledRecords { records, rules }
    }
}

impl Stream<LogRecords> for RuledRecords<'_, '_> {
    fn offer(&self, demand: &Demand<LogRecords>) -> Offer {
        let mut offer = self.records.offer(demand);
        offer.explain.push("rules by nft: listed now, and again when they change".to_owned());
        offer
    }

    fn next(
        &mut self,
        demand: &Demand<LogRecords>,
        each: &mut Each<'_, LogRecords>,
    ) -> Result<StreamState, SourceError> {
        let (rules, mut is_first, mut met) = (self.rules, true, None);
        self.records.next(demand, &mut |record| {
            // What changed before a record came is heard of before it is looked up.
            if std::mem::take(&mut is_first) {
                rules.has_come.set(true);
                rules.hear();
            }
            if met.replace(record.netns_id) != Some(record.netns_id) || rules.are_stale.get() {
                rules.meet(record);
            }
            rules.with_rule(record, |rule| each(&LogRecord { rule, ..*record }))
        })
    }

    fn close(&mut self) -> Accounting {
        let mut stats = self.records.close();
        self.rules.tell(&mut stats);
        stats
    }
}
