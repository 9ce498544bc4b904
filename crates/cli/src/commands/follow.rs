//! `--follow`: shows rows as events occur, until the user, the limit or the reader of the output ends the run.

use super::finish::finish;
use super::plan::of_request;
use super::reloading::{Reloading, Reread};
use crate::command::{Prepared, Refusal, ready};
use crate::flags::request::Request;
use crate::{output, screen};
use engine::{Plan, RenewedLookups, Run, RunError, StreamFeed};
use lookups::followed::with_lookups;
use lookups::long_work;
use lookups::session::Session;
use record::rows::{FlowEvents, SocketEvents};
use record::{Accounting, Stream};
use runtime::exit::Exit;
use runtime::messages::print_message;
use runtime::notifier::Notifier;
use runtime::outcome::Outcome;
use runtime::print;
use shipping::{Shipment, Shipped};
use sockets::{FlowSums, Follow};
use std::time::Duration;
use sys::cost;
use tables::streams;

/// Prepares `netwren sockets --follow`.
pub(super) fn prepare_sockets(request: Request) -> Prepared<'static> {
    let plan = plan_of::<SocketEvents>(&request)?;
    ready(move || {
        run(&request, &plan, |session, then| {
            let stop = || is_over(&request, session);
            streams::with_socket_events(session, &plan, place_of(&request, session, &stop), |live| {
                let notes = StreamNotes { caveat: live.caveat(), cost: live.left_out().to_vec(), reread: None };
                then(live, notes)
            })
        })
    })
}

/// Prepares `netwren flows --follow`.
pub(super) fn prepare_flows(request: Request, interval: Duration) -> Prepared<'static> {
    let plan = plan_of::<FlowEvents>(&request)?;
    ready(move || {
        run(&request, &plan, |session, then| {
            let stop = || is_over(&request, session);
            let follow = place_of(&request, session, &stop);
            let mut sums = FlowSums::open(session.host(), follow, interval).map_err(RunError::Source)?;
            let words = StreamNotes { caveat: sums.caveat(), cost: Vec::new(), reread: None };
            then(&mut sums, words)
        })
    })
}

/// Makes the plan of a request over a stream; its targets must be able to take the rows.
pub(super) fn plan_of<T: Shipped>(request: &Request) -> Result<Plan<T>, Refusal> {
    let plan = of_request(request)?;
    check_shipment(request, &plan)?;
    Ok(plan)
}

/// Fails if a target cannot take the rows of the plan.
pub(super) fn check_shipment<T: Shipped>(request: &Request, plan: &Plan<T>) -> Result<(), Refusal> {
    let checked = request.ship.as_ref().map_or(Ok(()), |ship| Shipment::<T>::check(ship, plan.columns()));
    checked.map_err(|wrong| Refusal::Outcome(Outcome::with_message(Exit::Usage, wrong)))
}

/// True if the user has ended the run, the reader of the output has closed it, or the time of `--for` is over.
pub(super) fn is_over(request: &Request, session: &Session) -> bool {
    session.run().count_turn();
    if request.ends_ns.is_some_and(|end_ns| sys::clock::monotonic_ns() >= end_ns) {
        return true;
    }
    session.interrupted() || request.ship.is_none() && sys::term::is_reader_closed(sys::term::STDOUT)
}

fn place_of<'h>(request: &Request, session: &Session, stop: &'h dyn Fn() -> bool) -> Follow<'h> {
    Follow { hooks: !request.no_hooks, ..streams::follow(session, &request.table(), stop) }
}

/// Notes on an opened stream.
#[derive(Default)]
pub(super) struct StreamNotes<'n> {
    /// A warning about events that it may miss.
    pub(super) caveat: Option<String>,
    /// For `--cost`: features that it lacks.
    pub(super) cost: Vec<String>,
    /// Reloads the configuration, if there is one.
    pub(super) reread: Option<&'n Reread<'n>>,
}

/// A function that consumes an opened stream and the notes on it.
pub(super) type Then<'t, T> = dyn FnMut(&mut dyn Stream<T>, StreamNotes<'_>) -> Result<Run, RunError> + 't;

/// Opens the session, calls `open` to open the stream, follows it to its end and reports the result.
pub(super) fn run<T: Shipped>(
    request: &Request,
    plan: &Plan<T>,
    open: impl FnOnce(&Session, &mut Then<'_, T>) -> Result<Run, RunError>,
) -> Outcome {
    let session = match Session::open(request.target()) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    if request.ship.is_some() {
        sys::signal::reopen_on_hangup();
    }
    let before = cost::measure();
    let (mut explained, mut left_out) = (None, Vec::new());
    session.host().begin_round();
    let outcome = open(&session, &mut |stream, words| {
        if request.explain {
            explained = Some(engine::explain(plan, &stream.offer(plan.demand())));
            return Ok(Run { stats: Accounting::default(), ended: engine::EndReason::Whole });
        }
        if let Some(caveat) = words.caveat {
            print_message(&caveat);
        }
        left_out = words.cost;
        follow(request, &session, plan, stream, words.reread)
    });
    if let (Some(text), Ok(_)) = (explained, &outcome) {
        return print::print_prose(&text).into();
    }
    let mut outcome = finish(request, &session, outcome, &before);
    if request.cost {
        outcome.messages.extend(left_out.into_iter().map(|words| format!("cost: {words}")));
    }
    outcome
}

/// Ships or shows the rows of a stream.
fn follow<T: Shipped>(
    request: &Request,
    session: &Session,
    plan: &Plan<T>,
    stream: &mut dyn Stream<T>,
    reread: Option<&Reread<'_>>,
) -> Result<Run, RunError> {
    if let Some(ship) = &request.ship {
        let shipment = Shipment::<T>::start(ship, plan.columns(), session.run())?;
        return send(request, session, plan, stream, shipment, reread);
    }
    let _notifier = Notifier::start(session.run(), String::new);
    let mut sink = match plan.is_streaming() {
        true => screen::show_waiting(request, session, output::sink(request)),
        false => output::sink_of_rounds(request, session),
    };
    let mut run = streams::read(session, &request.table(), plan, stream, &mut *sink)?;
    if sys::term::is_reader_closed(sys::term::STDOUT) {
        // If this is noticed between two rows, the run ended as with Ctrl-C, and the reader has all it wanted.
        run.ended = engine::EndReason::Closed;
    }
    Ok(run)
}

/// Sends the rows of a stream to the targets of `shipment`.
fn send<T: Shipped>(
    request: &Request,
    session: &Session,
    plan: &Plan<T>,
    stream: &mut dyn Stream<T>,
    mut shipment: Shipment<T>,
    reread: Option<&Reread<'_>>,
) -> Result<Run, RunError> {
    announce(request, None);
    let status = shipment.status_line();
    let notifier = Notifier::start(session.run(), status);
    with_lookups(session, plan, T::LOOKUPS, |lookups, _| {
        let (columns, run) = (plan.columns(), session.run());
        let line = long_work::progress(session, "shipping", time_left(request), shipment.status_line());
        let stop = || session.is_replay_interrupted();
        // The configuration was read before hangups are counted.
        let mut sink = Reloading { shipment: &mut shipment, columns, run, reread, hangups: 0 };
        let run = plan.run_rows(&mut StreamFeed::new(stream, lookups, &stop), &mut sink);
        drop(line);
        notifier.iter().for_each(Notifier::report_stopping);
        lookups.with(&mut |lookups| shipment.say_held(&plan.cells_of(lookups), true));
        shipment.end(request.stats, run)
    })
}

/// Announces the shipped rows, the targets, and the end of the run, which `end` names if neither time nor user does.
pub(super) fn announce(request: &Request, end: Option<&str>) {
    let Some(ship) = &request.ship else { return };
    let targets: Vec<String> = ship.targets.iter().map(ToString::to_string).collect();
    let until = end.map_or_else(|| long_work::until(time_left(request)), str::to_owned);
    print_message(&format!("shipping rows of `{}` to {}, {until}", request.command, targets.join(", ")));
}

/// Returns the time until `--for` ends the run, in tenths of a second. It is rounded up, because the time started when
/// the command line was parsed.
fn time_left(request: &Request) -> Option<Duration> {
    let left = engine::time_left(request.ends_ns, sys::clock::monotonic_ns())?;
    Some(Duration::from_millis(left.as_millis().div_ceil(100) as u64 * 100))
}
