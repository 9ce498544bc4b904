//! A table command from its plan to its exit code: what sockets, flows and later tables have in common.

use super::plan::{self, PlanError};
use crate::asked;
use crate::enrich::Enrichment;
use crate::exit::Exit;
use crate::flags::request::{Format, Repeat, Request};
use crate::messages::{cost_line, footer_lines, stats_line};
use crate::names::DnsNames;
use crate::outcome::Outcome;
use crate::output;
use crate::session::{Place, Session};
use engine::{Ended, Plan, RenderedRows, ResolvingSink, Rounds, Run, RunError};
use host::{NetnsNames, Owners};
use record::{
    Accounting, Columns, Expr, LookupId, Lookups, Next, Round, Sink, SinkError, Source, SourceFault, Table, Value,
};
use std::cell::RefCell;
use std::time::Duration;
use sys::cost::{self, Cost};

/// What is said where a container was asked for and nothing was found.
const ELSEWHERE: &str = "nothing matches in this network namespace; most containers have one of their own: \
                         --all-netns reads these, too";

/// What is said where an address was asked for that only other namespaces have.
const ADDRESS_ELSEWHERE: &str = "nothing matches in this network namespace, but in others: --all-netns shows it";

/// Fields of the containers of a row.
const CONTAINERS: &[&str] = &["container", "pod"];

/// Fields that are addresses, of all tables.
const ADDRESSES: &[&str] =
    &["local_addr", "peer_addr", "client", "published", "backend", "orig_src", "orig_dst", "reply_src", "reply_dst"];

/// What a table command must know beside its plan.
pub(crate) trait SourceProvider<T: Table> {
    /// True if the source itself needs this lookup, beyond what the plan shows or filters by.
    fn needs_lookup(&self, id: LookupId) -> bool {
        let _ = id;
        false
    }

    /// True if the source itself sees to it that rows pass for unchanged only where this lookup answers as before.
    fn compares(&self, id: LookupId) -> bool {
        let _ = id;
        false
    }

    /// True if the part of the filter that the source does by itself tests one of these fields.
    fn tests_any(&self, fields: &[&str]) -> bool {
        let _ = fields;
        false
    }

    /// Makes the source for one round and hands it to `then`. What goes wrong on the way is noted in `stats`.
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<T>) -> R,
    ) -> R;
}

/// True if a filter tests one of these fields.
pub(super) fn tests_any<T: Table>(conjuncts: &[Expr], fields: &[&str]) -> bool {
    let mut does = false;
    for part in conjuncts {
        part.for_each_test(&mut |test| {
            does |= T::FIELDS.get(test.field).is_some_and(|field| fields.contains(&field.name));
        });
    }
    does
}

/// Plans the request over `T` and runs it; `provider` says how the rows of the plan are read.
pub(super) fn show<T: Table, P: SourceProvider<T>>(
    request: &Request,
    provider: impl FnOnce(&Plan<T>) -> Result<P, PlanError>,
) -> Outcome {
    match plan::of_request(request).and_then(|plan| Ok((provider(&plan)?, plan))) {
        Ok((provider, plan)) => run(request, &plan, &provider),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

/// Runs the plan as often as the request says and tells how it went.
pub(super) fn run<T: Table>(request: &Request, plan: &Plan<T>, provider: &impl SourceProvider<T>) -> Outcome {
    run_through(request, plan, provider, |_, mut sink, rounds| {
        let mut run = rounds(&mut *sink)?;
        if is_empty(&run) && names_any(plan, provider, ADDRESSES) && is_elsewhere(request, plan, provider) {
            run.stats.add_reason(0, ADDRESS_ELSEWHERE);
        }
        Ok(run)
    })
}

/// True if everything was read and no row came of it.
fn is_empty(run: &Run) -> bool {
    run.ended == Ended::Whole && run.stats.emitted + run.stats.grouped == 0
}

/// True if the filter, or the part of it that the source does by itself, tests one of these fields.
fn names_any<T: Table>(plan: &Plan<T>, provider: &impl SourceProvider<T>, fields: &[&str]) -> bool {
    tests_any::<T>(&plan.demand().conjuncts, fields) || provider.tests_any(fields)
}

/// True if all network namespaces have a row of this plan, which the caller's own does not. Reads them all, but only
/// for a user who asked once, and for nothing else than what is here now. What cannot be read costs the hint.
fn is_elsewhere<T: Table>(request: &Request, plan: &Plan<T>, provider: &impl SourceProvider<T>) -> bool {
    let is_narrow = request.netns.is_some() || request.all_netns;
    if is_narrow || request.repeat != Repeat::Once || request.record.is_some() || request.replay.is_some() {
        return false;
    }
    let all = Place { all_netns: true, owners_via: request.owners_via, ..Place::default() };
    let Ok(session) = Session::open(all) else { return false };
    let (before, rendered, names) = Default::default();
    let watching = Watching { request, session: &session, plan, provider, before, rendered, names };
    let mut run = Run { stats: Accounting::default(), ended: Ended::Whole };
    let found = watching.round(&mut Nowhere, None, None, &mut run);
    found.is_ok() && run.stats.emitted + run.stats.grouped > 0
}

/// Where rows go that only have to be there: one is enough.
struct Nowhere;

impl Sink for Nowhere {
    fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, _: &[Value<'_>]) -> Result<Next, SinkError> {
        Ok(Next::Stop)
    }

    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        Ok(())
    }
}

/// All rounds into a sink.
pub(super) type AllRounds<'r> = &'r mut dyn FnMut(&mut dyn Sink) -> Result<Run, RunError>;

/// The same with something of the caller's between the engine and the sink: `through` gets the request's sink and
/// calls the rounds with its own; what it adds to the row counts stands in the footer.
pub(super) fn run_through<T: Table>(
    request: &Request,
    plan: &Plan<T>,
    provider: &impl SourceProvider<T>,
    through: impl FnOnce(&Session, Box<dyn Sink>, AllRounds<'_>) -> Result<Run, RunError>,
) -> Outcome {
    let session = match Session::open(request.place()) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    if request.explain {
        return explain(&session, plan, provider).into();
    }
    let cost = cost::so_far();
    let (before, rendered, names) = Default::default();
    let watching = Watching { request, session: &session, plan, provider, before, rendered, names };
    let outcome = through(&session, output::sink(request), &mut |sink| watching.rounds(sink));
    finish(request, &session, outcome, &cost)
}

fn explain<T: Table>(session: &Session, plan: &Plan<T>, provider: &impl SourceProvider<T>) -> Exit {
    let mut stats = Accounting::default();
    session.find_namespaces(false, &mut stats);
    let text = provider.with_source(session, Lookups::none(), &mut stats, |source| {
        engine::explain(plan, &source.prepare(plan.demand()).offer())
    });
    output::print(&text)
}

/// What stays the same from round to round.
struct Watching<'w, T: Table, R: SourceProvider<T>> {
    request: &'w Request,
    session: &'w Session,
    plan: &'w Plan<T>,
    provider: &'w R,
    /// Owners of the round before, if what is gone is shown.
    before: RefCell<Option<Owners>>,
    /// Rows as they were written in the round before, when namespaces had these names.
    rendered: RefCell<RenderedRows>,
    names: RefCell<Option<NetnsNames>>,
}

impl<T: Table, R: SourceProvider<T>> Watching<'_, T, R> {
    /// Every round, until the request, the reader or the user has enough: the row counts of all rounds, and how the last
    /// one ended.
    fn rounds(&self, sink: &mut dyn Sink) -> Result<Run, RunError> {
        let mut names = self.request.resolve.map(|bound| DnsNames::new(self.session, bound, self.is_repeated()));
        let mut clock = match self.request.repeat {
            Repeat::Once => None,
            Repeat::Every(period) => Some(Rounds::new(now(), period)),
        };
        let mut all = Run { stats: Accounting::default(), ended: Ended::Whole };
        while self.session.host().begin_round() {
            let round = clock.as_ref().map(|c| Round { n: c.current(), time_s: self.session.host().now().seconds });
            self.round(sink, names.as_mut(), round, &mut all)?;
            let Some(clock) = clock.as_mut() else { break };
            if all.ended == Ended::Closed || all.ended == Ended::Stopped || !self.wait(clock) {
                break;
            }
        }
        if is_empty(&all) && self.asks_elsewhere() {
            all.stats.add_reason(0, ELSEWHERE);
        }
        Ok(all)
    }

    /// True if the filter names a container, and only one network namespace was looked at.
    fn asks_elsewhere(&self) -> bool {
        let names = names_any(self.plan, self.provider, CONTAINERS);
        names && !self.request.all_netns && self.session.namespaces().is_none()
    }

    fn is_repeated(&self) -> bool {
        self.request.repeat != Repeat::Once
    }

    /// Waits for the next round; false if the user ended the run meanwhile. A replay has its own time: its rounds
    /// follow each other at once.
    fn wait(&self, clock: &mut Rounds) -> bool {
        let due = clock.next(now());
        let wait_ns = u64::try_from(due.wait.as_nanos()).unwrap_or(u64::MAX);
        self.session.host().is_replay() || self.session.sleep_until(sys::clock::monotonic_ns().saturating_add(wait_ns))
    }

    fn round(
        &self,
        sink: &mut dyn Sink,
        names: Option<&mut DnsNames<'_>>,
        round: Option<Round>,
        all: &mut Run,
    ) -> Result<(), RunError> {
        let mut notes = Accounting::default();
        let by_kernel = matches!(self.request.via, None | Some(record::Via::Bpf));
        self.session.find_namespaces(by_kernel, &mut notes);
        let wanted: Vec<LookupId> = LookupId::ALL
            .into_iter()
            .filter(|&id| self.plan.needs_lookup(id) || self.provider.needs_lookup(id))
            .collect();
        let wanted = asked::lookups(self.session.host(), self.plan.demand(), wanted, &mut notes);
        let enrichment = Enrichment::read(self.session, &wanted, &mut notes).after(self.before.take());
        let lookups = enrichment.lookups();
        let stop = || self.session.interrupted();
        let mut rendered = self.is_repeated().then(|| self.rendered.borrow_mut());
        let mut compared = wanted.iter().filter(|id| !self.provider.compares(**id));
        let mut known = rendered.as_deref_mut().filter(|_| compared.all(|id| Enrichment::can_be_compared(*id)));
        if !enrichment.answers_as_before(self.names.borrow().as_ref()) {
            known.iter_mut().for_each(|known| known.clear());
        }
        let run = self.provider.with_source(self.session, lookups, &mut notes, |source| match (names, known) {
            (None, Some(known)) => self.plan.cached(known).run(source, &lookups, sink, round, &stop),
            (None, None) => self.plan.run(source, &lookups, sink, round, &stop),
            (Some(names), _) => self.plan.run(source, &lookups, &mut ResolvingSink::new(sink, names), round, &stop),
        });
        let (owners, names) = enrichment.leave();
        self.names.replace(names);
        if self.is_repeated() && self.plan.demand().wants("change") {
            self.before.replace(owners);
        }
        all.stats.add(&notes);
        let run = run?;
        all.stats.add(&run.stats);
        all.ended = run.ended;
        Ok(())
    }
}

/// Closes the session and the row counts of a run, and tells what is to be said.
pub(super) fn finish(request: &Request, session: &Session, outcome: Result<Run, RunError>, before: &Cost) -> Outcome {
    let (mut result, mut messages) = (Exit::Ok, Vec::new());
    let Run { mut stats, ended } = outcome.unwrap_or_else(|error| {
        messages.push(describe(&error));
        result = Exit::Failed;
        Run { stats: Accounting::default(), ended: Ended::Whole }
    });
    session.finish(&mut stats);
    messages.extend(footer_lines(&stats));
    if request.stats && result == Exit::Ok && request.format != Format::Json {
        messages.push(stats_line(&stats));
    }
    if request.cost {
        messages.push(cost_line(&cost::so_far().since(before), &stats));
        messages
            .extend(session.socket_cache().passed_over().map(|why| format!("cost: TCP was not read by bpf: {why}")));
    }
    let exit = match result {
        // A reader that went away has what it wanted.
        Exit::Ok if ended == Ended::Closed => Exit::Ok,
        Exit::Ok if stats.is_partial() => Exit::Partial,
        Exit::Ok if request.exit_code && stats.emitted + stats.grouped == 0 => Exit::NoMatch,
        other => other,
    };
    Outcome { exit, messages }
}

/// The error with the way out, where there is one.
fn describe(error: &RunError) -> String {
    match error {
        RunError::Source(source) if source.fault == SourceFault::Denied => with_way_out(source.to_string()),
        other => other.to_string(),
    }
}

/// The words with a hint at `netwren support`; they may have it already, from the layer that was refused.
fn with_way_out(words: String) -> String {
    const COMMAND: &str = "`netwren support`";
    if words.contains(COMMAND) { words } else { format!("{words} ({COMMAND} lists what works)") }
}

fn now() -> Duration {
    Duration::from_nanos(sys::clock::monotonic_ns())
}
