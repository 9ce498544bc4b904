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
use std::cell::RefCell;
use std::collections::HashSet;
use std::time::Duration;
use sys::{SysError, clock};

/// Listing the rules of new namespaces may keep records waiting for one part in so many of the time, and for so long
/// at once after a pause.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 1_000_000_000;

/// What gathers in the kernel is sent this much after its time at most.
const TIMER_NS: u64 = 100_000_000;

/// The rules of every namespace that is read. Shared by the stream and by what is called while it waits.
pub(super) struct Rules<'s> {
    session: &'s Session,
    namespaces: RefCell<Vec<NetnsRules>>,
    new: RefCell<NewNamespaces>,
    with_texts: bool,
    /// How long a record may have waited in the kernel.
    latency_ns: u64,
    counts: RefCell<UnnamedCounts>,
}

/// Namespaces that were made meanwhile.
struct NewNamespaces {
    /// Their rules were not listed yet.
    waiting: Vec<u64>,
    /// It was tried to list the rules of these.
    tried: HashSet<u64>,
    /// Time that may go by for those of which a record has come already.
    budget: Budget,
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
        session.in_each_namespace(&mut |netns_id| match NetnsRules::open(session.host(), netns_id, with_texts) {
            Ok(rules) => namespaces.push(rules),
            Err(error) => _ = counts.trouble.get_or_insert(error.to_string()),
        });
        let latency_ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).saturating_add(TIMER_NS);
        let new = NewNamespaces {
            waiting: Vec::new(),
            tried: HashSet::new(),
            budget: Budget::new(SHARE_OF_TIME, CREDIT_NS_MAX),
        };
        let (namespaces, new, counts) = (namespaces.into(), new.into(), counts.into());
        Some(Rules { session, namespaces, new, with_texts, latency_ns, counts })
    }

    /// The session knows of other namespaces than before.
    pub(super) fn find_namespaces(&self) {
        let Some(found) = self.session.namespaces() else { return };
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        // What hears of changes there would keep them alive.
        namespaces.retain(|rules| found.list().iter().any(|namespace| namespace.inode == rules.netns_id));
        let is_listed = |inode: &u64| namespaces.iter().any(|rules| rules.netns_id == *inode);
        let mut new = self.new.borrow_mut();
        new.waiting = found.list().iter().map(|namespace| namespace.inode).filter(|inode| !is_listed(inode)).collect();
        new.tried.clear();
    }

    /// Lists the rules of one namespace that is new: a listing takes a while, and there may be many.
    fn open_next(&self, namespaces: &mut Vec<NetnsRules>) {
        let next = self.new.borrow_mut().waiting.pop();
        if let Some(netns_id) = next {
            self.open_one(netns_id, namespaces);
        }
    }

    /// Lists the rules of the namespace that a record comes from, if they were not: it was made just now, and those of
    /// others would come first. Once each, and in a part of the time: records wait meanwhile.
    fn meet(&self, netns_id: u64) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        if namespaces.iter().any(|rules| rules.netns_id == netns_id) {
            return;
        }
        let mut new = self.new.borrow_mut();
        if new.tried.contains(&netns_id) || !new.budget.allows(clock::monotonic_ns()) {
            return;
        }
        new.waiting.retain(|other| *other != netns_id);
        drop(new);
        let begun_ns = clock::monotonic_ns();
        self.open_one(netns_id, &mut namespaces);
        self.new.borrow_mut().budget.used(clock::monotonic_ns().saturating_sub(begun_ns));
    }

    fn open_one(&self, netns_id: u64, namespaces: &mut Vec<NetnsRules>) {
        self.new.borrow_mut().tried.insert(netns_id);
        let mut opened = None;
        let open = || NetnsRules::open(self.session.host(), netns_id, self.with_texts);
        self.session.in_namespace(netns_id, &mut || opened = Some(open()));
        match opened {
            Some(Ok(rules)) => namespaces.push(rules),
            Some(Err(error)) => _ = self.counts.borrow_mut().trouble.get_or_insert(error.to_string()),
            // It has gone.
            None => {}
        }
    }

    /// Lists rules again where they have changed. To be called some times a second: one system call a namespace where
    /// nothing has.
    pub(super) fn refresh(&self) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        self.open_next(&mut namespaces);
        for rules in &mut *namespaces {
            if let Err(error) = self.refresh_one(rules) {
                self.counts.borrow_mut().trouble.get_or_insert(error.to_string());
            }
        }
    }

    fn refresh_one(&self, rules: &mut NetnsRules) -> Result<(), SysError> {
        if !rules.must_list()? {
            return Ok(());
        }
        let host = self.session.host();
        if rules.netns_id == self.session.netns_id() {
            return rules.list_again(host);
        }
        let mut listed = Ok(());
        self.session.in_namespace(rules.netns_id, &mut || listed = rules.list_again(host));
        listed
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
        // Nobody has looked there.
        stats.incomplete |= *unlisted > 0;
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
                rules.refresh();
            }
            if met.replace(record.netns_id) != Some(record.netns_id) {
                rules.meet(record.netns_id);
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
