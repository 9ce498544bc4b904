//! Acts on exactly the rows that are shown; shared by `sockets kill` and `nat delete`.
//!
//! The rows are sorted, so the engine holds them until the last one is read, and the first action comes after that.
//! Acting while the kernel walks its table would shift entries that it has not reported yet.

use super::table::AllRounds;
use crate::command::ParsedWords;
use crate::flags::request::Request;
use engine::{Run, RunError};
use lookups::session::Session;
use record::{Accounting, Column, Columns, Kind, Next, Round, Sink, SinkError, Value};
use runtime::messages::footer;

/// The words for the action and its objects.
pub(super) struct Verb {
    /// Singular noun: `socket`.
    pub(super) thing: &'static str,
    /// Plural noun: `sockets`.
    pub(super) things: &'static str,
    /// For example `close`.
    pub(super) infinitive: &'static str,
    /// For example `closes`.
    pub(super) present: &'static str,
    /// For example `closed`.
    pub(super) past: &'static str,
}

/// An action on rows.
pub(super) trait Act {
    /// The words for the action.
    const VERB: Verb;
    /// The words for the possible results.
    const RESULTS: &'static [&'static str];
    /// Number of cells at the end of a row that identify its object ([`engine::Plan::with_key`]).
    const KEY_CELLS: usize;

    /// Acts on the object that these cells identify; null if they identify none. The action depends on these cells
    /// only, so that no other row can be mistaken for it.
    fn act(&mut self, key: &[Value<'_>]) -> Value<'static>;

    /// Number of successful actions.
    fn done(&self) -> u64;

    /// Adds objects that match the filter but cannot be acted on at all.
    fn add_unfit(&self, stats: &mut Accounting) {
        let _ = stats;
    }

    /// Adds the reasons why objects of shown rows were not acted on.
    fn add_failures(&self, stats: &mut Accounting);
}

/// The rows of a run, counted.
#[derive(Debug, Clone, Copy)]
struct ActedRows {
    /// True if the user gave `--yes`; otherwise nothing is changed.
    yes: bool,
    shown: u64,
    /// Number of these rows left alone because the user ended the run.
    left: u64,
}

/// The request of an acting command, and whether `--yes` is given. Without a filter `--all` is required. `order` is
/// the default order of the rows.
pub(super) fn asked(words: &ParsedWords<'_>, order: &'static str) -> Result<(Request, bool), String> {
    let mut request = Request::of(words)?;
    request.shown.order = Some(order);
    match (request.shown.filter.trim().is_empty(), words.has("all")) {
        (true, false) => Err(format!("without a filter, `{}` needs --all", words.command.name)),
        (false, true) => Err("--all cannot be used with a filter".to_owned()),
        _ => Ok((request, words.has("yes"))),
    }
}

/// Adds a summary of what was done and what was not, or of what would be done.
fn tell<A: Act>(act: &A, rows: ActedRows, stats: &mut Accounting) {
    let Verb { thing, things, infinitive, present, past } = A::VERB;
    act.add_unfit(stats);
    let ActedRows { yes, shown, left } = rows;
    if shown == 0 {
        return stats.add_reason(0, format!("no {thing} matches: nothing to {infinitive}"));
    }
    if !yes {
        let text = format!("{things} that would be {past}: {shown}; nothing was changed, --yes {present} them");
        return stats.add_reason(0, text);
    }
    stats.add_reason(0, format!("{things} {past}: {} of {shown}", act.done()));
    act.add_failures(stats);
    if left > 0 {
        stats.incomplete(left, format!("not {past}: interrupted"));
    }
}

/// Runs all rounds into `sink`, and acts on every row if `yes` is true. The last columns of the plan identify the
/// row's object and are not shown.
pub(super) fn run(
    session: &Session,
    sink: Box<dyn Sink>,
    rounds: AllRounds<'_>,
    yes: bool,
    act: impl Act,
) -> Result<Run, RunError> {
    let mut acting = Acting { session, act, inner: sink, fault: None, rows: ActedRows { yes, shown: 0, left: 0 } };
    let run = rounds(&mut acting);
    let Acting { act, rows, .. } = acting;
    match run {
        Ok(mut run) => {
            tell(&act, rows, &mut run.stats);
            Ok(run)
        }
        // The error discards the row counts, but the completed actions must still be reported.
        Err(error) => {
            if rows.shown > 0 {
                let mut stats = Accounting::default();
                tell(&act, rows, &mut stats);
                footer(&stats);
            }
            Err(error)
        }
    }
}

/// A sink that acts on every row that would be shown, and shows the result.
struct Acting<'c, A> {
    session: &'c Session,
    act: A,
    inner: Box<dyn Sink>,
    /// The first error of the output. Actions continue, because the user did not ask for half of them.
    fault: Option<SinkError>,
    rows: ActedRows,
}

impl<A: Act> Acting<'_, A> {
    fn act(&mut self, key: &[Value<'_>]) -> Value<'static> {
        if self.session.interrupted() {
            self.rows.left += 1;
            return Value::Null;
        }
        self.act.act(key)
    }
}

impl<A: Act> Sink for Acting<'_, A> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let mut columns = columns.clone();
        // The key is internal; key columns requested by the user come before it.
        columns.0.truncate(columns.0.len().saturating_sub(A::KEY_CELLS));
        if self.rows.yes {
            columns.0.push(Column { name: "result".into(), kind: Kind::Name(A::RESULTS) });
        }
        self.fault = self.inner.begin(&columns, round).err();
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let (shown, key) = cells.split_at(cells.len().saturating_sub(A::KEY_CELLS));
        self.rows.shown += 1;
        let mut shown = shown.to_vec();
        if self.rows.yes {
            shown.push(self.act(key));
        }
        if self.fault.is_none() {
            match self.inner.row(&shown) {
                Ok(Next::More) => {}
                Ok(Next::Stop) => self.fault = Some(SinkError::Closed),
                Err(fault) => self.fault = Some(fault),
            }
        }
        Ok(Next::More)
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.inner.end(totals),
        }
    }
}
