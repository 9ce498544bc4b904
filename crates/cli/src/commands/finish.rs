//! The end of a run: its messages and its exit code.

use crate::flags::request::{Format, Request};
use engine::{EndReason, Run, RunError};
use lookups::session::Session;
use record::{Accounting, SourceFault};
use runtime::exit::Exit;
use runtime::messages::{cost_line, footer_lines, stats_line};
use runtime::outcome::Outcome;
use sys::cost::{self, Cost};

/// Closes the session and its recording; returns the messages and the exit code of a run that began at the cost
/// `before`.
pub(super) fn finish(request: &Request, session: &Session, outcome: Result<Run, RunError>, before: &Cost) -> Outcome {
    let (mut result, mut messages) = (Exit::Ok, Vec::new());
    let Run { mut stats, ended } = outcome.unwrap_or_else(|error| {
        messages.push(describe(&error));
        result = Exit::Failed;
        Run { stats: Accounting::default(), ended: EndReason::Whole }
    });
    session.finish(&mut stats);
    messages.extend(footer_lines(&stats));
    if request.stats && result == Exit::Ok && request.format != Format::Json {
        messages.push(stats_line(&stats));
    }
    if request.cost {
        messages.push(cost_line(&cost::measure().since(before), &stats));
        messages.extend(session.cost_note().map(|note| format!("cost: {note}")));
    }
    let exit = match result {
        // If the reader closed the output, it has all it wanted.
        Exit::Ok if ended == EndReason::Closed => Exit::Ok,
        Exit::Ok if stats.is_partial() => Exit::Partial,
        Exit::Ok if request.exit_code && stats.emitted + stats.grouped == 0 => Exit::NoMatch,
        other => other,
    };
    Outcome { exit, messages }
}

/// The error's text, with a next step if a privilege is missing.
fn describe(error: &RunError) -> String {
    const COMMAND: &str = "`netwren support`";
    let words = error.to_string();
    let is_denied = matches!(error, RunError::Source(source) if source.fault == SourceFault::Denied);
    // The failing layer may have included a next step.
    if !is_denied || words.contains(COMMAND) { words } else { format!("{words} ({COMMAND} lists what works)") }
}
