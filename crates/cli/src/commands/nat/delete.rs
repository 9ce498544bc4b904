//! `netwren nat delete FILTER`: the table of what would be deleted, or was.
//!
//! One pass chooses, as for any table. Its rows are put in order, which keeps them until the last one is read: only then
//! the first entry is deleted. Each is deleted by the original direction of the very row that is shown, its zone and its
//! id, so that an entry which took its place meanwhile stays.

use super::super::Outcome;
use super::super::plan::Wrong;
use super::super::table::{self, Reads};
use super::list::{Reading, prepare};
use super::refused;
use crate::exit::Exit;
use crate::flags::NatDelete;
use crate::output;
use crate::session::Session;
use conntrack::change::{Changes, Given};
use conntrack::{CtTable, Place, Via};
use engine::{Predicate, columns};
use netlink::DumpError;
use record::rows::{CtTuple, Nat};
use record::{
    Accounting, Column, Columns, Demand, Each, Kind, LookupId, Lookups, Next, Offer, Round, Sink, SinkError, Source,
    SourceError, Value,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use sys::Errno;

/// The column that tells rows apart; it is also the order if none is asked for.
const ID: &str = "id";

/// What became of an entry.
const RESULTS: &[&str] = &["deleted", "gone", "refused"];

/// Runs the command with the words behind `nat delete`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let NatDelete { mut request, yes } = match NatDelete::parse(args) {
        Ok(delete) => delete,
        Err(error) => return refused(&error),
    };
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Nat>()).into();
    }
    request.shown.sort.get_or_insert_with(|| ID.to_owned());
    let prepared = prepare(&request, CtTable::Conntrack).and_then(|(plan, reading)| {
        let plan = plan.with_last_column(ID);
        let test = Predicate::new(&plan.demand().conjuncts);
        let test = test.map_err(|bad| Wrong::Plan(engine::PlanError::Pattern(bad)))?;
        // /proc has no ids.
        Ok((
            plan,
            Choosing { reading: Reading { via: Some(Via::Netlink), ..reading }, test, chosen: RefCell::default() },
        ))
    });
    match prepared {
        Ok((plan, choosing)) => table::run_through(&request, &plan, &choosing, |session, sink, rounds| {
            let place = Place { netns: None, netns_id: session.netns_id() };
            let changes = Changes::new(session.host(), place);
            let mut deleter = Deleter {
                session,
                choosing: &choosing,
                changes,
                yes,
                inner: sink,
                fault: None,
                shown: 0,
                deleted: 0,
                gone: 0,
                refused: Vec::new(),
                left: 0,
            };
            let mut run = rounds(&mut deleter)?;
            deleter.tell(&mut run.books);
            Ok(run)
        }),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

/// Reads entries and keeps what is needed to delete those that pass the filter.
struct Choosing {
    reading: Reading,
    test: Predicate<Nat>,
    /// By id: a hash of 32 bits, which two entries may share. Each is deleted once, whichever row comes first.
    chosen: RefCell<HashMap<u32, Vec<Target>>>,
}

/// What names an entry.
#[derive(Clone, Copy)]
struct Target {
    orig: CtTuple,
    zone: Option<u16>,
    id: Option<u32>,
}

impl Reads<Nat> for Choosing {
    fn needs_lookup(&self, id: LookupId) -> bool {
        self.reading.needs_lookup(id)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        books: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<Nat>) -> R,
    ) -> R {
        self.reading
            .with_source(session, lookups, books, |source| then(&mut Remembering { source, choosing: self, lookups }))
    }
}

/// The source between.
struct Remembering<'c> {
    source: &'c mut dyn Source<Nat>,
    choosing: &'c Choosing,
    lookups: Lookups<'c>,
}

impl Source<Nat> for Remembering<'_> {
    fn offer(&self, demand: &Demand<Nat>) -> Offer {
        self.source.offer(demand)
    }

    fn run(&mut self, demand: &Demand<Nat>, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        let (choosing, lookups) = (self.choosing, self.lookups);
        self.source.run(demand, &mut |row| {
            if choosing.test.matches(row, &lookups) {
                let target = Target { orig: row.orig, zone: row.zone, id: row.id };
                choosing.chosen.borrow_mut().entry(row.id.unwrap_or(0)).or_default().push(target);
            }
            each(row)
        })
    }
}

/// The sink between: deletes the entry of every row that would be shown, and shows what became of it.
struct Deleter<'c> {
    session: &'c Session,
    choosing: &'c Choosing,
    changes: Changes<'c>,
    yes: bool,
    inner: Box<dyn Sink>,
    /// The first trouble of the output. Deleting goes on: half of a list is what nobody asked for.
    fault: Option<SinkError>,
    shown: u64,
    deleted: u64,
    gone: u64,
    refused: Vec<DumpError>,
    left: u64,
}

impl Deleter<'_> {
    /// Deletes the entry of this id; null if the user wanted no more.
    fn delete(&mut self, id: Option<&Value<'_>>) -> Value<'static> {
        if self.session.interrupted() {
            self.left += 1;
            return Value::Null;
        }
        let id = match id {
            Some(Value::U64(id)) => u32::try_from(*id).unwrap_or(0),
            _ => 0,
        };
        let target = self.choosing.chosen.borrow_mut().get_mut(&id).and_then(Vec::pop);
        let Some(Target { orig, zone, id }) = target else { return Value::Null };
        match self.changes.delete(&Given { orig: Some(orig), zone, id, ..Given::default() }) {
            Ok(()) => {
                self.deleted += 1;
                Value::Name(RESULTS[0])
            }
            // It ended by itself, or another one has its place by now: what was shown is no more.
            Err(error) if error.errno() == Some(Errno::NOENT) => {
                self.gone += 1;
                Value::Name(RESULTS[1])
            }
            Err(error) => {
                self.refused.push(error);
                Value::Name(RESULTS[2])
            }
        }
    }

    /// What was done, and what stayed.
    fn tell(&self, books: &mut Accounting) {
        if !self.yes {
            let words = match self.shown {
                0 => "no entry to delete".to_owned(),
                n => format!("entries that would be deleted: {n}; nothing was done, --yes deletes them"),
            };
            return books.because(0, words);
        }
        books.because(0, format!("entries deleted: {} of {}", self.deleted, self.shown));
        if self.gone > 0 {
            books.because(self.gone, "gone before they were deleted");
        }
        for error in &self.refused {
            books.incomplete = true;
            books.because(1, format!("not deleted: {}", why(error)));
        }
        if self.left > 0 {
            books.incomplete = true;
            books.because(self.left, "not deleted: interrupted");
        }
    }
}

fn why(error: &DumpError) -> String {
    match error.errno() {
        Some(errno) if errno.is_denied() => format!("{} (needs CAP_NET_ADMIN)", errno.words()),
        Some(errno) => errno.words().to_string(),
        None => error.to_string(),
    }
}

impl Sink for Deleter<'_> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let mut columns = columns.clone();
        // The id is there for us; the user's own, if any, stands before it.
        columns.0.pop();
        if self.yes {
            columns.0.push(Column { name: "result".into(), kind: Kind::Name(RESULTS) });
        }
        self.fault = self.inner.begin(&columns, round).err();
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let (id, shown) = match cells.split_last() {
            Some((id, shown)) => (Some(id), shown),
            None => (None, cells),
        };
        self.shown += 1;
        let mut shown = shown.to_vec();
        if self.yes {
            shown.push(self.delete(id));
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
