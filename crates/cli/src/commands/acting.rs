//! Acting on the very rows that are shown: what `sockets kill` and `nat delete` have in common.
//!
//! Rows come in order, which keeps them until the last one is read: only then the first of them is acted on. Acting while
//! the kernel walks its table would shift what it has not shown yet.

use super::table::AllRounds;
use crate::messages::footer;
use crate::session::Session;
use engine::{Run, RunError};
use record::{Accounting, Column, Columns, Kind, Next, Round, Sink, SinkError, Value};

/// What is done with each row.
pub(super) trait Act {
    /// The words for what may become of a row.
    const RESULTS: &'static [&'static str];
    /// How many cells at the end of a row are its object's identity ([`engine::Plan::with_key`]).
    const KEY_CELLS: usize;

    /// Acts on the object that these cells name; null if they name none. The cells are all that is known of it: no
    /// other row can be taken for it, whatever they have in common.
    fn act(&mut self, key: &[Value<'_>]) -> Value<'static>;

    /// Tells what was done and what was not, or what would be done.
    fn tell(&self, rows: Rows, stats: &mut Accounting);
}

/// The rows of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// True if the user said `--yes`: without it nothing is done.
    pub(super) yes: bool,
    pub(super) shown: u64,
    /// Of them those that were left alone because the user wanted no more.
    pub(super) left: u64,
}

/// Runs all rounds into `sink` and acts on every row, if `yes` messages so. The last columns of the plan are the identity
/// of the row's object; they are not shown.
pub(super) fn run(
    session: &Session,
    sink: Box<dyn Sink>,
    rounds: AllRounds<'_>,
    yes: bool,
    act: impl Act,
) -> Result<Run, RunError> {
    let mut acting = Acting { session, act, inner: sink, fault: None, rows: Rows { yes, shown: 0, left: 0 } };
    let run = rounds(&mut acting);
    let Acting { act, rows, .. } = acting;
    match run {
        Ok(mut run) => {
            act.tell(rows, &mut run.stats);
            Ok(run)
        }
        // The row counts go with the run; what was done must be said all the same.
        Err(error) => {
            if rows.shown > 0 {
                let mut stats = Accounting::default();
                act.tell(rows, &mut stats);
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
    rows: Rows,
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
