//! A table command from its plan to its exit code: what sockets, flows and later tables have in common.

use crate::enrich::Enrichment;
use crate::exit::Exit;
use crate::flags::{Repeat, Request};
use crate::messages::{footer, say};
use crate::names::DnsNames;
use crate::output;
use crate::session::{Place, Session};
use engine::{Ended, HoldForNames, Plan, Rounds, Run, RunError};
use record::{Accounting, LookupId, Lookups, Round, Sink, Source, SourceFault, Table};
use std::time::Duration;
use sys::cost::{self, Cost};

/// What a table command must know beside its plan.
pub(super) trait Reads<T: Table> {
    /// True if the source itself needs this lookup, beyond what the plan shows or filters by.
    fn needs_lookup(&self, id: LookupId) -> bool;

    /// Makes the source for one round and hands it to `then`. What goes wrong on the way is noted in `books`.
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        books: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<T>) -> R,
    ) -> R;
}

/// Runs the plan as often as the request says and tells how it went.
pub(super) fn run<T: Table>(request: &Request, plan: &Plan<T>, reads: &impl Reads<T>) -> Exit {
    let place =
        Place { netns: request.netns.as_deref(), record: request.record.as_deref(), replay: request.replay.as_deref() };
    let session = match Session::open(place) {
        Ok(session) => session,
        Err(error) => {
            say(&error.to_string());
            return error.exit();
        }
    };
    if request.explain {
        return explain(&session, plan, reads);
    }
    let before = cost::so_far();
    let mut sink = output::sink(request, T::NAME);
    let outcome = rounds(request, &session, plan, reads, &mut *sink);
    drop(sink);
    finish(request, &session, outcome, &before)
}

fn explain<T: Table>(session: &Session, plan: &Plan<T>, reads: &impl Reads<T>) -> Exit {
    let text = reads.with_source(session, Lookups::none(), &mut Accounting::default(), |source| {
        engine::explain(plan, &source.offer(plan.demand()))
    });
    output::print(&text)
}

/// Every round, until the request, the reader or the user has enough. The books are those of all rounds.
fn rounds<T: Table>(
    request: &Request,
    session: &Session,
    plan: &Plan<T>,
    reads: &impl Reads<T>,
    sink: &mut dyn Sink,
) -> Result<Accounting, RunError> {
    let mut names = request.resolve.map(|bound| DnsNames::start(session, bound, request.repeat != Repeat::Once));
    let mut all = Accounting::default();
    let result = repeat(request, session, plan, reads, sink, &mut names, &mut all);
    if let Some(names) = &names {
        names.report(&mut all);
    }
    result.map(|()| all)
}

fn repeat<T: Table>(
    request: &Request,
    session: &Session,
    plan: &Plan<T>,
    reads: &impl Reads<T>,
    sink: &mut dyn Sink,
    names: &mut Option<DnsNames<'_>>,
    all: &mut Accounting,
) -> Result<(), RunError> {
    let mut clock = match request.repeat {
        Repeat::Once => None,
        Repeat::Every(period) => Some(Rounds::new(now(), period)),
    };
    loop {
        if !session.host().begin_round() {
            return Ok(());
        }
        let round = clock.as_ref().map(|c| Round { n: c.current(), time_s: session.host().now().seconds });
        let ended = one(session, plan, reads, sink, names.as_mut(), round, all)?;
        let Some(clock) = clock.as_mut() else { return Ok(()) };
        if ended == Ended::Closed || ended == Ended::Stopped {
            return Ok(());
        }
        let due = clock.next(now());
        // A replay has its own time: its rounds follow each other at once.
        if !session.host().is_replay() && !session.sleep_until(at_ns(due.wait)) {
            return Ok(());
        }
    }
}

fn one<T: Table>(
    session: &Session,
    plan: &Plan<T>,
    reads: &impl Reads<T>,
    sink: &mut dyn Sink,
    names: Option<&mut DnsNames<'_>>,
    round: Option<Round>,
    all: &mut Accounting,
) -> Result<Ended, RunError> {
    let mut notes = Accounting::default();
    let wanted: Vec<LookupId> =
        LookupId::ALL.into_iter().filter(|&id| plan.needs_lookup(id) || reads.needs_lookup(id)).collect();
    let enrichment = Enrichment::read(session, &wanted, &mut notes);
    let lookups = enrichment.lookups();
    let stop = || session.interrupted();
    let run = reads.with_source(session, lookups, &mut notes, |source| match names {
        None => plan.run(source, &lookups, sink, round, &stop),
        Some(names) => plan.run(source, &lookups, &mut HoldForNames::new(sink, names), round, &stop),
    });
    all.add(&notes);
    let Run { books, ended } = run?;
    all.add(&books);
    Ok(ended)
}

fn finish(request: &Request, session: &Session, outcome: Result<Accounting, RunError>, before: &Cost) -> Exit {
    let (mut books, failed) = match outcome {
        Ok(books) => (books, false),
        Err(error) => {
            say(&describe(&error));
            (Accounting::default(), true)
        }
    };
    session.finish(&mut books);
    footer(&books);
    if request.stats && !failed && request.format != crate::flags::Format::Json {
        say(&crate::messages::books_line(&books));
    }
    if request.cost {
        say(&crate::messages::cost_line(&cost::so_far().since(before), &books));
    }
    match (failed, books.is_partial()) {
        (true, _) => Exit::Failed,
        (_, true) => Exit::Partial,
        _ if request.exit_code && books.emitted + books.grouped == 0 => Exit::NoMatch,
        _ => Exit::Ok,
    }
}

/// The error with the way out, where there is one.
fn describe(error: &RunError) -> String {
    match error {
        RunError::Source(source) if source.fault == SourceFault::Denied => {
            format!("{source} (`netwren support` lists what works)")
        }
        other => other.to_string(),
    }
}

fn now() -> Duration {
    Duration::from_nanos(sys::clock::monotonic_ns())
}

fn at_ns(wait: Duration) -> u64 {
    sys::clock::monotonic_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
}
