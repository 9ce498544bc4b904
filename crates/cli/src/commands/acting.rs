//! Acting on the very rows that are shown: what `sockets kill` and `nat delete` have in common.
//!
//! ActedRows come in order, which keeps them until the last one is read: only then the first of them is acted on.
//! Acting while the kernel walks its table would shift what it has not shown yet.

use super::table::AllRounds;
use crate::command::ParsedWords;
use crate::flags::request::Request;
use crate::messages::footer;
use crate::session::Session;
use engine::{Run, RunError};
use record::{Accounting, Column, Columns, Kind, Next, Round, Sink, SinkError, Value};

/// The words for what is done, and to what.
pub(super) struct Verb {
    /// One of them: `socket`.
    pub(super) thing: &'static str,
    /// Several: `sockets`.
    pub(super) things: &'static str,
    /// `close`
    pub(super) infinitive: &'static str,
    /// `closes`
    pub(super) present: &'static str,
    /// `closed`
    pub(super) past: &'static str,
}

/// What is done with each row.
pub(super) trait Act {
    /// The words for it.
    const VERB: Verb;
    /// The words for what may become of a row.
    const RESULTS: &'static [&'static str];
    /// How many cells at the end of a row are its object's identity ([`engine::Plan::with_key`]).
    const KEY_CELLS: usize;

    /// Acts on the object that these cells name; null if they name none. The cells are all that is known of it: no
    /// other row can be taken for it, whatever they have in common.
    fn act(&mut self, key: &[Value<'_>]) -> Value<'static>;

    /// How many objects were acted on with success.
    fn done(&self) -> u64;

    /// Adds what matches the filter and cannot be acted on at all.
    fn add_unfit(&self, stats: &mut Accounting) {
        let _ = stats;
    }

    /// Adds why objects of shown rows were not acted on.
    fn add_failures(&self, stats: &mut Accounting);
}

/// The rows of a run.
#[derive(Debug, Clone, Copy)]
struct ActedRows {
    /// True if the user said `--yes`: without it nothing is done.
    yes: bool,
    shown: u64,
    /// Of them those that were left alone because the user wanted no more.
    left: u64,
}

/// The request of a command that acts, and whether `--yes` is given. Without a filter `--all` must be. `order` is the
/// order of the rows where no other one is asked for.
pub(super) fn asked(words: &ParsedWords<'_>, verb: &Verb, order: &'static str) -> Result<(Request, bool), String> {
    let mut request = Request::of(words)?;
    request.shown.order = Some(order);
    match (request.shown.filter.trim().is_empty(), words.has("all")) {
        (true, false) => Err(format!("which {}? Without a filter `{}` needs --all", verb.things, words.command.name)),
        (false, true) => Err("--all and a filter exclude each other".to_owned()),
        _ => Ok((request, words.has("yes"))),
    }
}

/// Adds what was done and what was not, or what would be done.
fn tell<A: Act>(act: &A, rows: ActedRows, stats: &mut Accounting) {
    let Verb { thing, things, infinitive, present, past } = A::VERB;
    act.add_unfit(stats);
    let ActedRows { yes, shown, left } = rows;
    if shown == 0 {
        return stats.add_reason(0, format!("no {thing} matches: nothing to {infinitive}"));
    }
    if !yes {
        let text = format!("{things} that would be {past}: {shown}; nothing was done, --yes {present} them");
        return stats.add_reason(0, text);
    }
    stats.add_reason(0, format!("{things} {past}: {} of {shown}", act.done()));
    act.add_failures(stats);
    if left > 0 {
        stats.incomplete = true;
        stats.add_reason(left, format!("not {past}: interrupted"));
    }
}

/// Runs all rounds into `sink` and acts on every row, if `yes` says so. The last columns of the plan are the identity
/// of the row's object; they are not shown.
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
        // The row counts go with the run; what was done must be said all the same.
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

/// The sink between: acts on every row that would be shown, and shows what became of it.
struct Acting<'c, A> {
    session: &'c Session,
    act: A,
    inner: Box<dyn Sink>,
    /// The first trouble of the output. Acting goes on: half of a list is what nobody asked for.
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
        // The key is there for us; the user's own columns of it, if any, stand before it.
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
