//! Runs a command that shows a table, from its request to its exit code.
//!
//! [`prepare`] makes the plan of a request for [`run`]; [`show_through`] and [`act_through`] run a plan with a function
//! of the caller between the engine and the sink. All of them open the session, read the rounds (`tables::rounds`),
//! show or ship them, and end the run (`finish`).

use super::elsewhere::{self, Hints};
use super::finish::finish;
use super::follow;
use super::plan::{self, PlanError};
use crate::command::{Prepared, ready};
use crate::flags::request::Request;
use crate::output;
use engine::{Plan, Run, RunError};
use lookups::session::Session;
use record::{Accounting, Lookups, Sink, Table};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use shipping::{ShipRequest, ShippedRounds};
use sys::cost;
use tables::{Repeat, SourceProvider};

/// Makes the plan of the request over `T`; `provider` determines how the plan's rows are read.
pub(super) fn prepare<T: Table, P: SourceProvider<T> + 'static>(
    request: Request,
    provider: impl FnOnce(&Plan<T>) -> Result<P, PlanError>,
) -> Prepared<'static> {
    let plan = plan::of_request(&request)?;
    let provider = provider(&plan)?;
    ready(move || run(&request, &plan, &provider))
}

/// Runs the plan as often as the request requires.
pub(super) fn run<T: Table>(request: &Request, plan: &Plan<T>, provider: &impl SourceProvider<T>) -> Outcome {
    show_through(request, plan, provider, |_, mut sink, rounds| rounds(&mut *sink))
}

/// Reads all rounds into a sink.
pub(super) type AllRounds<'r> = &'r mut dyn FnMut(&mut dyn Sink) -> Result<Run, RunError>;

/// Runs the plan with a function of the caller between the engine and the sink: `through` gets the request's sink and
/// reads the rounds into its own; reasons that it adds to the row counts appear in the footer. If nothing matches, the
/// footer may include one of the `hints` at other network namespaces.
fn run_through<T: Table>(
    request: &Request,
    plan: &Plan<T>,
    provider: &impl SourceProvider<T>,
    hints: &Hints,
    through: impl FnOnce(&Session, Box<dyn Sink>, AllRounds<'_>) -> Result<Run, RunError>,
) -> Outcome {
    let wrong = request.ship.as_ref().and_then(|ship| ShippedRounds::check(T::NAME, ship, plan.columns()).err());
    if let Some(wrong) = wrong {
        return Outcome::with_message(Exit::Usage, wrong);
    }
    let session = match Session::open(request.target()) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    if request.explain {
        return explain(&session, plan, provider).into();
    }
    let before = cost::measure();
    let shipped = request.ship.as_ref().map(|ship| shipped_rounds(T::NAME, request, ship, &session));
    let sink: Box<dyn Sink> = match &shipped {
        Some(rounds) => Box::new(rounds.clone()),
        None => output::sink_of_rounds(request, &session),
    };
    let outcome = through(&session, sink, &mut |sink| {
        let mut run = tables::rounds::read(&session, &request.table(), plan, provider, sink)?;
        hints.add_container(&mut run, &session, plan, provider);
        elsewhere::add_replay_note(&mut run, request, &session);
        Ok(run)
    });
    let outcome = outcome.map(|mut run| {
        hints.add_address(&mut run, request, plan, provider);
        run
    });
    let outcome = match &shipped {
        Some(rounds) => rounds.end(request.stats, outcome),
        None => outcome,
    };
    finish(request, &session, outcome, &before)
}

/// The outputs of the request, which it announces.
fn shipped_rounds(table: &'static str, request: &Request, ship: &ShipRequest, session: &Session) -> ShippedRounds {
    sys::signal::reopen_on_hangup();
    follow::announce(request, if request.repeat == Repeat::Once { Some("once") } else { None });
    ShippedRounds::new(table, ship, session.run(), session.host().now().since_1970_ns())
}

/// [`run_through`] for a command that only shows.
pub(super) fn show_through<T: Table>(
    request: &Request,
    plan: &Plan<T>,
    provider: &impl SourceProvider<T>,
    through: impl FnOnce(&Session, Box<dyn Sink>, AllRounds<'_>) -> Result<Run, RunError>,
) -> Outcome {
    run_through(request, plan, provider, &Hints::OF_LISTS, through)
}

/// [`run_through`] for a command that acts on the rows.
pub(super) fn act_through<T: Table>(
    request: &Request,
    plan: &Plan<T>,
    provider: &impl SourceProvider<T>,
    through: impl FnOnce(&Session, Box<dyn Sink>, AllRounds<'_>) -> Result<Run, RunError>,
) -> Outcome {
    run_through(request, plan, provider, &Hints::OF_ACTIONS, through)
}

/// `--explain`: prints how the rows would be read, and reads none.
fn explain<T: Table>(session: &Session, plan: &Plan<T>, provider: &impl SourceProvider<T>) -> Exit {
    let mut stats = Accounting::default();
    session.find_namespaces(None, &mut stats);
    let text = provider.with_source(session, Lookups::empty(), &mut stats, |source| {
        engine::explain(plan, &source.prepare(plan.demand()).offer())
    });
    print::print_prose(&text)
}
