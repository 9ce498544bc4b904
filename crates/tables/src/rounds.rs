//! The rounds of a table: a single one, or repeated ones with `--watch`.

use crate::provider::{RoundTime, SourceProvider};
use crate::request::{Repeat, TableRequest};
use engine::{Answers, Feed, FeedPart, FeedState, Plan, ReadPart, Rounds, Run, RunError};
use host::{NetnsNames, Owners};
use lookups::asked;
use lookups::enrich::{Enrichment, Former};
use lookups::names::{self, DnsNames};
use lookups::pillars;
use lookups::session::Session;
use record::{Accounting, Demand, LookupId, Round, Sink, SourceError, Table};
use std::time::Duration;

/// How a table is read.
#[derive(Clone, Copy, Debug)]
pub struct RoundOptions {
    /// One reading, or one per period.
    pub repeat: Repeat,
    /// When rounds end, on the monotonic clock; `None` if the user ends them.
    pub ends_ns: Option<u64>,
    /// True if host names are shown.
    pub resolves: bool,
    /// True if only the rows that fit on a screen are made.
    pub is_on_screen: bool,
}

/// A table as a feed: opens the session's namespaces and lookups for each round, and keeps state for the next one.
pub struct TableRounds<'r, T: Table, P> {
    session: &'r Session,
    plan: &'r Plan<T>,
    provider: &'r P,
    options: RoundOptions,
    /// The times of rounds; `None` for a single one.
    clock: Option<Rounds>,
    /// What the last round leaves; `None` before the first one.
    before: Option<RoundBefore>,
}

/// State from the round before.
#[derive(Default)]
struct RoundBefore {
    /// The time to which its rows refer; `None` if no round was read.
    time: Option<RoundTime>,
    /// Its owners, for closed sockets and for verification.
    owners: Option<Owners>,
    /// True if rows need so many owners that verifying single ones is not worthwhile.
    asks_for_many: bool,
    /// True once rows have shown names of interfaces, which may be others in the next round.
    has_iface_names: bool,
    /// The names of namespaces that its rows show.
    netns_names: Option<NetnsNames>,
}

impl<'r, T: Table, P: SourceProvider<T>> TableRounds<'r, T, P> {
    /// Makes a feed before its first round.
    pub fn new(
        session: &'r Session,
        plan: &'r Plan<T>,
        provider: &'r P,
        options: RoundOptions,
    ) -> TableRounds<'r, T, P> {
        TableRounds { session, plan, provider, options, clock: None, before: None }
    }

    /// Waits for the next round; false if there is none.
    fn begin(&mut self, notes: &mut Accounting) -> bool {
        match (&mut self.before, &mut self.clock) {
            (None, _) => {
                if let Repeat::Every(period) = self.options.repeat {
                    self.clock = Some(Rounds::new(now(), period));
                }
                if self.options.resolves {
                    asked::host_names(self.session.host(), notes);
                }
                self.before = Some(RoundBefore::default());
            }
            (Some(before), Some(clock)) if before.time == Some(RoundTime::Moment) => {
                let due = clock.next(now());
                if !self.wait(due.wait) {
                    return false;
                }
            }
            (Some(_), Some(clock)) => {
                clock.next(now());
            }
            (Some(_), None) => return false,
        }
        self.session.host().begin_round()
    }

    /// Waits for the next round; false if the user or `--for` ended the run. The rounds of a replay follow each other
    /// immediately.
    fn wait(&self, wait: Duration) -> bool {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let next_ns = sys::clock::monotonic_ns().saturating_add(wait_ns);
        if let Some(end_ns) = self.options.ends_ns.filter(|end_ns| *end_ns < next_ns) {
            if !self.session.host().is_replay() {
                self.session.sleep_until(end_ns);
            }
            return false;
        }
        self.session.host().is_replay() || self.session.sleep_until(next_ns)
    }

    /// The lookups that the plan or the source needs; in a replay only those that the recording has.
    fn wanted_lookups(&self, notes: &mut Accounting) -> Vec<LookupId> {
        let is_needed = |id: &LookupId| {
            let is_asked_for = self.plan.needs_lookup(*id) || self.provider.needs_lookup(*id);
            is_asked_for && self.provider.can_use_lookup(self.session, *id)
        };
        let needed = LookupId::ALL.into_iter().filter(is_needed).collect();
        asked::lookups(self.session.host(), self.plan.demand(), needed, notes)
    }

    /// Compares the lookups with those of the round before: rendered rows may be reused if it is known for every lookup
    /// whether its values are unchanged.
    fn answers(&self, wanted: &[LookupId], before: &RoundBefore, enrichment: &Enrichment<'_>) -> Answers {
        let is_known = |id: &LookupId| self.provider.compares(*id) || Enrichment::can_be_compared(*id);
        if self.clock.is_none() || before.has_iface_names || !wanted.iter().all(is_known) {
            return Answers::Unknown;
        }
        if enrichment.answers_as_before(before.netns_names.as_ref()) { Answers::Same } else { Answers::New }
    }

    /// Reads a round: its lookups, then its rows.
    fn read(
        &self,
        mut before: RoundBefore,
        time: RoundTime,
        notes: &mut Accounting,
        read: &mut ReadPart<'_, T>,
    ) -> RoundBefore {
        let TableRounds { session, plan, provider, options, clock, .. } = self;
        // `--via` names the backend of the rows. The kernel always provides the list of namespaces.
        pillars::find_namespaces(session, true, notes);
        let wanted = self.wanted_lookups(notes);
        // If only the rows that fit on the screen are made, their owners are verified instead of reading all.
        let looks = clock.is_some() && options.is_on_screen && !before.asks_for_many;
        let are_for_gone = plan.demand().wants("change");
        let former = before.owners.take().map(|owners| Former { owners, looks, are_for_gone });
        let mut enrichment = Enrichment::read_after(session, &wanted, former, notes);
        enrichment.add_for_some_rows(session, |id| plan.may_need_lookup(id));
        let lookups = enrichment.lookups();
        // An interval that was interrupted shows the events until then.
        let stop = || time == RoundTime::Moment && session.interrupted();
        let round =
            clock.as_ref().map(|clock| Round { n: clock.current(), time_ns: session.host().now().since_1970_ns() });
        let answers = self.answers(&wanted, &before, &enrichment);
        provider.with_source(session, lookups, notes, |source| {
            let mut scan = source.prepare(plan.demand());
            read(FeedPart { round, answers, ..FeedPart::new(&mut *scan, &lookups, &stop) });
        });
        let has_iface_names = before.has_iface_names || enrichment.has_read_ifaces();
        let left = enrichment.leave(notes);
        RoundBefore {
            time: Some(time),
            owners: left.owners.filter(|_| clock.is_some() && (looks || are_for_gone)),
            asks_for_many: before.asks_for_many || left.asks_for_many,
            has_iface_names,
            netns_names: left.netns_names,
        }
    }
}

impl<T: Table, P: SourceProvider<T>> Feed<T> for TableRounds<'_, T, P> {
    fn next(
        &mut self,
        _: &Demand<T>,
        notes: &mut Accounting,
        read: &mut ReadPart<'_, T>,
    ) -> Result<FeedState, SourceError> {
        if !self.begin(notes) {
            return Ok(FeedState::Ended);
        }
        let time = match self.provider.intervals() {
            Some(intervals) => intervals.wait(self.session, self.options.repeat)?,
            None => RoundTime::Moment,
        };
        let before = self.before.take().unwrap_or_default();
        self.before = Some(self.read(before, time, notes, read));
        let is_last = self.clock.is_none() || time == RoundTime::LastInterval;
        Ok(if is_last { FeedState::Ended } else { FeedState::EndOfRound })
    }
}

/// Reads all rounds of the table that `provider` provides into a sink.
pub fn read<T: Table>(
    session: &Session,
    request: &TableRequest<'_>,
    plan: &Plan<T>,
    provider: &impl SourceProvider<T>,
    sink: &mut dyn Sink,
) -> Result<Run, RunError> {
    let TableRequest { repeat, ends_ns, resolve, .. } = *request;
    let is_on_screen = sink.rows_wanted().is_some();
    let options = RoundOptions { repeat, ends_ns, resolves: resolve.is_some(), is_on_screen };
    let mut names = resolve.map(|bound| DnsNames::new(session, bound, repeat != Repeat::Once));
    names::run(plan, &mut TableRounds::new(session, plan, provider, options), names.as_mut(), sink)
}

fn now() -> Duration {
    Duration::from_nanos(sys::clock::monotonic_ns())
}
