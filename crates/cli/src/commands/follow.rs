//! `--follow`: shows rows as events occur, until the user, the limit or the reader of the output ends the run.

use super::finish::finish;
use super::plan::of_request;
use super::reloading::{Reloading, Reread};
use crate::flags::request::Request;
use crate::output;
use crate::waiting;
use engine::{Plan, RenewedLookups, Run, RunError, StreamFeed};
use lookups::asked;
use lookups::followed::FollowedLookups;
use lookups::long_work;
use lookups::names::{self, DnsNames};
use lookups::session::Session;
use record::rows::{FlowEvents, SocketEvents};
use record::{Accounting, LookupId, Stream, Table};
use runtime::exit::Exit;
use runtime::messages::say;
use runtime::notifier::Notifier;
use runtime::outcome::Outcome;
use runtime::print;
use shipping::{Shipment, Shipped};
use sockets::{FlowSums, Follow, LiveConnections};
use std::time::Duration;
use sys::cost;
use tables::{RateSink, Repeat, RoundFacts, StreamRounds};

/// Columns of the process that owns a connection, and columns derived from it.
const OWNED: [&str; 9] =
    ["process", "pid", "cmdline", "container_pid", "container", "pod", "unit", "cgroup", "cgroup_id"];

/// The message about missing owners. The exit code is the same as for lists with unreadable owners.
const NO_OWNERS: &str = "owners of connections are missing: the kernel reports them only via BPF (--no-owner leaves \
                         their columns out)";

/// The message for reasons of closings that could not be read.
const NO_REASONS: &str = "the reasons why connections ended are missing: the kernel reports them only via BPF";

/// Runs `netwren sockets --follow`.
pub(super) fn sockets(request: &Request) -> Outcome {
    let plan = match of_request::<SocketEvents>(request) {
        Ok(plan) => plan,
        Err(wrong) => return Outcome::because(Exit::Usage, wrong),
    };
    run(request, &plan, |session, then| {
        let stop = || is_over(request, session);
        let mut live =
            LiveConnections::open(session.host(), place_of(request, session, &stop)).map_err(RunError::Source)?;
        let words = StreamNotes { caveat: live.caveat(), cost: live.left_out().to_vec(), reread: None };
        // The interface that reports no processes reports no reasons either.
        let lacks = !live.reports_processes() && !request.explain;
        let mut run = then(&mut live, words)?;
        for (fields, words) in [(&OWNED[..], NO_OWNERS), (&["reason"], NO_REASONS)] {
            if lacks && fields.iter().any(|name| plan.demand().wants(name)) {
                run.stats.incomplete(1, words);
            }
        }
        Ok(run)
    })
}

/// Runs `netwren flows --follow`.
pub(super) fn flows(request: &Request, interval: Duration) -> Outcome {
    let plan = match of_request::<FlowEvents>(request) {
        Ok(plan) => plan,
        Err(wrong) => return Outcome::because(Exit::Usage, wrong),
    };
    run(request, &plan, |session, then| {
        let stop = || is_over(request, session);
        let mut sums =
            FlowSums::open(session.host(), place_of(request, session, &stop), interval).map_err(RunError::Source)?;
        let words = StreamNotes { caveat: sums.caveat(), cost: Vec::new(), reread: None };
        then(&mut sums, words)
    })
}

/// True if the user has ended the run, the reader of the output has closed it, or the time of `--for` is over.
pub(super) fn is_over(request: &Request, session: &Session) -> bool {
    session.run().turn();
    if request.ends_ns.is_some_and(|end_ns| sys::clock::monotonic_ns() >= end_ns) {
        return true;
    }
    session.interrupted() || request.ship.is_none() && sys::term::reader_is_gone(sys::term::STDOUT)
}

fn place_of<'h>(request: &Request, session: &Session, stop: &'h dyn Fn() -> bool) -> Follow<'h> {
    let (netns_id, all_netns) = (session.netns_id(), request.all_netns);
    Follow { via: request.via, netns_id, all_netns, hooks: !request.no_hooks, stop }
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
    let checked = request.ship.as_ref().map_or(Ok(()), |ship| Shipment::<T>::check(ship, plan.columns()));
    if let Err(wrong) = checked {
        return Outcome::because(Exit::Usage, wrong);
    }
    let session = match Session::open(request.target()) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    if request.ship.is_some() {
        sys::signal::reopen_on_hangup();
    }
    let before = cost::so_far();
    let (mut explained, mut left_out) = (None, Vec::new());
    session.host().begin_round();
    let outcome = open(&session, &mut |stream, words| {
        if request.explain {
            explained = Some(engine::explain(plan, &stream.offer(plan.demand())));
            return Ok(Run { stats: Accounting::default(), ended: engine::Ended::Whole });
        }
        if let Some(caveat) = words.caveat {
            say(&caveat);
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

fn follow<T: Shipped>(
    request: &Request,
    session: &Session,
    plan: &Plan<T>,
    stream: &mut dyn Stream<T>,
    reread: Option<&Reread<'_>>,
) -> Result<Run, RunError> {
    let mut shipment = match &request.ship {
        Some(ship) => Some(Shipment::<T>::start(ship, plan.columns(), session.run())?),
        None => None,
    };
    let status = shipment.as_ref().map(Shipment::status_line);
    announce(request);
    let notifier = Notifier::start(session.run(), move || status.as_ref().map_or_else(String::new, |line| line()));
    let mut notes = Accounting::default();
    session.find_namespaces(None, &mut notes);
    let needs = |id: &LookupId| plan.needs_lookup(*id) || shipment.is_some() && T::LOOKUPS.contains(id);
    let wanted: Vec<LookupId> = LookupId::ALL.into_iter().filter(needs).collect();
    let wanted = asked::lookups(session.host(), plan.demand(), wanted, &mut notes);
    let may_need = |id| plan.may_need_lookup(id);
    let enrichment = FollowedLookups::read_before(session, &wanted, &may_need, &mut notes);
    let mut lookups = FollowedLookups::new(session, enrichment.lookups(), &wanted, &may_need);
    let mut names = request.resolve.map(|bound| DnsNames::new(session, bound, true));
    if names.is_some() {
        asked::host_names(session.host(), &mut notes);
    }
    let stop = || session.host().is_replay() && session.interrupted();
    let mut run = match &mut shipment {
        Some(shipment) => {
            let (columns, run) = (plan.columns(), session.run());
            let line = long_work::progress(session, "shipping", time_left(request), shipment.status_line());
            // The configuration was read before hangups are counted.
            let mut sink = Reloading { shipment, columns, run, reread, hangups: 0 };
            let mut run = plan.run_rows(&mut StreamFeed::new(stream, &mut lookups, &stop), &mut sink)?;
            drop(line);
            notifier.iter().for_each(Notifier::stopping);
            lookups.with(&mut |lookups| shipment.say_held(&plan.cells_of(lookups), true));
            shipment.finish(request.stats, &mut run.stats);
            run
        }
        None => show(request, session, plan, StreamFeed::new(stream, &mut lookups, &stop), names.as_mut())?,
    };
    lookups.tell(&mut notes);
    run.stats.add(&notes);
    if request.ship.is_none() && sys::term::reader_is_gone(sys::term::STDOUT) {
        // If this is noticed between two rows, the run ended as with Ctrl-C, and the reader has all it wanted.
        run.ended = engine::Ended::Closed;
    }
    Ok(run)
}

/// Shows the rows of a stream as they come, and its groups or sorted rows in rounds or once at its end.
fn show<T: Table>(
    request: &Request,
    session: &Session,
    plan: &Plan<T>,
    mut feed: StreamFeed<'_, T>,
    names: Option<&mut DnsNames<'_>>,
) -> Result<Run, RunError> {
    if plan.is_streaming() {
        let mut sink = waiting::over(request, session, output::sink(request));
        return names::run(plan, &mut feed, names, &mut *sink);
    }
    let mut sink = output::sink_of_rounds(request, session);
    match request.repeat {
        Repeat::Every(period) => {
            let facts = RoundFacts::default();
            let mut sink = RateSink::new(&mut *sink, request.group_rates, &facts);
            names::run(plan, &mut StreamRounds::new(feed, period, &facts), names, &mut sink)
        }
        Repeat::Once => {
            let _line = long_work::progress(session, "reading rows", None, String::new);
            names::run(plan, &mut feed, names, &mut *sink)
        }
    }
}

/// Announces the shipped rows, the targets, and the end of the run.
fn announce(request: &Request) {
    let Some(ship) = &request.ship else { return };
    let targets: Vec<String> = ship.targets.iter().map(ToString::to_string).collect();
    let until = long_work::until(time_left(request));
    say(&format!("shipping rows of `{}` to {}, {until}", request.command, targets.join(", ")));
}

/// Returns the time until `--for` ends the run, in tenths of a second. It is rounded up, because the time started when
/// the command line was parsed.
fn time_left(request: &Request) -> Option<Duration> {
    let left = tables::time_left(request.ends_ns)?;
    Some(Duration::from_millis(left.as_millis().div_ceil(100) as u64 * 100))
}
