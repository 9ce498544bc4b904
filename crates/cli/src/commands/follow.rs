//! `--follow`: rows as things happen, until the user, the limit or the reader of the output ends it.

use super::Outcome;
use super::plan::{Wrong, plan};
use super::table::{finish, place};
use crate::enrich::Enrichment;
use crate::exit::Exit;
use crate::flags::Request;
use crate::growing::Younger;
use crate::messages::say;
use crate::names::DnsNames;
use crate::output;
use crate::session::Session;
use engine::{HoldForNames, Plan, Run, RunError, columns};
use record::rows::{FlowEvents, SocketEvents};
use record::{Accounting, LookupId, Sink, Stream, Table};
use sockets::{FlowSums, Follow, LiveConnections};
use std::time::Duration;
use sys::cost;

/// `netwren sockets --follow`.
pub(super) fn sockets(request: &Request) -> Outcome {
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<SocketEvents>()).into();
    }
    let plan = match planned::<SocketEvents>(request) {
        Ok(plan) => plan,
        Err(wrong) => return Outcome::because(Exit::Usage, wrong),
    };
    run(request, &plan, |session, then| {
        let stop = || session.interrupted();
        let mut live =
            LiveConnections::open(session.host(), place_of(request, session, &stop)).map_err(RunError::Source)?;
        let caveat = live.caveat();
        then(&mut live, caveat)
    })
}

/// `netwren flows --follow`.
pub(super) fn flows(request: &Request, interval: Duration) -> Outcome {
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<FlowEvents>()).into();
    }
    let plan = match planned::<FlowEvents>(request) {
        Ok(plan) => plan,
        Err(wrong) => return Outcome::because(Exit::Usage, wrong),
    };
    run(request, &plan, |session, then| {
        let stop = || session.interrupted();
        let mut sums =
            FlowSums::open(session.host(), place_of(request, session, &stop), interval).map_err(RunError::Source)?;
        let caveat = sums.caveat();
        then(&mut sums, caveat)
    })
}

fn place_of<'h>(request: &Request, session: &Session, stop: &'h dyn Fn() -> bool) -> Follow<'h> {
    Follow { via: request.via, netns_id: session.netns_id(), everywhere: request.all_netns, stop }
}

/// The plan of a request that follows `T`.
fn planned<T: Table>(request: &Request) -> Result<Plan<T>, Wrong> {
    plan(request, &engine::filter::parse(&request.shown.filter)?)
}

/// What is done with an opened stream and the words about what it may miss.
type Then<'t, T> = dyn FnMut(&mut dyn Stream<T>, Option<String>) -> Result<Run, RunError> + 't;

/// Opens the place, lets `open` open the stream, follows it to its end and tells how it went.
fn run<T: Table>(
    request: &Request,
    plan: &Plan<T>,
    open: impl FnOnce(&Session, &mut Then<'_, T>) -> Result<Run, RunError>,
) -> Outcome {
    let session = match Session::open(place(request)) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    let before = cost::so_far();
    let mut explained = None;
    session.host().begin_round();
    let outcome = open(&session, &mut |stream, caveat| {
        if request.explain {
            explained = Some(engine::explain(plan, &stream.offer(plan.demand())));
            return Ok(Run { books: Accounting::default(), ended: engine::Ended::Whole });
        }
        if let Some(caveat) = caveat {
            say(&caveat);
        }
        follow(request, &session, plan, stream)
    });
    if let (Some(text), Ok(_)) = (explained, &outcome) {
        return output::print(&text).into();
    }
    finish(request, &session, outcome, &before)
}

fn follow<T: Table>(
    request: &Request,
    session: &Session,
    plan: &Plan<T>,
    stream: &mut dyn Stream<T>,
) -> Result<Run, RunError> {
    let mut notes = Accounting::default();
    session.find_namespaces(false, &mut notes);
    let wanted: Vec<LookupId> = LookupId::ALL.into_iter().filter(|&id| plan.needs_lookup(id)).collect();
    let enrichment = Enrichment::read(session, &wanted, &mut notes);
    // Namespaces and groups come and go while we follow.
    let base = enrichment.lookups();
    let younger = Younger::new(session.host(), base);
    let lookups = younger.over(base);
    let mut sink: Box<dyn Sink> = output::sink(request, T::NAME);
    let mut names = request.resolve.map(|bound| DnsNames::new(session, bound, true));
    let mut run = match &mut names {
        None => plan.follow(stream, &lookups, &mut *sink)?,
        Some(names) => plan.follow(stream, &lookups, &mut HoldForNames::new(&mut *sink, names))?,
    };
    run.books.add(&notes);
    Ok(run)
}
