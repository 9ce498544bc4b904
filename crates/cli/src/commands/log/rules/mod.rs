//! Adds the rule that logged each record, before filter and columns see the row. Only for runs that display rules or
//! filter by them.

mod book;
mod reading;

use book::RuleMatch;
use lookups::session::Session;
use reading::{Answer, NetnsRules};
use record::rows::{LogRecord, LogRecords, LoggingRule, log_need};
use record::{Accounting, Annotate, Demand, Each, Misses, Next, Offer};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::Duration;
use sys::{Share, SysError, clock};

/// Records wait while rules of namespaces other than the run's own are listed. That may take one part in
/// `SHARE_OF_TIME` of the time, and up to `CREDIT_NS_MAX` at once after a pause: once for first listings, and once for
/// changed rules. A user who constantly changes rules therefore cannot prevent the first listing of others.
///
/// Bound: parts of the time: at most one is spent on listing the rules of other namespaces. Beyond: records have no
/// rule until the next listing; counted (exit code 3). By: the owners of namespaces, by changing rules.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 1_000_000_000;
/// Maximum time that listing them may delay the start of a run.
///
/// Bound: at the start for the rules of other namespaces. Beyond: the remaining rules are listed later; records have no
/// rule until then. By: the owners of namespaces.
const START_NS_MAX: u64 = 5_000_000_000;

/// The kernel's timer for queued records may be late by at most this time.
const TIMER_NS: u64 = 100_000_000;

/// The rules of every namespace of the session. Shared by the stream and by functions called while it waits.
pub(super) struct Rules<'s> {
    session: &'s Session,
    namespaces: RefCell<Vec<NetnsRules>>,
    /// Namespaces found later, whose rules the run has already tried to list.
    tried: RefCell<HashSet<u64>>,
    with_texts: bool,
    /// Maximum time that a record may have waited in the kernel.
    latency_ns: u64,
    /// Time shares for listing rules of other namespaces: for the first time, and again.
    first: Share,
    again: Share,
    /// True if rules of some namespace have changed since they were listed.
    are_stale: Cell<bool>,
    /// True if a record has arrived since the last check for changes.
    has_come: Cell<bool>,
    /// True before the first record of a batch, and the namespace of the previous record of the batch.
    is_first: Cell<bool>,
    met: Cell<Option<u64>>,
    misses: Misses<NoRule>,
    /// The first error of a listing.
    trouble: RefCell<Option<String>>,
}

record::reasons! {
    /// Why the rule of a record is not named.
    enum NoRule {
        Several = Note(
            "records that match several rules (same group, prefix and hook): their rule is not shown"
        ),
        Unknown = Note("records that match no rule listed by nft (nft does not list rules of iptables-legacy)"),
        Late = Incomplete("records without their rule: rules changed too often to list them each time"),
        Unlisted =
            Incomplete("records of network namespaces whose rules could not be listed, or not in time"),
    }
}

impl<'s> Rules<'s> {
    /// Lists the rules, if the demand includes them.
    pub(super) fn open(session: &'s Session, demand: &Demand<LogRecords>, latency: Duration) -> Option<Rules<'s>> {
        if demand.need & log_need::RULE == 0 {
            return None;
        }
        let with_texts = demand.need & log_need::RULE_TEXT != 0;
        let (mut namespaces, mut trouble) = (Vec::new(), None);
        let begun_ns = clock::monotonic_ns();
        session.in_each_namespace(&mut |netns_id| {
            let is_late = clock::monotonic_ns().saturating_sub(begun_ns) > START_NS_MAX;
            if is_late && netns_id != session.netns_id() && !session.host().is_replay() {
                // They are listed when the first record arrives.
                return;
            }
            match NetnsRules::open(session.host(), netns_id, with_texts) {
                Ok(rules) => namespaces.push(rules),
                Err(error) => _ = trouble.get_or_insert_with(|| error.to_string()),
            }
        });
        Some(Rules {
            session,
            namespaces: namespaces.into(),
            tried: RefCell::default(),
            with_texts,
            latency_ns: u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).saturating_add(TIMER_NS),
            first: Share::one_in(SHARE_OF_TIME, CREDIT_NS_MAX),
            again: Share::one_in(SHARE_OF_TIME, CREDIT_NS_MAX),
            are_stale: Cell::new(false),
            has_come: Cell::new(false),
            is_first: Cell::new(false),
            met: Cell::new(None),
            misses: Misses::default(),
            trouble: trouble.into(),
        })
    }

    /// Updates the namespaces, if the session's have changed.
    pub(super) fn find_namespaces(&self) {
        let Some(found) = self.session.namespaces() else { return };
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        // Change notifications would keep these namespaces alive.
        namespaces.retain(|rules| found.list().iter().any(|namespace| namespace.inode == rules.netns_id));
        self.tried.borrow_mut().clear();
    }

    /// Lists the rules that `record` may have matched, if they have changed or the namespace is new. Records wait for
    /// that; it is skipped if it would exceed the time share.
    fn meet(&self, record: &LogRecord<'_>) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        match namespaces.iter_mut().find(|rules| rules.netns_id == record.netns_id) {
            Some(rules) if rules.is_behind(record.received_ns) => self.list_again(rules),
            Some(_) => {}
            None => namespaces.extend(self.list_first(record.netns_id)),
        }
    }

    /// Tries once to list the rules of a newly found namespace.
    fn list_first(&self, netns_id: u64) -> Option<NetnsRules> {
        if self.tried.borrow().contains(&netns_id) {
            return None;
        }
        let open = || NetnsRules::open(self.session.host(), netns_id, self.with_texts);
        let mut opened = None;
        if self.in_time(netns_id, &self.first, &mut || opened = Some(open())) {
            self.tried.borrow_mut().insert(netns_id);
        }
        // None if the namespace no longer exists.
        let opened = opened?.map_err(|error| self.note_trouble(&error));
        opened.ok()
    }

    /// Calls `list` in a namespace other than the run's own if the share allows it; returns false if not.
    fn in_time(&self, netns_id: u64, share: &Share, list: &mut dyn FnMut()) -> bool {
        share.spend(clock::monotonic_ns, &mut || self.session.in_namespace(netns_id, list))
    }

    fn note_trouble(&self, error: &SysError) {
        self.trouble.borrow_mut().get_or_insert_with(|| error.to_string());
    }

    /// Checks all namespaces for changed rules. Costs one system call per namespace.
    fn hear(&self) {
        let Ok(mut namespaces) = self.namespaces.try_borrow_mut() else { return };
        for rules in &mut *namespaces {
            if let Err(error) = rules.hear() {
                self.note_trouble(&error);
            }
        }
        self.are_stale.set(namespaces.iter().any(NetnsRules::is_stale));
    }

    /// Lists the rules of the run's own namespace if they have changed. Must be called several times per second. While
    /// records arrive, and in other namespaces, rules are listed when a record needs them: a record made before the
    /// change does not.
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
        // A kernel timestamp is from the packet's arrival, before it reached any rule.
        let is_stamped = record.time_ns < record.received_ns;
        let since_ns = record.since_ns.saturating_sub(self.latency_ns);
        let made_ns = if is_stamped { record.time_ns.max(since_ns) } else { since_ns };
        let window = (made_ns, record.received_ns);
        let rules = namespaces.iter().find(|rules| rules.netns_id == record.netns_id);
        let answer = rules.map(|rules| rules.find(record, window));
        let (rule, miss) = match &answer {
            Some(Answer::Known(RuleMatch::One(rule))) => (Some(rule), None),
            Some(Answer::Known(RuleMatch::Several(common))) => (Some(common), Some(NoRule::Several)),
            Some(Answer::Known(RuleMatch::None)) => (None, Some(NoRule::Unknown)),
            None => (None, Some(NoRule::Unlisted)),
            Some(Answer::Late) => (None, Some(NoRule::Late)),
        };
        if let Some(reason) = miss {
            self.misses.add(reason, 1);
        }
        then(rule)
    }

    /// Reports the number of records without a rule, and the reasons.
    fn tell(&self, stats: &mut Accounting) {
        if let Some(error) = &*self.trouble.borrow() {
            stats.incomplete(1, format!("rules are missing: {error}"));
        }
        self.misses.report(stats);
    }
}

/// Adds the rule to each record.
impl Annotate<LogRecords> for &Rules<'_> {
    fn explain(&self, offer: &mut Offer) {
        offer.explain.push("rules via nft: listed now and whenever they change".to_owned());
    }

    fn begin(&mut self, _: u64, _: &mut Each<'_, LogRecords>) -> Next {
        self.is_first.set(true);
        self.met.set(None);
        Next::More
    }

    fn row(&mut self, record: &LogRecord<'_>, each: &mut Each<'_, LogRecords>) -> Next {
        // Changes made before a record arrived must be noted before it is looked up.
        if self.is_first.take() {
            self.has_come.set(true);
            self.hear();
        }
        if self.met.replace(Some(record.netns_id)) != Some(record.netns_id) || self.are_stale.get() {
            self.meet(record);
        }
        self.with_rule(record, |rule| each(&LogRecord { rule, ..*record }))
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.tell(stats);
    }
}
