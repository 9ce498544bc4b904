//! The rounds of a table command: a single one, or repeated ones with `--watch`.

use super::source_provider::{RoundTime, SourceProvider};
use crate::flags::request::{Repeat, Request};
use engine::{Ended, Plan, RenderedRows, ResolvingSink, Rounds, Run, RunError};
use host::{NetnsNames, Owners};
use lookups::asked;
use lookups::enrich::{Enrichment, Former};
use lookups::names::DnsNames;
use lookups::pillars;
use lookups::session::Session;
use record::{Accounting, LookupId, Round, Sink, Table};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Reads the rounds of one plan, and keeps state for the next round.
pub(super) struct RoundReader<'r, T: Table, P: SourceProvider<T>> {
    request: &'r Request,
    session: &'r Session,
    plan: &'r Plan<T>,
    provider: &'r P,
    /// Owners from the previous round, for closed sockets and for verification.
    owners: RefCell<Option<Owners>>,
    /// True if rows need so many owners that verifying single ones is not worthwhile.
    asks_for_many: Cell<bool>,
    /// True once rows have shown names of interfaces, which may be others in the next round.
    has_iface_names: Cell<bool>,
    /// Rendered rows from the previous round.
    rendered: RefCell<RenderedRows>,
    /// The names of namespaces used in `rendered`.
    netns_names: RefCell<Option<NetnsNames>>,
    /// The time to which the rows of the round refer.
    time: Cell<RoundTime>,
}

impl<'r, T: Table, P: SourceProvider<T>> RoundReader<'r, T, P> {
    /// Makes a reader before its first round.
    pub(super) fn new(request: &'r Request, session: &'r Session, plan: &'r Plan<T>, provider: &'r P) -> Self {
        let (owners, asks_for_many, has_iface_names, rendered, netns_names) = Default::default();
        let time = Cell::new(RoundTime::Moment);
        RoundReader {
            request,
            session,
            plan,
            provider,
            owners,
            asks_for_many,
            has_iface_names,
            rendered,
            netns_names,
            time,
        }
    }

    /// Reads rounds into the sink until the request, the reader of the output or the user ends the run. Returns the
    /// row counts of all rounds, and how the last one ended.
    pub(super) fn read_all(&self, sink: &mut dyn Sink) -> Result<Run, RunError> {
        let mut names = self.request.resolve.map(|bound| DnsNames::new(self.session, bound, self.is_repeated()));
        let mut clock = match self.request.repeat {
            Repeat::Once => None,
            Repeat::Every(period) => Some(Rounds::new(now(), period)),
        };
        let mut all = Run { stats: Accounting::default(), ended: Ended::Whole };
        if names.is_some() {
            asked::host_names(self.session.host(), &mut all.stats);
        }
        while self.session.host().begin_round() {
            let time = self.provider.open_round(self.session, self.request.repeat).map_err(RunError::Source)?;
            self.time.set(time);
            let round = clock.as_ref().map(|c| Round { n: c.current(), time_s: self.session.host().now().seconds });
            self.read(sink, names.as_mut(), round, &mut all)?;
            let Some(clock) = clock.as_mut() else { break };
            let is_over = match time {
                RoundTime::Moment => !self.wait(clock),
                RoundTime::Interval => {
                    clock.next(now());
                    false
                }
                RoundTime::LastInterval => true,
            };
            if all.ended == Ended::Closed || all.ended == Ended::Stopped || is_over {
                break;
            }
        }
        Ok(all)
    }

    /// Reads one round into the sink and adds its row counts to `all`: finds the namespaces, reads the lookups, then
    /// the rows.
    pub(super) fn read(
        &self,
        sink: &mut dyn Sink,
        names: Option<&mut DnsNames<'_>>,
        round: Option<Round>,
        all: &mut Run,
    ) -> Result<(), RunError> {
        let mut stats = Accounting::default();
        // `--via` names the backend of the rows. The kernel always provides the list of namespaces.
        pillars::find_namespaces(self.session, true, &mut stats);
        let wanted = self.wanted_lookups(&mut stats);
        // If only the rows that fit on the screen are made, their owners are verified instead of reading all.
        let looks = self.is_repeated() && sink.rows_wanted().is_some() && !self.asks_for_many.get();
        let are_for_gone = self.plan.demand().wants("change");
        let former = self.owners.take().map(|owners| Former { owners, looks, are_for_gone });
        let mut enrichment = Enrichment::read_after(self.session, &wanted, former, &mut stats);
        enrichment.add_for_some_rows(self.session, |id| self.plan.may_need_lookup(id));
        let lookups = enrichment.lookups();
        // An interval that was interrupted shows the events until then.
        let stop = || self.time.get() == RoundTime::Moment && self.session.interrupted();
        let mut rendered = self.can_reuse_rows(&wanted).then(|| self.rendered.borrow_mut());
        if !enrichment.answers_as_before(self.netns_names.borrow().as_ref()) {
            rendered.iter_mut().for_each(|rendered| rendered.clear());
        }
        let plan = self.plan;
        let run = self.provider.with_source(self.session, lookups, &mut stats, |source| match (names, &mut rendered) {
            (None, Some(rendered)) => plan.cached(rendered).run(source, &lookups, sink, round, &stop),
            (None, None) => plan.run(source, &lookups, sink, round, &stop),
            (Some(names), _) => plan.run(source, &lookups, &mut ResolvingSink::new(sink, names), round, &stop),
        });
        self.has_iface_names.set(self.has_iface_names.get() || enrichment.has_read_ifaces());
        let left = enrichment.leave(&mut stats);
        self.netns_names.replace(left.netns_names);
        self.asks_for_many.set(self.asks_for_many.get() || left.asks_for_many);
        if self.is_repeated() && (looks || are_for_gone) {
            self.owners.replace(left.owners);
        }
        all.stats.add(&stats);
        let run = run?;
        all.stats.add(&run.stats);
        all.ended = run.ended;
        Ok(())
    }

    /// The lookups that the plan or the source needs; in a replay only those that the recording has.
    fn wanted_lookups(&self, stats: &mut Accounting) -> Vec<LookupId> {
        let is_needed = |id: &LookupId| {
            let is_asked_for = self.plan.needs_lookup(*id) || self.provider.needs_lookup(*id);
            is_asked_for && self.provider.can_use_lookup(self.session, *id)
        };
        let needed = LookupId::ALL.into_iter().filter(is_needed).collect();
        asked::lookups(self.session.host(), self.plan.demand(), needed, stats)
    }

    /// True if rendered rows of the previous round may be reused: for every lookup it is known whether its values are
    /// unchanged.
    fn can_reuse_rows(&self, wanted: &[LookupId]) -> bool {
        let is_known = |id: &LookupId| self.provider.compares(*id) || Enrichment::can_be_compared(*id);
        self.is_repeated() && !self.has_iface_names.get() && wanted.iter().all(is_known)
    }

    fn is_repeated(&self) -> bool {
        self.request.repeat != Repeat::Once
    }

    /// Waits for the next round; false if the user ended the run. The rounds of a replay follow each other
    /// immediately.
    fn wait(&self, clock: &mut Rounds) -> bool {
        let due = clock.next(now());
        let wait_ns = u64::try_from(due.wait.as_nanos()).unwrap_or(u64::MAX);
        let next_ns = sys::clock::monotonic_ns().saturating_add(wait_ns);
        if let Some(end_ns) = self.request.ends_ns.filter(|end_ns| *end_ns < next_ns) {
            if !self.session.host().is_replay() {
                self.session.sleep_until(end_ns);
            }
            return false;
        }
        self.session.host().is_replay() || self.session.sleep_until(next_ns)
    }
}

fn now() -> Duration {
    Duration::from_nanos(sys::clock::monotonic_ns())
}
